"""Why a verb is not possible now: the engine's own reasons, as pure functions of the facts.

Says nothing about who may do what. The sentences are templates with named parts; a screen may translate them by
their code.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sagas import planner
from sagas.escalation import HIGHEST_LEVEL
from sagas.facts import ActionFacts, Obstacle, RunFacts
from sagas.leaving import CAN_RUN, failed_compensations, failed_steps, refused_items, tried
from sagas.reasons import Reason
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, Direction, HandoffState
from sagas.verdicts import is_unknown, not_found_counts_at, unknown_units
from tools.contract import KeySupport

HIGHEST_ESCALATION = HIGHEST_LEVEL

_CAN_BE_TRIED_AGAIN = (ActionState.REJECTED, ActionState.UNKNOWN, ActionState.PARTIAL)

_BESIDE_A_FINAL_RUN = ("claim", "release", "ask_for_case", "assign", "escalate", "mark_acceptable")

_WITHOUT_HANDOFF = ("stop_and_compensate", "pause_compensation", "continue_compensation", "withdraw_signoff")


def obstacle(facts: RunFacts, verb: str, *, step: str = "") -> Obstacle | None:
    """The engine's reason against a verb, or None. Raises `ValueError` for a verb that it does not know."""
    if verb in ("comment", "reopen"):
        return None if verb == "comment" else _reopen(facts)
    handoff = facts.handoff
    if handoff is not None and handoff.linked and handoff.state is not HandoffState.RESOLVED:
        return None if verb in _BESIDE_A_FINAL_RUN else _final(facts)
    if facts.state in FINAL_RUN_STATES:
        return _final(facts)
    if verb not in _WITHOUT_HANDOFF and not planner.handoff_open(facts):
        return _why("no_handoff", "No person is asked about this run just now.")
    if verb not in _CHECKS:
        raise ValueError(verb)
    return _CHECKS[verb](facts, step)


def targets(facts: RunFacts, verb: str) -> tuple[str, ...]:
    """The steps that a verb is about: those it may be used on, and those it would be asked for in vain."""
    actions = planner.current(facts)
    match verb:
        case "query_status" | "resolve_happened" | "resolve_not_happened":
            return tuple(a.step for a in actions if _is_unknown(a))
        case "retry" | "edit_and_retry" | "accept_items" if facts.direction is Direction.UNDO:
            return ()
        case "retry":
            states = _CAN_BE_TRIED_AGAIN
            return tuple(a.step for a in actions if a.state in states or planner.unsigned(a))
        case "edit_and_retry":
            return tuple(a.step for a in actions if a.state is ActionState.REJECTED)
        case "accept_items":
            return tuple(a.step for a in actions if a.items and refused_items(facts, a.step))
        case "redo":
            return tuple(a.step for a in actions if a.state is ActionState.COMPENSATED)[:1]
        case "skip_compensation":
            failed = failed_steps(facts)
            return tuple(a.step for a in actions if a.step in failed)
        case _:
            return ()


def _reopen(facts: RunFacts) -> Obstacle | None:
    for one in facts.handoffs:
        if one.state is not HandoffState.RESOLVED:
            return _why("open_already", "{ref} is open for this run.", ref=one.ref)
    if facts.state not in FINAL_RUN_STATES:
        return _why("goes_on", "The run goes on. A case opens by itself when it needs a person again.")
    return None


def _final(facts: RunFacts) -> Obstacle:
    return _why("final", "This case is closed ({state}). Nothing can be changed.", state=facts.state.value)


def _why(code: str, sentence: str, **params: str | datetime) -> Obstacle:
    """The sentence has its times in UTC; the params keep them whole, for whoever words it again."""
    said = {name: f"{part:%H:%M:%S}" if isinstance(part, datetime) else part for name, part in params.items()}
    kept = {name: part.isoformat() if isinstance(part, datetime) else part for name, part in params.items()}
    return Obstacle(code=code, sentence=sentence.format(**said), params=kept)


def _is_unknown(action: ActionFacts) -> bool:
    return any(is_unknown(unit) for unit in (action.items or (action,)))


def _unknown(facts: RunFacts, step: str) -> ActionFacts | Obstacle:
    for action in planner.current(facts):
        if action.step == step or not step:
            if _is_unknown(action):
                return action
            if action.state is ActionState.SENT:
                return _why("in_flight", "{step} is in flight. Its answer comes first.", step=action.step)
    return _why("nothing_unknown", "The outcome of every step is known.")


def can_be_asked(facts: RunFacts) -> tuple[str, ...]:
    """The steps of unknown outcome whose tool can be asked about them."""
    return tuple(step for step in targets(facts, "query_status") if _query_status(facts, step) is None)


