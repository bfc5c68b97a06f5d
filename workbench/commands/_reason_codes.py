"""The codes that stand beside a reason: which there are for which verb, and their words. The only list of them.

A code says in one word what the reason says in a person's own, so that decisions can be counted; it never replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext_lazy as _


class ReasonCode(StrEnum):
    """What is stored and sent. A name is never given another meaning: the trail keeps it for good."""

    PROVIDER_OUTAGE = "provider_outage"
    CAUSE_REMOVED = "cause_removed"
    DATA_CORRECTED = "data_corrected"
    SEEN_AT_PROVIDER = "seen_at_provider"
    CUSTOMER_INFORMED = "customer_informed"
    CUSTOMER_WITHDREW = "customer_withdrew"
    RISK_ACCEPTED = "risk_accepted"
    STATE_ACCEPTED = "state_accepted"
    WRONG_EFFECTS = "wrong_effects"
    NO_REMEDY = "no_remedy"
    BEYOND_MY_LIMIT = "beyond_my_limit"
    SHIFT_ENDS = "shift_ends"
    MAINTENANCE = "maintenance"
    EVIDENCE_NOT_ENOUGH = "evidence_not_enough"
    WRONG_REMEDY = "wrong_remedy"
    WRONG_SCOPE = "wrong_scope"
    WRONG_TIME = "wrong_time"
    NOT_MINE_TO_DECIDE = "not_mine_to_decide"
    OTHER = "other"


REASON_CODES: Mapping[ReasonCode, Any] = MappingProxyType(
    {
        ReasonCode.PROVIDER_OUTAGE: _("Provider outage"),
        ReasonCode.CAUSE_REMOVED: _("The cause is removed"),
        ReasonCode.DATA_CORRECTED: _("Wrong data, corrected"),
        ReasonCode.SEEN_AT_PROVIDER: _("Seen in the provider's own system"),
        ReasonCode.CUSTOMER_INFORMED: _("Customer already informed"),
        ReasonCode.CUSTOMER_WITHDREW: _("Customer withdrew"),
        ReasonCode.RISK_ACCEPTED: _("Business accepts the risk"),
        ReasonCode.STATE_ACCEPTED: _("Business accepts the state"),
        ReasonCode.WRONG_EFFECTS: _("Wrong or doubled effects"),
        ReasonCode.NO_REMEDY: _("No remedy is possible"),
        ReasonCode.BEYOND_MY_LIMIT: _("Beyond what I may decide"),
        ReasonCode.SHIFT_ENDS: _("My shift ends"),
        ReasonCode.MAINTENANCE: _("Maintenance"),
        ReasonCode.EVIDENCE_NOT_ENOUGH: _("Evidence is not enough"),
        ReasonCode.WRONG_REMEDY: _("Wrong remedy, prefer another action"),
        ReasonCode.WRONG_SCOPE: _("Wrong scope, too many steps"),
        ReasonCode.WRONG_TIME: _("Wrong time"),
        ReasonCode.NOT_MINE_TO_DECIDE: _("Not mine to decide"),
        ReasonCode.OTHER: _("Other"),
    }
)

_C = ReasonCode
_AGAIN = (_C.PROVIDER_OUTAGE, _C.CAUSE_REMOVED, _C.CUSTOMER_INFORMED, _C.RISK_ACCEPTED, _C.OTHER)
_EDITED = (_C.DATA_CORRECTED, *_AGAIN)
_STATED = (_C.SEEN_AT_PROVIDER, _C.PROVIDER_OUTAGE, _C.CUSTOMER_INFORMED, _C.OTHER)
_ACCEPTED = (_C.STATE_ACCEPTED, _C.RISK_ACCEPTED, _C.CUSTOMER_INFORMED, _C.PROVIDER_OUTAGE, _C.OTHER)
_BACK = (_C.CUSTOMER_WITHDREW, _C.WRONG_EFFECTS, _C.PROVIDER_OUTAGE, _C.OTHER)
_LEFT_OUT = (_C.NO_REMEDY, _C.STATE_ACCEPTED, _C.RISK_ACCEPTED, _C.CUSTOMER_INFORMED, _C.OTHER)
_DECLINED = (_C.EVIDENCE_NOT_ENOUGH, _C.WRONG_REMEDY, _C.WRONG_TIME, _C.NOT_MINE_TO_DECIDE, _C.OTHER)
_PASSED_ON = (_C.BEYOND_MY_LIMIT, _C.NOT_MINE_TO_DECIDE, _C.SHIFT_ENDS, _C.OTHER)
_HELD = (_C.PROVIDER_OUTAGE, _C.WRONG_EFFECTS, _C.MAINTENANCE, _C.OTHER)
_HELD_ON_OR_LET_GO = (_C.CAUSE_REMOVED, *_HELD[:-1], _C.RISK_ACCEPTED, _C.OTHER)

_OF_CASES: Mapping[str, tuple[ReasonCode, ...]] = {
    "retry": _AGAIN,
    "edit_and_retry": _EDITED,
    "redo": _EDITED,
    "resume": _AGAIN,
    "resolve_happened": _STATED,
    "resolve_not_happened": _STATED,
    "confirm_verdict": _STATED,
    "decline_verdict": _DECLINED,
    "accept_items": _ACCEPTED,
    "mark_acceptable": _ACCEPTED,
    "compensate": _BACK,
    "stop_and_compensate": _BACK,
    "skip_compensation": _LEFT_OUT,
    "continue_compensation": _HELD_ON_OR_LET_GO,
    "withdraw_signoff": (_C.WRONG_REMEDY, _C.WRONG_SCOPE, _C.WRONG_TIME, _C.OTHER),
    "escalate": _PASSED_ON,
    "assign": _PASSED_ON,
    "reopen": (_C.WRONG_EFFECTS, _C.EVIDENCE_NOT_ENOUGH, _C.OTHER),
}
CODES: Mapping[str, tuple[ReasonCode, ...]] = MappingProxyType(
    {
        **_OF_CASES,
        # One code for all cases of a list; that it is one of its verb's is looked at when the list is known.
        "bulk_start": tuple(code for code in _C if any(code in codes for codes in _OF_CASES.values())),
        "bulk_pause": _HELD_ON_OR_LET_GO,
        "bulk_continue": _HELD_ON_OR_LET_GO,
        "bulk_stop": _HELD_ON_OR_LET_GO,
        "freeze": _HELD,
        "keep_frozen": _HELD_ON_OR_LET_GO,
        "unfreeze": _HELD_ON_OR_LET_GO,
        "open_tool": _HELD_ON_OR_LET_GO,
        "reject": (
            _C.EVIDENCE_NOT_ENOUGH,
            _C.WRONG_REMEDY,
            _C.WRONG_SCOPE,
            _C.WRONG_TIME,
            _C.NOT_MINE_TO_DECIDE,
        ),
    }
)
"""The codes of each verb that asks for a reason, in the order in which they are offered."""


def bulk_codes(verb: str) -> tuple[ReasonCode, ...]:
    """The codes for a list of cases; a status query asks for a reason only when it goes to many."""
    return CODES.get(verb, _STATED)


def code_words(code: str) -> Any:
    """A stored code in the reader's language; "" for none, and the code itself where a later version wrote it."""
    try:
        return REASON_CODES[ReasonCode(code)]
    except ValueError:
        return code
