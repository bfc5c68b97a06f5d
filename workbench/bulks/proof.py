"""What became of a case after its command was accepted: done means read back, never accepted. Decides on facts only.

The only call made here is the read that proves a repeated step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import RunFacts
from sagas.states import FINAL_RUN_STATES, ActionState, RunState
from workbench import policies
from workbench.errors import Sentence
from workbench.models import BulkMember
from workbench.models.bulk import MemberState

MOST_READS = 3
"""A read-back that is not answered so often is an answer: nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The end of one case in a bulk, with its sentence; or `again`: a read was not answered, ask once more."""

    state: MemberState = MemberState.SENT
    code: str = ""
    sentence: Sentence | None = None
    again: bool = False


def prove(verb: str, member: BulkMember, facts: RunFacts, *, arguments: dict[str, Any]) -> Proof | None:
    """How it ended; None while it is still under way."""
    match verb:
        case "query_status":
            return _of_query(member, facts)
        case "retry":
            return _of_retry(member, facts)
        case "mark_acceptable":
            return _of_acceptance(facts)
        case "assign":
            held = policies.holder(facts)
            if held is not None and held.claimed_by == arguments.get("person"):
                text = _("%(who)s has it.")
                return _proof(MemberState.VERIFIED, "handed_over", text, who=held.claimed_by_name)
            return _proof(MemberState.FAILED, "moved_on", _("Somebody else has it by now."))
        case _:
            return _proof(MemberState.VERIFIED, "recorded", _("It is on record."))


def _of_query(member: BulkMember, facts: RunFacts) -> Proof | None:
    """Settled by the answer, or asked once more than before without becoming known."""
    if not member.step:
        return _of_queries(member, facts)
    action = facts.action(member.step)
    made_up = action.compensation
    unknown = [one for one in (action.items or (action,)) if one.state is ActionState.UNKNOWN]
    if not unknown and (made_up is None or made_up.state.value != "unknown"):
        text = _("The answer settled it: %(state)s.")
        word = str(made_up.state) if made_up is not None and action.state is ActionState.CONFIRMED else ""
        state = word if word not in ("", "registered", "voided") else str(action.state)
        return _proof(MemberState.VERIFIED, "settled", text, state=state)
    if asked(facts, member.step) > member.queried:
        return _proof(
            MemberState.NO_ANSWER, "still_unknown", _("It was asked and gave no answer. It stays unknown.")
        )
    return None


def _of_queries(member: BulkMember, facts: RunFacts) -> Proof | None:
    """The same for a case whose unknown steps were all asked about."""
    left = dict.fromkeys(call.step for call in api.preview(facts, "query_status").calls)
    if not left:
        text = _("The answers settled it: no step is unknown any more.")
        return _proof(MemberState.VERIFIED, "settled", text)
    if asked(facts, "") >= member.queried + len(member.calls):
        text = _("It was asked and gave no answer about %(steps)s. That stays unknown.")
        return _proof(MemberState.NO_ANSWER, "still_unknown", text, steps=", ".join(left))
    return None


def asked(facts: RunFacts, step: str) -> int:
    """How many queries about a step, its parts and what makes up for it were made so far; "" about all of them."""
    actions = (facts.action(step),) if step else facts.actions
    units = (unit for action in actions for unit in (action, *action.items))
    return sum(one.queries + (one.compensation.queries if one.compensation else 0) for one in units)


def _of_retry(member: BulkMember, facts: RunFacts) -> Proof | None:
    action = facts.action(member.step)
    if action.state is ActionState.CONFIRMED:
        return _read_back(member, facts)
    if policies.open_handoff(facts) is None and facts.state not in FINAL_RUN_STATES:
        return None
    match action.state:
        case ActionState.REJECTED:
            text = _("It was refused again: %(detail)s")
            detail = action.error_detail[:300] or action.error_class
            return _proof(MemberState.FAILED, "rejected", text, detail=detail)
        case ActionState.UNKNOWN | ActionState.SENT:
            return _proof(MemberState.NO_ANSWER, "unknown", _("No answer came. Its outcome is not known."))
        case state:
            text = _("It came back to a person: %(state)s.")
            return _proof(MemberState.FAILED, "came_back", text, state=str(state))


def _read_back(member: BulkMember, facts: RunFacts) -> Proof:
    seen = api.look(facts, "read_back", step=member.step)
    if seen.verified:
        return _proof(MemberState.VERIFIED, "read_back", _("Confirmed and read back."))
    if seen.verified is None and not seen.detail:
        text = _("Confirmed by its answer. The tool offers no read.")
        return _proof(MemberState.VERIFIED, "no_read", text)
    if member.asked + 1 < MOST_READS:
        return Proof(again=True)
    if seen.verified is None:
        text = _("Confirmed by its answer, but the read that should prove it gave no answer.")
        return _proof(MemberState.NO_ANSWER, "not_read_back", text)
    text = _("Confirmed by its answer, but the read does not find it.")
    return _proof(MemberState.FAILED, "not_there", text)


def _of_acceptance(facts: RunFacts) -> Proof | None:
    if facts.state is RunState.CLOSED_ACCEPTED or policies.open_handoff(facts) is None:
        return _proof(MemberState.VERIFIED, "closed", _("Accepted and closed; every condition was read."))
    return _proof(
        MemberState.FAILED, "takes_two", _("It is on record and waits for a second person to confirm it.")
    )


def _proof(end: MemberState, code: str, text: object, **parts: object) -> Proof:
    return Proof(state=end, code=code, sentence=Sentence(text, parts))