def _query_status(facts: RunFacts, step: str) -> Obstacle | None:
    if not step and can_be_asked(facts):
        return None
    action = _unknown(facts, step)
    if isinstance(action, Obstacle):
        return action
    compensation = action.compensation
    if action.state is not ActionState.UNKNOWN and compensation is not None:
        if planner.has_compensation_query(action, compensation):
            return None
    elif action.contract.status_query is not None:
        return None
    return _why(
        "no_status_query",
        "{tool} offers no status query. Look in {system} and record what you found.",
        tool=action.tool,
        system=action.contract.system,
    )


def _retry(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.direction is Direction.UNDO:
        return _why("turned_back", "Compensation has begun; the run does not go forward again.")
    action = next((a for a in planner.current(facts) if a.step == step), None)
    if action is not None and planner.unsigned(action):
        return None
    if action is None or action.state not in _CAN_BE_TRIED_AGAIN:
        return _why("nothing_to_retry", "No step was rejected.")
    if action.state is ActionState.PARTIAL:
        refused = any(item.state is ActionState.REJECTED for item in action.items)
        return None if refused else _why("nothing_to_retry", "No step was rejected.")
    if action.state is ActionState.REJECTED:
        return None
    if action.contract.idempotency.support is not KeySupport.HONOURED:
        return _why(
            "unknown_and_no_key",
            "Outcome is unknown and {system} does not de-duplicate. Query status first.",
            system=action.contract.system,
            tool=action.tool,
        )
    idempotency = action.contract.idempotency
    if not planner.key_is_kept(facts.now, action.sent_at, idempotency.support, idempotency.retention_s):
        return _why(
            "key_no_longer_kept",
            "{system} no longer keeps the key of this call. Query status first.",
            system=action.contract.system,
            tool=action.tool,
        )
    return None


def _accept_items(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.direction is Direction.UNDO:
        return _why("turned_back", "Compensation has begun; the run does not go forward again.")
    if not refused_items(facts, step):
        return _why("not_refused_item", "Only items that were refused can be accepted as they are.")
    return _waiting(facts)


def _edit_and_retry(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.direction is Direction.UNDO:
        return _why("turned_back", "Compensation has begun; the run does not go forward again.")
    action = next((a for a in planner.current(facts) if a.step == step), None)
    if action is None or action.state is not ActionState.REJECTED:
        return _why("not_rejected", "Only a step that was rejected can be sent with other arguments.")
    return None


def _skip_compensation(facts: RunFacts, step: str) -> Obstacle | None:
    failed = failed_compensations(facts, step)
    if not failed:
        return _why("not_failed", "Only a compensation that was tried and failed can be left out.")
    if not any(tried(action) for action in failed):
        return _why(
            "not_tried",
            "The compensation of {step} has not been tried yet: nobody signed it. Order it once more.",
            step=failed[0].step,
        )
    return None


def _redo(facts: RunFacts, step: str) -> Obstacle | None:
    actions = planner.current(facts)
    action = next((a for a in actions if a.step == step), None)
    if action is None or action.state is not ActionState.COMPENSATED:
        return _why("not_compensated", "Only a step that was compensated can be made once more.")
    for unit in planner.units(facts):
        if is_unknown(unit):
            return _why(
                "unknown_first", "The outcome of {step} is unknown. Query status first.", step=unit.step
            )
        if unit.state is ActionState.SENT:
            return _why("in_flight", "{step} is in flight. Its answer comes first.", step=unit.step)
        if unit.compensation is not None and unit.compensation.state in _UNDER_WAY:
            return _why(
                "compensation_under_way",
                "The compensation of {step} is under way or has failed. It is settled first.",
                step=unit.step,
            )
    first = next(a for a in actions if a.state is ActionState.COMPENSATED)
    if first.step != step:
        return _why(
            "not_the_first",
            "{first} was compensated too and comes first: the run goes forward from there.",
            first=first.step,
        )
    return None


_UNDER_WAY = frozenset(
    {
        CompensationState.DUE,
        CompensationState.AWAITING_APPROVAL,
        CompensationState.SENT,
        CompensationState.FAILED,
    }
)


def _resolve_happened(facts: RunFacts, step: str) -> Obstacle | None:
    action = _unknown(facts, step)
    return action if isinstance(action, Obstacle) else _waiting(facts)


def _resolve_not_happened(facts: RunFacts, step: str) -> Obstacle | None:
    action = _unknown(facts, step)
    if isinstance(action, Obstacle):
        return action
    settled_at = [not_found_counts_at(unit) for unit in unknown_units(facts, action.step)]
    counts_at = max((at for at in settled_at if at is not None), default=None)
    if counts_at is not None and facts.now < counts_at:
        return _why(
            "too_early",
            "It may still arrive: that it is not there counts only from {time}.",
            time=counts_at,
        )
    return _waiting(facts)


def _waiting(facts: RunFacts) -> Obstacle | None:
    """Nothing else is stated while one person's verdict waits for a second person."""
    waits = facts.proposal
    if waits is None or waits.expires_at <= facts.now:
        return None
    return _why(
        "proposal_waits",
        "{who} has stated something that waits for a second person.",
        who=waits.proposed_by_name,
    )


def _of_proposal(facts: RunFacts, step: str) -> Obstacle | None:
    waits = facts.proposal
    if waits is None or waits.expires_at <= facts.now:
        return _why("no_proposal", "Nothing waits for a second person.")
    return None


def _compensate(facts: RunFacts, step: str) -> Obstacle | None:
    for action in planner.current(facts):
        if _is_unknown(action):
            return _why(
                "unknown_first",
                "The outcome of {step} is unknown. Query status first: what never happened must not be compensated.",
                step=action.step,
            )
        if action.state is ActionState.SENT:
            return _why("in_flight", "{step} is in flight. Its answer comes first.", step=action.step)
    open_ones = planner.to_compensate(facts)
    if not open_ones:
        return _why("nothing_to_compensate", "No effect is left to compensate.")
    if step and step != open_ones[0].step:
        return _why(
            "not_the_last",
            "{last} was confirmed later and comes first: compensations run in reverse order.",
            last=open_ones[0].step,
        )
    able = [a for a in open_ones if a.compensation is not None and a.compensation.state in CAN_RUN]
    if not able:
        first = open_ones[0]
        return _why(
            "irreversible",
            "{tool} is irreversible. There is no compensation that could be run.",
            tool=first.tool,
        )
    for action in able:
        compensation = action.compensation
        if compensation is not None and compensation.args is None:
            return _why(
                "unbindable",
                "The compensation of {step} cannot be written down: {detail}",
                step=action.step,
                detail=compensation.error_detail,
            )
    return None


def _mark_acceptable(facts: RunFacts, step: str) -> Obstacle | None:
    for action in planner.current(facts):
        compensation = action.compensation
        if action.state is ActionState.SENT:
            return _why("in_flight", "{step} is in flight. Its answer comes first.", step=action.step)
        if compensation is not None and compensation.state in (
            CompensationState.SENT,
            CompensationState.UNKNOWN,
        ):
            return _why(
                "outstanding",
                "The compensation of {step} is not settled. Query status first.",
                step=action.step,
            )
    if not facts.definition.end_states:
        return _why("no_end_states", "This workflow declares no acceptable end state.")
    return _waiting(facts)


def _escalate(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.handoff is not None and facts.handoff.escalation >= HIGHEST_ESCALATION:
        return _why("highest", "This case is at the highest level already.")
    return None


def _resume(facts: RunFacts, step: str) -> Obstacle | None:
    decision = planner.decide(replace(facts, handoff=None))
    if not isinstance(decision, planner.HandOver):
        return None
    if decision.reason in (Reason.UNKNOWN_UNRESOLVED, Reason.UNKNOWN_WITHOUT_QUERY):
        step_name = decision.action.step if decision.action else ""
        return _why("unknown_first", "The outcome of {step} is unknown. Query status first.", step=step_name)
    return _why("still_stuck", "Nothing has changed yet that would let the run go on.")


def _stop_and_compensate(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.direction is Direction.UNDO:
        if facts.turned_back_at is None:
            return _why("turned_back", "Compensation has begun already.")
        return _why(
            "stopped_already",
            "{who} began the compensation at {time}.",
            who=facts.turned_back_by,
            time=facts.turned_back_at,
        )
    return None


def _pause_compensation(facts: RunFacts, step: str) -> Obstacle | None:
    if facts.direction is not Direction.UNDO or planner.handoff_open(facts):
        return _why("none_runs", "No compensation is under way.")
    if facts.paused_at is not None:
        return _why(
            "paused_already",
            "{who} paused the compensation at {time}.",
            who=facts.paused_by,
            time=facts.paused_at,
        )
    return None


def _continue_compensation(facts: RunFacts, step: str) -> Obstacle | None:
    return None if facts.paused_at is not None else _why("not_paused", "The compensation is not paused.")


def _withdraw_signoff(facts: RunFacts, step: str) -> Obstacle | None:
    return None if planner.asked(facts) else _why("nothing_asked", "Nothing waits for a signature.")


def _claim(facts: RunFacts, step: str) -> Obstacle | None:
    return None


_CHECKS = {
    **dict.fromkeys(("claim", "release", "ask_for_case", "assign"), _claim),
    "query_status": _query_status,
    "retry": _retry,
    "edit_and_retry": _edit_and_retry,
    "accept_items": _accept_items,
    "redo": _redo,
    "skip_compensation": _skip_compensation,
    "resolve_happened": _resolve_happened,
    "resolve_not_happened": _resolve_not_happened,
    "compensate": _compensate,
    "mark_acceptable": _mark_acceptable,
    "confirm_verdict": _of_proposal,
    "decline_verdict": _of_proposal,
    "escalate": _escalate,
    "resume": _resume,
    "stop_and_compensate": _stop_and_compensate,
    "pause_compensation": _pause_compensation,
    "continue_compensation": _continue_compensation,
    "withdraw_signoff": _withdraw_signoff,
}
