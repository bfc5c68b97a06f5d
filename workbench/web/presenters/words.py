"""The vocabulary of the screens: one word, one mark and one tone per state, class, level, reason and verb.

Owns words only. "Unknown" never gets a failed word, mark or tone; making up for an effect is "compensate".
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from workbench.errors import Sentence

type Words = str | Promise | Sentence


@dataclass(frozen=True, kw_only=True)
class StateWord:
    """How a state looks: `icon` is a shape, `tone` a colour class for text, `word` what stands beside it."""

    icon: str
    word: Words
    tone: str = ""


STATES: dict[str, StateWord] = {
    "not_started": StateWord(icon="wait", word=_("Not sent")),
    "prepared": StateWord(icon="wait", word=_("Not sent")),
    "sent": StateWord(icon="sent", word=_("Sent"), tone="runt"),
    "confirmed": StateWord(icon="ok", word=_("Confirmed")),
    "rejected": StateWord(icon="bad", word=_("Rejected"), tone="badt"),
    "unknown": StateWord(icon="unk", word=_("Unknown"), tone="unkt"),
    "partial": StateWord(icon="held", word=_("Partly done")),
    "compensated": StateWord(icon="compensated", word=_("Compensated")),
    "compensating": StateWord(icon="compensating", word=_("Compensating"), tone="runt"),
    "compensation_unknown": StateWord(icon="unk", word=_("Compensation unknown"), tone="unkt"),
    "compensation_failed": StateWord(icon="compfailed", word=_("Compensation failed"), tone="badt"),
    "awaiting_approval": StateWord(icon="held", word=_("Waiting")),
    "waiting": StateWord(icon="held", word=_("Waiting")),
    "accepted": StateWord(icon="kept", word=_("Accepted")),
    "skipped": StateWord(icon="skip", word=_("Skipped")),
    "superseded": StateWord(icon="skip", word=_("Replaced")),
}

COMPENSATION_STATES: dict[str, StateWord] = {
    "registered": StateWord(icon="wait", word=_("Registered")),
    "due": StateWord(icon="compensating", word=_("Compensation due"), tone="runt"),
    "awaiting_approval": StateWord(icon="held", word=_("Waiting for a sign-off")),
    "sent": StateWord(icon="compensating", word=_("Compensating"), tone="runt"),
    "confirmed": StateWord(icon="compensated", word=_("Compensated")),
    "unknown": StateWord(icon="unk", word=_("Compensation unknown"), tone="unkt"),
    "failed": StateWord(icon="compfailed", word=_("Compensation failed"), tone="badt"),
    "skipped_by_operator": StateWord(icon="skip", word=_("Left out by a person")),
    "voided": StateWord(icon="skip", word=_("Not needed")),
}

RUN_STATES: dict[str, StateWord] = {
    "running": StateWord(icon="sent", word=_("Running"), tone="run"),
    "awaiting_approval": StateWord(icon="held", word=_("Waiting for a sign-off")),
    "recovering": StateWord(icon="unk", word=_("Finding out"), tone="unk"),
    "compensating": StateWord(icon="compensating", word=_("Compensating"), tone="run"),
    "handoff": StateWord(icon="hand", word=_("Needs a person"), tone="unk"),
    "completed": StateWord(icon="ok", word=_("Completed"), tone="ok"),
    "compensated": StateWord(icon="compensated", word=_("Compensated"), tone="cmp"),
    "failed_clean": StateWord(icon="bad", word=_("Failed, nothing left behind"), tone="bad"),
    "closed_accepted": StateWord(icon="kept", word=_("Accepted")),
}


@dataclass(frozen=True, kw_only=True)
class ClassWord:
    """How a recovery class looks: `icon` beside a word, `bar` below a mark of the strip."""

    icon: str
    word: Words
    bar: str


READ_ONLY = ClassWord(icon="eye", word=_("Read only"), bar="read")
CLASSES: dict[str, ClassWord] = {
    "retryable": ClassWord(icon="retry", word=_("Safe to retry"), bar="ret"),
    "compensable": ClassWord(icon="back", word=_("Compensable"), bar="cmp"),
    "irreversible": ClassWord(icon="oneway", word=_("Irreversible"), bar="irr"),
    "read_only": READ_ONLY,
}

LEVELS: dict[str, tuple[int, Words, Words]] = {
    "low": (1, _("Low"), _("Low risk")),
    "medium": (2, _("Medium"), _("Medium risk")),
    "high": (3, _("High"), _("High risk")),
    "critical": (4, _("Critical"), _("Critical risk")),
}

ROLES: dict[str, Words] = {
    "operator": _("Operator"),
    "lead": _("Lead operator"),
    "approver": _("Approver"),
    "auditor": _("Auditor"),
    "owner": _("Owner"),
    "admin": _("Administrator"),
    "none": _("No role"),
}

KEY_SUPPORT: dict[str, Words] = {
    "honoured": pgettext_lazy("de-duplication", "by our key"),
    "ignored": pgettext_lazy("de-duplication", "none, the key is ignored"),
    "none": pgettext_lazy("de-duplication", "none"),
}

COMPENSATION_KINDS: dict[str, Words] = {
    "restores": _("restores the old value"),
    "offsets": _("offsets it, the first entry stays"),
    "mitigates": _("only limits harm, the effect stays"),
}

WHO: dict[str, Words] = {
    "automatic": _("the system, by itself"),
    "approval": _("the system, once an approver has signed"),
    "human": _("a person orders it"),
}

ON_FAILURE: dict[str, Words] = {
    "compensate": _("refused: what was done before is compensated"),
    "handoff": _("refused: a person decides"),
    "continue": _("refused: the run goes on"),
}

VIEWS: dict[str, Words] = {
    "open": _("Needs a decision"),
    "mine": _("Mine"),
    "unclaimed": _("Unclaimed"),
    "unknown": _("Outcome unknown"),
    "compensation_failed": _("Compensation failed"),
    "signoff": _("Waiting for sign-off"),
    "money": _("Money touched"),
    "closed": _("Closed"),
}


def state(name: str) -> StateWord:
    """The look of an action's (or strip mark's) state; a name from the future is shown as it is, unmarked."""
    return STATES.get(name) or StateWord(icon="dot", word=name)


def recovery(name: str) -> ClassWord:
    """The look of a recovery class."""
    return CLASSES.get(name) or ClassWord(icon="info", word=name, bar="read")
