"""What to do next with a run: a pure function from facts to one decision, and the state that follows from facts.

Reads nothing, writes nothing, knows no clock but `facts.now`. The ledger asks it under the run's lock, after
every move, until the answer is something that happens outside or a wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sagas.facts import ActionFacts, CompensationFacts, FreezeFacts, PermitFacts, RunFacts
from sagas.reasons import Reason
from sagas.states import (
    FINAL_RUN_STATES,
    ActionState,
    CompensationState,
    Direction,
    HandoffState,
    PermitState,
    RunState,
)
from tools.contract import (
    Compensation,
    CompensationKind,
    ErrorClass,
    KeySupport,
    RecoveryClass,
    RetryRule,
    Who,
)
from tools.definition import OnFailure


@dataclass(frozen=True, kw_only=True)
class ReadPrior:
    """Read the state before the write and keep it as its snapshot (S1-10)."""

    action: ActionFacts


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """Bind the arguments and put key and compensation on record (law 2)."""

    action: ActionFacts


@dataclass(frozen=True, kw_only=True)
class Send:
    """Mark as sent and make the call. `again` = an unknown call repeated under its honoured key."""

    action: ActionFacts
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Query:
    """Ask the tool what became of an unknown call, or of an unknown compensation of the action."""

    action: ActionFacts
    compensation: CompensationFacts | None = None


@dataclass(frozen=True, kw_only=True)
class Refuse:
    """Give up a call that was never carried out."""

    action: ActionFacts
    error_class: ErrorClass
    detail: str


@dataclass(frozen=True, kw_only=True)
class TurnBack:
    """Start compensating: a definite failure of `action`."""

    action: ActionFacts


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Make a registered compensation due: nothing confirmed later is left before it."""

    action: ActionFacts
    compensation: CompensationFacts


@dataclass(frozen=True, kw_only=True)
class Check:
    """Look before the leap: is it done already, and do the preconditions hold (S0-38)."""

    action: ActionFacts
    compensation: CompensationFacts


@dataclass(frozen=True, kw_only=True)
class Resend:
    """Make an unknown compensation due again under its honoured key."""

    action: ActionFacts
    compensation: CompensationFacts


@dataclass(frozen=True, kw_only=True)
class Lose:
    """The answer that a 202 promised did not come in time: nobody knows what became of the call."""

    action: ActionFacts


@dataclass(frozen=True, kw_only=True)
class AskApproval:
    """Ask for the signature that the contract wants before this call, or before its compensation."""

    action: ActionFacts
    compensation: CompensationFacts | None = None


@dataclass(frozen=True, kw_only=True)
class LapseApproval:
    """A request that nobody decided in time, or a signature that was not used in time, is over."""

    action: ActionFacts
    compensation: CompensationFacts | None = None


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """A person is needed."""

    reason: Reason
    action: ActionFacts | None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The run has reached an end state."""

    state: RunState


@dataclass(frozen=True, kw_only=True)
class ReadOn:
    """The picture is a part of the run, and what follows depends on what is not in it."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing to do until `until`; None = until something happens. `held`: a freeze keeps it, the one `by` number."""

    until: datetime | None
    held: bool = False
    by: int | None = None


type Decision = (
    ReadPrior
    | Prepare
    | Send
    | Query
    | Refuse
    | TurnBack
    | Turn
    | Check
    | Resend
    | Lose
    | AskApproval
    | LapseApproval
    | HandOver
    | Finish
    | ReadOn
    | Wait
)

MOST_TOGETHER = 8
"""Calls and reads of one run that are out at the same time; more steps of a group follow as answers come in."""

_DONE_FORWARD = frozenset(
    {ActionState.CONFIRMED, ActionState.ACCEPTED, ActionState.SKIPPED, ActionState.COMPENSATED}
)


