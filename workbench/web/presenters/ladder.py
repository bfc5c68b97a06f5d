"""The ladder: steps top-down as they were done, compensations read bottom-up as they run, and what that has come to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas import api
from sagas.facts import ActionFacts, CompensationFacts, RunFacts
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, Direction, HandoffState
from workbench.web.presenters import known, marks, steps, text, words
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.words import ClassWord, StateWord, Words

_DAY = timedelta(hours=24)
"""Within which a compensation that was begun has to be settled (S2-12)."""
_IN_EFFECT = frozenset({ActionState.CONFIRMED, ActionState.PARTIAL, ActionState.ACCEPTED})
_TONES: Mapping[CompensationState, str] = {
    CompensationState.CONFIRMED: "done",
    CompensationState.SENT: "cur",
    CompensationState.FAILED: "bad",
    CompensationState.UNKNOWN: "unk",
    CompensationState.SKIPPED_BY_OPERATOR: "no",
}


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A step and what makes up for it. `order` is the number in running order, "" where nothing runs."""

    number: int
    step: str
    tool: str
    about: SafeString
    state: StateWord
    recovery: ClassWord
    order: str
    tone: str
    made_up: StateWord | None
    makes_up: Words
    note: Words
    dim: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the matrix: done, made up for, and what is there now with its source."""

    step: str
    forward: StateWord
    back: StateWord | None
    now: SafeString
    more: SafeString | None
    source: SafeString
    question: bool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a plan has come; only what is verified counts as done."""

    verified: int
    of: int
    says: str