def current(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """The actions that count, in order of position: superseded generations are left out."""
    return tuple(
        sorted(
            (action for action in facts.actions if action.state is not ActionState.SUPERSEDED),
            key=lambda action: action.position,
        )
    )


def units(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """What takes effect by itself: every action, and in the place of a call over many its items."""
    return tuple(unit for action in current(facts) for unit in (action.items or (action,)))


def handoff_open(facts: RunFacts) -> bool:
    """Whether a person has the run."""
    return (
        facts.handoff is not None
        and not facts.handoff.linked
        and facts.handoff.state != HandoffState.RESOLVED
    )


def state_of(facts: RunFacts) -> RunState:
    """The state that follows from the facts (engine.md, section 10): final > handoff > recovering >
    awaiting_approval > compensating or running. Final states are set by `Finish` alone.
    """
    if facts.state in FINAL_RUN_STATES:
        return facts.state
    if handoff_open(facts):
        return RunState.HANDOFF
    actions = units(facts)
    compensations = [action.compensation for action in actions if action.compensation]
    if any(action.state is ActionState.UNKNOWN for action in actions) or any(
        compensation.state is CompensationState.UNKNOWN for compensation in compensations
    ):
        return RunState.RECOVERING
    if any(compensation.state is CompensationState.AWAITING_APPROVAL for compensation in compensations):
        return RunState.AWAITING_APPROVAL
    if any(awaits_signature(action) for action in (*current(facts), *actions)):
        return RunState.AWAITING_APPROVAL
    return RunState.COMPENSATING if facts.direction is Direction.UNDO else RunState.RUNNING


def effects_left(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """The actions whose effect stands in the world, in order of confirmation (law 7).

    Reads have none. What is accepted counts, its effect known or not, unless it was rejected before: then there is
    none. A mitigated effect stays.
    """
    return tuple(
        sorted(
            (a for a in units(facts) if a.contract.has_effect and _stands(a)),
            key=lambda action: (action.confirm_seq or 0, action.position),
        )
    )


def _stands(action: ActionFacts) -> bool:
    if action.state is ActionState.ACCEPTED:
        return not action.let_be
    return action.state in (ActionState.CONFIRMED, ActionState.PARTIAL)


def decide(
    facts: RunFacts, out: frozenset[int] = frozenset(), parked: frozenset[int] = frozenset()
) -> Decision:
    """The next thing to do with the run. `out`: the actions that a call or a read is out for at this moment.

    `parked`: those that wait for their turn at a gate, as if nothing could be done about them just now.
    """
    if facts.quarantined:
        return Wait(until=None)
    actions = units(facts)
    disputed = [action for action in actions if is_disputed(action) and action.id not in out | parked]
    if due := [action for action in disputed if action.due_at is not None and action.due_at <= facts.now]:
        return Query(action=due[0])
    if facts.state in FINAL_RUN_STATES:
        return Wait(until=_earliest(action.due_at for action in disputed))
    for action in actions:
        # `due_at` of a sent action is the time by which its promised answer must be there.
        if action.state is ActionState.SENT and action.due_at is not None and action.due_at <= facts.now:
            return Lose(action=action)
    if any(a.compensation and a.compensation.state is CompensationState.SENT for a in actions):
        return Wait(until=None)
    promised = Wait(until=_earliest(a.due_at for a in actions if a.state is ActionState.SENT))
    busy = out | parked
    waiting = bool(busy) or any(action.state is ActionState.SENT for action in actions)
    if handoff_open(facts):
        return promised if waiting else _while_handed_off(facts, actions)
    flying = out | {a.id for a in actions if a.state is ActionState.SENT and a.due_at is None}
    if unsettled := [_unsettled(facts, action, busy) for action in actions if is_unknown(action)]:
        return _first([*unsettled, promised], flying)
    if facts.direction is Direction.FORWARD:
        return _forward(facts, busy, flying)
    if waiting:
        return promised
    following = _back(facts, actions)
    # Paused: what is under way is brought to its end, what a person has to see is shown, nothing further begins.
    begins = isinstance(following, Turn | Check | AskApproval)
    return Wait(until=None) if begins and facts.paused_at is not None else following


def is_disputed(action: ActionFacts) -> bool:
    """Whether two opposite things were said of a confirmed action for one moment, so that its system is asked."""
    return (
        action.state is ActionState.CONFIRMED
        and action.due_at is not None
        and action.contract.status_query is not None
    )


def _first(found: list[Decision], flying: frozenset[int]) -> Decision:
    """Of what is found at the same time: what can be done, else what a person is asked, else the next time to look.

    A person is asked once nothing is out any more that could change the picture.
    """
    person = None
    for one in found:
        if isinstance(one, HandOver):
            person = person or one
        elif not isinstance(one, Wait) and len(flying) < MOST_TOGETHER:
            return one
    if person is not None and not flying:
        return person
    waits = [one for one in found if isinstance(one, Wait)]
    by = next((one.by for one in waits if one.held), None)
    return Wait(until=_earliest(one.until for one in waits), held=any(one.held for one in waits), by=by)


# --- Forward ------------------------------------------------------------------------------------------------


def _forward(facts: RunFacts, out: frozenset[int], flying: frozenset[int]) -> Decision:
    for front in fronts(facts):
        found = [one for action in front if (one := _of_step(facts, action, out)) is not None]
        if found and (elsewhere := _in_flight(current(facts)) - _in_flight(front)):
            return Wait(until=_earliest(a.due_at for a in units(facts) if a.id in elsewhere))
        for one in found:
            if isinstance(one, TurnBack):
                return one
        if any(isinstance(one, HandOver) for one in found):
            # Nothing new goes out beside what a person has to see first.
            found = [one for one in found if isinstance(one, HandOver | Wait)]
        if found:
            return _first(found, flying)
    if out:
        return Wait(until=None)
    if not facts.whole:
        return ReadOn()
    accepted = any(action.state is ActionState.ACCEPTED for action in (*current(facts), *units(facts)))
    return Finish(state=RunState.CLOSED_ACCEPTED if accepted else RunState.COMPLETED)


def _in_flight(actions: Iterable[ActionFacts]) -> set[int]:
    parts = (part for action in actions for part in (action.items or (action,)))
    return {part.id for part in parts if part.state is ActionState.SENT}


def fronts(facts: RunFacts) -> tuple[tuple[ActionFacts, ...], ...]:
    """The steps in the order in which they go out, those of a group together; held sends come last (S2-9)."""
    found: dict[int, list[ActionFacts]] = {}
    for action in current(facts):
        found.setdefault(facts.definition.front_of(action.step), []).append(action)
    return tuple(tuple(found[number]) for number in sorted(found))


def _of_step(facts: RunFacts, action: ActionFacts, out: frozenset[int]) -> Decision | None:
    """What comes next of one step. None: it is settled, as far as the step declares that it has to be."""
    if action.state in _DONE_FORWARD:
        return None
    parts = action.items or (action,)
    if action.id in out or any(part.id in out for part in parts):
        return Wait(until=None)
    if any(part.state is ActionState.SENT for part in parts):
        return Wait(until=_earliest(part.due_at for part in parts if part.state is ActionState.SENT))
    match action.state:
        case ActionState.REJECTED:
            match on_rejected(facts, action):
                case OnFailure.CONTINUE:
                    return None
                case OnFailure.HANDOFF:
                    return HandOver(reason=Reason.REJECTED, action=action, detail=action.error_detail)
                case OnFailure.COMPENSATE:
                    return TurnBack(action=action)
        case ActionState.NOT_STARTED:
            return _before_sending(facts, action) or Prepare(action=action)
        case ActionState.PREPARED:
            return _before_sending(facts, action) or Send(action=action)
        case ActionState.SENT | ActionState.PARTIAL if action.items and action.contract.items is None:
            return _next_item(facts, action)
        case ActionState.PARTIAL:
            return _part_done(facts, action)
        case _:  # unknown was dealt with, superseded was left out
            return Wait(until=None)


def _next_item(facts: RunFacts, whole: ActionFacts) -> Decision | None:
    """The next call of a loop. None: the step declares that the run goes on without what was refused."""
    for item in whole.items:
        if item.state in _DONE_FORWARD:
            continue
        match item.state:
            case ActionState.NOT_STARTED:
                return _before_sending(facts, item) or Prepare(action=item)
            case ActionState.PREPARED:
                return _before_sending(facts, item) or Send(action=item)
            case ActionState.REJECTED:
                match on_rejected(facts, whole):
                    case OnFailure.CONTINUE:
                        continue
                    case OnFailure.HANDOFF:
                        return HandOver(reason=Reason.PARTIAL, action=whole, detail=item.error_detail)
                    case OnFailure.COMPENSATE:
                        return TurnBack(action=whole)
            case _:
                return Wait(until=None)
    return None


def _part_done(facts: RunFacts, action: ActionFacts) -> Decision | None:
    """A call over many that is done in part: its open items go out again, the refused ones decide (S0-56).

    None: the step declares that the run goes on without them.
    """
    if any(item.state is ActionState.PREPARED for item in action.items):
        due = _earliest(item.due_at for item in action.items if item.state is ActionState.PREPARED)
        if due is not None and due > facts.now:
            return Wait(until=due)
        return _before_sending(facts, action) or Send(action=action)
    match on_rejected(facts, action):
        case OnFailure.CONTINUE:
            return None
        case OnFailure.COMPENSATE if not _is_pivot(action):
            return TurnBack(action=action)
        case _:
            return HandOver(reason=Reason.PARTIAL, action=action, detail=action.error_detail)


def _is_pivot(action: ActionFacts) -> bool:
    """Whether a part took effect that nothing takes back: turning back would stop at once, and close the way forward."""
    irreversible = action.contract.recovery_class is RecoveryClass.IRREVERSIBLE
    return irreversible and any(item.state is ActionState.CONFIRMED for item in action.items)


def _before_sending(facts: RunFacts, action: ActionFacts) -> Decision | None:
    """What must come before the call: its time, the end of a freeze, a fresh prior state."""
    if action.due_at is not None and action.due_at > facts.now:
        return Wait(until=action.due_at)
    if (held := _held(facts, action.tool)) is not None:
        return held
    prior = action.contract.prior_state
    if prior is not None and not _prior_is_fresh(facts, action, prior.max_age_s):
        return ReadPrior(action=action)
    if action.state in _COULD_BE_SENT and action.contract.require_confirmation:
        return _before_confirmed(facts, action)
    return None


_COULD_BE_SENT = frozenset({ActionState.PREPARED, ActionState.PARTIAL})


def awaits_signature(action: ActionFacts) -> bool:
    """Whether the forward call waits for somebody to sign it."""
    permit = action.permit
    return action.state in _COULD_BE_SENT and permit is not None and permit.state is PermitState.REQUESTED


def asked(facts: RunFacts) -> tuple[PermitFacts, ...]:
    """The signatures that somebody is asked for just now."""
    permits = [
        permit
        for unit in (*current(facts), *units(facts))
        for permit in (unit.permit, unit.compensation.permit if unit.compensation else None)
        if permit is not None and permit.state is PermitState.REQUESTED and permit.expires_at > facts.now
    ]
    return tuple({permit.ref: permit for permit in permits}.values())


def unsigned(action: ActionFacts) -> bool:
    """Whether the signature that the forward call waits for was asked for in vain: nobody answered in time, or it is
    void.
    """
    permit = action.permit
    return (
        action.state is ActionState.PREPARED
        and permit is not None
        and permit.state in (PermitState.EXPIRED, PermitState.WITHDRAWN)
        and permit.decided_at is None
    )


def _before_confirmed(facts: RunFacts, action: ActionFacts) -> Decision | None:
    """What must come before a forward call that its contract wants confirmed; None when it is, and freshly."""
    return _signature(
        facts,
        action.permit,
        ask=AskApproval(action=action),
        lapse=LapseApproval(action=action),
        unsigned=HandOver(reason=Reason.APPROVAL_EXPIRED, action=action),
        repeated=action.attempts_used + action.refusals > 0,
    )


def _prior_is_fresh(facts: RunFacts, action: ActionFacts, max_age_s: float) -> bool:
    """Once a call of this generation was sent its snapshot is final: a later read could show our own effect."""
    if action.prior_read_at is None:
        return False
    if action.sent_at is not None:
        return True
    permit = action.permit
    if permit is not None and permit.decided_at is not None and action.prior_read_at < permit.decided_at:
        return False  # what was there may have changed while a person thought it over
    return facts.now - action.prior_read_at <= timedelta(seconds=max_age_s)


def on_rejected(facts: RunFacts, action: ActionFacts) -> OnFailure:
    """What a definite failure of this step leads to: the step's own word, else the definition's."""
    return facts.definition.step(action.step).on_rejected or facts.definition.on_failure


# --- Unknown ------------------------------------------------------------------------------------------------


def is_unknown(action: ActionFacts) -> bool:
    """Whether nobody knows what became of the call, or of its compensation."""
    made_up = action.compensation
    return action.state is ActionState.UNKNOWN or (
        made_up is not None and made_up.state is CompensationState.UNKNOWN
    )


def _unsettled(facts: RunFacts, action: ActionFacts, out: frozenset[int]) -> Decision:
    if action.id in out:
        return Wait(until=None)
    if action.state is ActionState.UNKNOWN or action.compensation is None:
        return _settle(facts, action)
    return _settle_compensation(facts, action, action.compensation)


def _settle(facts: RunFacts, action: ActionFacts) -> Decision:
    """Only evidence settles `unknown` (law 4): the query, or a repeat under a key that is honoured and kept."""
    due = action.due_at is None or action.due_at <= facts.now
    if action.repeat_ordered and can_repeat(facts, action):
        return _held(facts, action.tool) or Send(action=action, again=True)
    if action.contract.status_query is not None:
        if _recovery_is_over(facts, action.unknown_since):
            return HandOver(reason=Reason.UNKNOWN_UNRESOLVED, action=action, detail=action.error_detail)
        return Query(action=action) if due else Wait(until=action.due_at)
    if can_repeat(facts, action):
        if not due:
            return Wait(until=action.due_at)
        if (held := _held(facts, action.tool)) is not None:
            return held
        return Send(action=action, again=True)
    return HandOver(reason=Reason.UNKNOWN_WITHOUT_QUERY, action=action, detail=action.error_detail)


def can_repeat(facts: RunFacts, action: ActionFacts) -> bool:
    """Whether the same call may go out again: a read, or a key that is honoured, still kept, with tries left."""
    if action.attempts_used >= max(rule(action.contract.retry, error).max_attempts for error in _UNANSWERED):
        return False
    if action.contract.require_confirmation and not _still_covers(facts, action.permit):
        return False
    return not action.contract.has_effect or key_is_kept(
        facts.now,
        action.sent_at,
        action.contract.idempotency.support,
        action.contract.idempotency.retention_s,
    )


def key_is_kept(
    now: datetime, sent_at: datetime | None, support: KeySupport, retention_s: float | None
) -> bool:
    """Whether the tool still knows the key: honoured, and within the time it is kept (None = for good)."""
    if support is not KeySupport.HONOURED:
        return False
    return retention_s is None or sent_at is None or now < sent_at + timedelta(seconds=retention_s)


def _settle_compensation(facts: RunFacts, action: ActionFacts, compensation: CompensationFacts) -> Decision:
    due = compensation.due_at is None or compensation.due_at <= facts.now
    if has_compensation_query(action, compensation):
        if _recovery_is_over(facts, compensation.unknown_since):
            return HandOver(reason=Reason.COMPENSATION_UNKNOWN, action=action)
        return Query(action=action, compensation=compensation) if due else Wait(until=compensation.due_at)
    idempotency = compensation.contract.idempotency
    kept = key_is_kept(facts.now, compensation.sent_at, idempotency.support, idempotency.retention_s)
    budget = max(rule(compensation.contract.retry, error).max_attempts for error in _UNANSWERED)
    if kept and compensation.attempts_used < budget:
        return Resend(action=action, compensation=compensation) if due else Wait(until=compensation.due_at)
    return HandOver(reason=Reason.COMPENSATION_UNKNOWN, action=action)


def has_compensation_query(action: ActionFacts, compensation: CompensationFacts) -> bool:
    """Whether the outcome of a compensating call can be asked for: by its own query, or by looking at the effect."""
    declared = action.contract.compensation
    return compensation.contract.status_query is not None or (
        declared is not None and (declared.already_done is not None or declared.verify is not None)
    )


def _recovery_is_over(facts: RunFacts, since: datetime | None) -> bool:
    return since is not None and facts.now >= since + timedelta(seconds=facts.definition.recovery_deadline_s)


# --- Back ---------------------------------------------------------------------------------------------------


def to_compensate(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """Confirmed actions with an effect, in strictly the reverse order of confirmation (law 6, S0-36, S2-10)."""
    return tuple(
        sorted(
            (
                action
                for action in units(facts)
                if action.contract.has_effect and action.state in (ActionState.CONFIRMED, ActionState.PARTIAL)
            ),
            key=lambda action: -(action.confirm_seq or 0),
        )
    )


def compensation_order(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """The steps that took effect and have a compensation, in the order in which it runs or ran; done ones included."""
    found = []
    for action in current(facts):
        confirmed = [
            unit.confirm_seq
            for unit in (action.items or (action,))
            if unit.confirm_seq is not None and unit.compensation is not None
        ]
        if confirmed and action.contract.has_effect:
            found.append((max(confirmed), action))
    return tuple(action for __, action in sorted(found, key=lambda one: -one[0]))


def _back(facts: RunFacts, actions: tuple[ActionFacts, ...]) -> Decision:
    remaining = to_compensate(facts)
    for action in remaining:
        compensation = action.compensation
        if compensation is None:
            if not any(
                later.compensation
                and later.compensation.state in _OUTSTANDING
                and ordered(later.compensation)
                for later in remaining[remaining.index(action) + 1 :]
            ):
                if not facts.whole:
                    return ReadOn()
                return HandOver(reason=_without_compensation(action), action=action)
            continue
        match compensation.state:
            case CompensationState.REGISTERED:
                if compensation.args is None:
                    return HandOver(reason=Reason.COMPENSATION_UNBINDABLE, action=action)
                return Turn(action=action, compensation=compensation)
            case CompensationState.DUE:
                return _due(facts, action, compensation)
            case CompensationState.FAILED:
                gone = compensation.error_class == Reason.TOOL_WITHDRAWN
                reason = Reason.TOOL_WITHDRAWN if gone else Reason.COMPENSATION_FAILED
                return HandOver(reason=reason, action=action, detail=compensation.error_detail)
            case CompensationState.AWAITING_APPROVAL:
                permit = compensation.permit
                if permit is None or permit.expires_at <= facts.now:
                    return LapseApproval(action=action, compensation=compensation)
                return Wait(until=permit.expires_at)
            case CompensationState.CONFIRMED if compensation.kind == CompensationKind.MITIGATES:
                continue
            case _:
                return HandOver(reason=Reason.NO_COMPENSATION, action=action)
    if not facts.whole:
        return ReadOn()
    left = effects_left(facts)
    if left and all(action.state is ActionState.ACCEPTED for action in left):
        return Finish(state=RunState.CLOSED_ACCEPTED)
    if left:
        return HandOver(reason=Reason.EFFECTS_LEFT, action=left[-1])
    ever = any(action.state is ActionState.COMPENSATED for action in actions)
    return Finish(state=RunState.COMPENSATED if ever else RunState.FAILED_CLEAN)


_OUTSTANDING = frozenset({CompensationState.REGISTERED, CompensationState.DUE, CompensationState.FAILED})


def ordered(compensation: CompensationFacts) -> bool:
    """Whether a person set this compensation going, past a pivot that stops the automatic ones."""
    return bool(compensation.ordered_by)


def _due(facts: RunFacts, action: ActionFacts, compensation: CompensationFacts) -> Decision:
    if compensation.due_at is not None and compensation.due_at > facts.now:
        return Wait(until=compensation.due_at)
    if compensation.who == Who.APPROVAL and (first := _before_signed(facts, action, compensation)):
        return first
    if compensation.who == Who.HUMAN and not ordered(compensation):
        return HandOver(reason=Reason.PIVOT, action=action)
    if (held := _held(facts, compensation.tool, compensating=True)) is not None:
        return held
    return Check(action=action, compensation=compensation)


def _before_signed(facts: RunFacts, action: ActionFacts, compensation: CompensationFacts) -> Decision | None:
    """What must come before a compensation that needs a signature; None when it is signed, and freshly."""
    return _signature(
        facts,
        compensation.permit,
        ask=AskApproval(action=action, compensation=compensation),
        lapse=LapseApproval(action=action, compensation=compensation),
        unsigned=HandOver(reason=Reason.APPROVAL_EXPIRED, action=action),
        repeated=compensation.attempts_used + compensation.refusals > 0,
    )


def _signature(
    facts: RunFacts,
    permit: PermitFacts | None,
    *,
    ask: AskApproval,
    lapse: LapseApproval,
    unsigned: HandOver,
    repeated: bool,
) -> Decision | None:
    """What must come before a call that needs a signature; None when it may go out.

    Silence is never a yes: a request that expired goes to a person. A signature covers repeats of the very same call
    under its key while it is fresh; one that was not used in time is asked for again.
    """
    if permit is None:
        return ask
    fresh = permit.expires_at > facts.now
    match permit.state:
        case PermitState.REQUESTED:
            return Wait(until=permit.expires_at) if fresh else lapse
        case PermitState.GRANTED:
            return None if fresh else lapse
        case PermitState.CONSUMED:
            return None if repeated and _still_covers(facts, permit) else ask
        case PermitState.EXPIRED if permit.decided_at is None:
            return unsigned
        case _:
            return ask


def _still_covers(facts: RunFacts, permit: PermitFacts | None) -> bool:
    """Whether a signature that was used up covers a repeat of the same call (decision record 0009)."""
    return permit is not None and permit.state is PermitState.CONSUMED and permit.expires_at > facts.now


def _without_compensation(action: ActionFacts) -> Reason:
    irreversible = action.contract.recovery_class is RecoveryClass.IRREVERSIBLE
    return Reason.PIVOT if irreversible else Reason.NO_COMPENSATION


# --- With a person ------------------------------------------------------------------------------------------


def _while_handed_off(facts: RunFacts, actions: tuple[ActionFacts, ...]) -> Decision:
    """In a handoff the queries go on; advancing does not (engine.md, section 10)."""
    waits: list[datetime | None] = [facts.proposal.expires_at if facts.proposal else None]
    for action in actions:
        compensation = action.compensation
        if action.state is ActionState.UNKNOWN and action.contract.status_query is not None:
            if action.due_at is None or action.due_at <= facts.now:
                return Query(action=action)
            waits.append(action.due_at)
        if (
            compensation is not None
            and compensation.state is CompensationState.UNKNOWN
            and has_compensation_query(action, compensation)
        ):
            if compensation.due_at is None or compensation.due_at <= facts.now:
                return Query(action=action, compensation=compensation)
            waits.append(compensation.due_at)
    return Wait(until=_earliest(waits))


# --- Shared -------------------------------------------------------------------------------------------------

_UNANSWERED = (ErrorClass.NO_ANSWER, ErrorClass.SERVER, ErrorClass.GARBAGE)
_ONCE = RetryRule(max_attempts=1)


def rule(rules: Mapping[ErrorClass, RetryRule], error_class: ErrorClass) -> RetryRule:
    """The contract's retry rule for an error class; without one a call is made once."""
    return rules.get(error_class, _ONCE)


def rule_of_unknown(rules: Mapping[ErrorClass, RetryRule], error_class: ErrorClass) -> RetryRule:
    """The rule for a call whose outcome was unknown and is proved absent now.

    What the answer looked like decides where the contract says so; else it counts as no answer: a page of a proxy
    with a status that means something elsewhere says no more than silence.
    """
    return rules.get(error_class) or rule(rules, ErrorClass.NO_ANSWER)


def backoff(retry: RetryRule, tries: int) -> timedelta:
    """The delay after the n-th try (n from 1)."""
    seconds = retry.first_delay_s * retry.factor ** max(tries - 1, 0)
    return timedelta(seconds=min(seconds, retry.max_delay_s))


def frozen(facts: RunFacts, tool: str, *, compensating: bool) -> bool:
    """Whether a freeze in force stops this call. Status queries are never asked about: they always go on (S4-1)."""
    return freeze_on(facts, tool, compensating=compensating) is not None


def freeze_on(facts: RunFacts, tool: str, *, compensating: bool) -> FreezeFacts | None:
    """The freeze in force that stops this call, if any."""
    names = {"all", f"tool:{tool}", f"workflow:{facts.definition.name}", f"team:{facts.team}"}
    for freeze in facts.freezes:
        if freeze.applies_to in names and (not compensating or freeze.scope in ("writes", "everything")):
            return freeze
    return None


def _held(facts: RunFacts, tool: str, *, compensating: bool = False) -> Wait | None:
    freeze = freeze_on(facts, tool, compensating=compensating)
    return None if freeze is None else Wait(until=None, held=True, by=freeze.id)


def declared_compensation(action: ActionFacts) -> Compensation:
    """The contract's compensation of an action that has one. Raises `ValueError` when it has none."""
    if action.contract.compensation is None:
        raise ValueError(f"{action.tool} declares no compensation")
    return action.contract.compensation


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    known = [time for time in times if time is not None]
    return min(known) if known else None