@dataclass(frozen=True, kw_only=True)
class UnderWay:
    """A compensation that runs by itself; `paused` says who keeps the next one from beginning."""

    progress: Progress
    rungs: tuple[Rung, ...]
    paused: str


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A compensation that nobody knows the end of, or that failed."""

    step: str
    key: str
    since: str
    tries: str
    following: Words
    gone_by: str


@dataclass(frozen=True, kw_only=True)
class Halfway:
    """A compensation that stopped between the two ends. `worlds` counts what is made up for, unknown and in effect."""

    worlds: str
    says: str
    rungs: tuple[Rung, ...]
    rows: tuple[Row, ...]
    pending: tuple[Pending, ...]


def halfway(facts: RunFacts, clock: Clock) -> Halfway | None:
    """The double half-done state of a run whose compensation has come to a person; None for every other."""
    handed = facts.handoff is not None and facts.handoff.state is not HandoffState.RESOLVED
    stuck = [action for action in steps.current(facts) if _stuck(action)]
    if facts.direction is Direction.FORWARD or not handed or not stuck:
        return None
    return Halfway(
        worlds=worlds(facts),
        says=" ".join(_stopped(action, clock) for action in stuck),
        rungs=ladder(facts, clock, waits=True, in_part=True),
        rows=tuple(_row(action, clock) for action in steps.told(facts)),
        pending=tuple(_pending(unit, clock) for action in stuck for unit in _units(action) if _stuck(unit)),
    )


def worlds(facts: RunFacts) -> str:
    """The three worlds in numbers: "1 compensated, 1 not known, 1 still in effect"."""
    found = [action for action in steps.current(facts) if action.contract.has_effect]
    unknown = [action for action in found if known.is_unknown(action)]
    done = [action for action in found if action.state is ActionState.COMPENSATED]
    left = [action for action in found if action.state in _IN_EFFECT and action not in unknown]
    parts = (
        ngettext("{n} compensated", "{n} compensated", len(done)).format(n=len(done)),
        ngettext("{n} not known", "{n} not known", len(unknown)).format(n=len(unknown)),
        ngettext("{n} still in effect", "{n} still in effect", len(left)).format(n=len(left)),
    )
    return _(", ").join(parts)


def progress(facts: RunFacts, order: Sequence[str]) -> Progress:
    """How far the compensation of these steps has come."""
    by_step = {action.step: action for action in steps.current(facts)}
    states = [
        unit.compensation.state
        for step in order
        for unit in (by_step[step].items or (by_step[step],))
        if unit.compensation is not None
    ]
    verified = states.count(CompensationState.CONFIRMED)
    flying = states.count(CompensationState.SENT)
    unknown = states.count(CompensationState.UNKNOWN)
    failed = states.count(CompensationState.FAILED)
    to_go = len(states) - verified - flying - unknown - failed
    parts = [
        _("{n} verified").format(n=verified),
        ngettext("{n} in flight", "{n} in flight", flying).format(n=flying),
        *([ngettext("{n} not known", "{n} not known", unknown).format(n=unknown)] if unknown else []),
        *([ngettext("{n} failed", "{n} failed", failed).format(n=failed)] if failed else []),
        ngettext("{n} to go", "{n} to go", to_go).format(n=to_go),
    ]
    return Progress(verified=verified, of=len(states), says=_(", ").join(parts))


def under_way(facts: RunFacts, clock: Clock) -> UnderWay | None:
    """The compensation of a run that goes on by itself; None where none does."""
    handed = facts.handoff is not None and facts.handoff.state is not HandoffState.RESOLVED
    if facts.direction is Direction.FORWARD or handed or facts.state in FINAL_RUN_STATES:
        return None
    order = [action.step for action in api.compensation_order(facts) if not _skipped(action)]
    return UnderWay(
        progress=progress(facts, order),
        rungs=ladder(facts, clock, waits=True, in_part=True),
        paused=paused(facts, clock),
    )


def paused(facts: RunFacts, clock: Clock) -> str:
    """Who paused the compensation and when; "" while nobody has."""
    if facts.paused_at is None:
        return ""
    return _("{who} paused it at {at}. Nothing further begins until somebody lets it go on.").format(
        who=facts.paused_by, at=clock.time(facts.paused_at)
    )


def ladder(
    facts: RunFacts,
    clock: Clock,
    *,
    order: Sequence[str] | None = None,
    left_out: Collection[str] = (),
    waits: bool = False,
    in_part: bool = False,
) -> tuple[Rung, ...]:
    """The rungs in forward order. `order`: the steps in running order, without those left out; the engine's own for None.

    `waits`: the compensation has begun, so that what has not run waits for the one before. `in_part`: of a long run only
    the steps that are told; what is agreed to is shown whole.
    """
    if order is None:
        order = [action.step for action in api.compensation_order(facts) if not _skipped(action)]
    numbers = {step: number for number, step in enumerate(order, start=1)}
    return tuple(
        _rung(action, clock, numbers, left_out=left_out, waits=waits)
        for action in (steps.told(facts) if in_part else steps.current(facts))
    )


def _rung(
    action: ActionFacts,
    clock: Clock,
    numbers: Mapping[str, int],
    *,
    left_out: Collection[str],
    waits: bool,
) -> Rung:
    number = numbers.get(action.step)
    foremost = leading(action)
    left = action.step in left_out or _skipped(action)
    if number is None or foremost is None:
        makes_up: Words = _("Left out") if left else _("Nothing to compensate")
        note: Words = _("The effect stays.") if left else _nothing(action)
        made_up, tone = None, "no"
    else:
        makes_up, tone = foremost.tool, _TONES.get(foremost.state, "")
        note = _note(action, foremost, clock, number, last=number == len(numbers), waits=waits)
        made_up = _made_up(foremost) if waits else None
    return Rung(
        number=action.position,
        step=action.step,
        tool=action.tool,
        about=_about(action),
        state=_forward(action),
        recovery=marks.recovery_of(action.contract),
        order="" if number is None else str(number),
        tone=tone,
        made_up=made_up,
        makes_up=makes_up,
        note=note,
        dim=number is None,
    )


def _about(action: ActionFacts) -> SafeString:
    if action.state in (ActionState.REJECTED, ActionState.UNKNOWN):
        words_ = steps.error_words(action.error_class)
        return text.inert(": ".join(part for part in (words_, action.error_detail) if part), 160)
    if action.sent_at is None:
        return text.say(_("never sent"))
    return steps.said(action)


def _forward(action: ActionFacts) -> StateWord:
    """How the step itself ended; what was made up for was confirmed before."""
    name = "confirmed" if action.state is ActionState.COMPENSATED else str(action.state)
    return words.state(name)


def _units(action: ActionFacts) -> tuple[ActionFacts, ...]:
    return action.items or (action,)


def _stuck(action: ActionFacts) -> bool:
    return any(unit.compensation and unit.compensation.state in known.UNPROVEN for unit in _units(action))


def _skipped(action: ActionFacts) -> bool:
    made_up = leading(action)
    return made_up is not None and made_up.state is CompensationState.SKIPPED_BY_OPERATOR


_WORST_FIRST = (
    CompensationState.FAILED,
    CompensationState.UNKNOWN,
    CompensationState.SENT,
    CompensationState.AWAITING_APPROVAL,
    CompensationState.DUE,
    CompensationState.REGISTERED,
    CompensationState.CONFIRMED,
    CompensationState.SKIPPED_BY_OPERATOR,
    CompensationState.VOIDED,
)


def leading(action: ActionFacts) -> CompensationFacts | None:
    """The compensation that speaks for the step: of a call over many the one that needs a look first."""
    found = [unit.compensation for unit in _units(action) if unit.compensation is not None]
    return min(found, key=lambda one: _WORST_FIRST.index(one.state)) if found else None


def _made_up(made_up: CompensationFacts) -> StateWord:
    return words.COMPENSATION_STATES[str(made_up.state)]


def _nothing(action: ActionFacts) -> str:
    """Why there is nothing to compensate."""
    if not action.contract.has_effect:
        return _("Changes nothing.")
    match action.state:
        case ActionState.REJECTED:
            return _("Refused: {system} carried nothing out.").format(system=action.contract.system)
        case ActionState.NOT_STARTED | ActionState.PREPARED | ActionState.SKIPPED:
            return _("Never sent.")
        case ActionState.UNKNOWN:
            return _("Not known whether it took effect.")
        case _:
            return _("There is no compensation: the effect stays.")


def _note(
    action: ActionFacts, made_up: CompensationFacts, clock: Clock, number: int, *, last: bool, waits: bool
) -> str:
    if action.items and made_up.state not in (CompensationState.REGISTERED, CompensationState.VOIDED):
        done = sum(
            unit.compensation is not None and unit.compensation.state is CompensationState.CONFIRMED
            for unit in action.items
        )
        return _("{done} of {n} items compensated").format(done=done, n=len(action.items))
    match made_up.state:
        case CompensationState.CONFIRMED:
            return _joined(_("verified {at}").format(at=clock.time(made_up.settled_at)), made_up.provider_ref)
        case CompensationState.SENT:
            return _("sent {at}, attempt {n}, waiting for an answer").format(
                at=clock.time(made_up.sent_at), n=made_up.attempts_used
            )
        case CompensationState.UNKNOWN:
            return _("{tries}, no answer").format(tries=_tries(made_up, clock))
        case CompensationState.FAILED:
            return _joined(_tries(made_up, clock), steps.error_words(made_up.error_class))
        case CompensationState.AWAITING_APPROVAL:
            return _("waits for a signature")
        case CompensationState.DUE if waits:
            return _("is next")
    if number == 1:
        return _("is next") if waits else _("first")
    if waits:
        return _("waits for no. {n}").format(n=number - 1)
    return (_("last, needs no. {n} first") if last else _("needs no. {n} first")).format(n=number - 1)


def _joined(*parts: str) -> str:
    return _(", ").join(part for part in parts if part)


def _tries(made_up: CompensationFacts, clock: Clock) -> str:
    if made_up.sent_at is None:
        return _("not sent")
    return ngettext("{n} attempt, last {at}", "{n} attempts, last {at}", made_up.attempts_used).format(
        n=made_up.attempts_used, at=clock.time(made_up.sent_at)
    )


def _stopped(action: ActionFacts, clock: Clock) -> str:
    made_up = leading(action)
    if made_up is None:
        return ""
    names = {
        "tool": made_up.tool,
        "tries": _tries(made_up, clock),
        "error": steps.error_words(made_up.error_class),
    }
    if made_up.state is CompensationState.UNKNOWN:
        return _("{tool} got no answer ({tries}). Nobody knows whether it took effect.").format(**names)
    return _("{tool} failed: {error} ({tries}). What it was to make up for is still there.").format(**names)


def _row(action: ActionFacts, clock: Clock) -> Row:
    facts = list(known.of_step(action, clock))
    fact = facts[-1]
    foremost = leading(action)
    shown = foremost is not None and foremost.state is not CompensationState.VOIDED
    return Row(
        step=action.step,
        forward=_forward(action),
        back=_made_up(foremost) if foremost is not None and shown else None,
        now=fact.says,
        more=fact.more,
        source=fact.source,
        question=fact.question,
    )


def _pending(unit: ActionFacts, clock: Clock) -> Pending:
    made_up = unit.compensation
    if made_up is None:
        raise ValueError(unit.step)
    since = made_up.unknown_since or made_up.settled_at or made_up.sent_at or made_up.registered_at
    age = span_words(int((clock.now - since).total_seconds()))
    unknown = made_up.state is CompensationState.UNKNOWN
    asked = unknown and made_up.due_at is not None
    return Pending(
        step=unit.step,
        key=made_up.key,
        since=f"{clock.time(since)} · {age}",
        tries=_joined(*_attempts(made_up, clock)) or _("none"),
        following=_("asked for again {at}").format(at=clock.time(made_up.due_at))
        if asked
        else _("nothing by itself, handed to you"),
        gone_by=clock.due(since.replace(microsecond=0) + _DAY).both,
    )


def _attempts(made_up: CompensationFacts, clock: Clock) -> Iterator[str]:
    for attempt in made_up.attempts:
        yield clock.time(attempt.sent_at)
