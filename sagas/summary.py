"""A case in small: the step strip, the five counts, the lean row of the queue, the context of a handoff.

Pure: from facts to values. The words are the screens' work.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sagas import planner
from sagas.facts import ActionFacts, Counts, RunFacts, StripMark
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState, PermitState
from tools.bindings import Unbindable, bind
from tools.contract import EffectKind, Json, Level, RecoveryClass
from tools.texts import fill

_LEVELS = tuple(Level)
TROUBLE = ("compensation_failed", "compensation_unknown", "unknown", "rejected", "partial", "sent")
"""The words of a strip that a case can be about, the worst first."""
_OUTSIDE = frozenset({"sent", "unknown", "confirmed", "partial", "accepted"})


def mark_word(action: ActionFacts) -> str:
    """The word of one mark: the action's state, or what its compensation is doing when that says more."""
    compensation = action.compensation
    if compensation is None or action.state not in (ActionState.CONFIRMED, ActionState.PARTIAL):
        return action.state.value
    match compensation.state:
        case CompensationState.FAILED:
            return "compensation_failed"
        case CompensationState.UNKNOWN:
            return "compensation_unknown"
        case CompensationState.SENT | CompensationState.DUE:
            return "compensating"
        case CompensationState.AWAITING_APPROVAL:
            return "waiting"
        case _:
            return action.state.value


def strip(facts: RunFacts) -> tuple[StripMark, ...]:
    """The marks of the step strip, in order of position."""
    return tuple(
        StripMark(
            position=action.position,
            step=action.step,
            tool=action.tool,
            state=mark_word(action),
            recovery_class=action.contract.recovery_class.value,
            items=item_words(action),
        )
        for action in planner.current(facts)
    )


def item_words(action: ActionFacts) -> tuple[tuple[str, int], ...]:
    """How many parts of a call over many have which word, by first appearance; () for a plain step."""
    return tuple(Counter(mark_word(item) for item in action.items).items())


def counts_of(marks: tuple[StripMark, ...]) -> Counts:
    """The five counts, taken from the strip itself so that the two never differ; parts of a step count each."""
    states: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for mark in marks:
        for word, number in mark.items or ((mark.state, 1),):
            states[word] += number
            classes[mark.recovery_class] += number
    return Counts(
        ok=sum(states[word] for word in ("confirmed", "compensating", "waiting")),
        failed=sum(states[word] for word in ("rejected", "compensation_failed")),
        unknown=sum(states[word] for word in ("unknown", "compensation_unknown")),
        irreversible=classes[RecoveryClass.IRREVERSIBLE.value],
        compensable=classes[RecoveryClass.COMPENSABLE.value],
    )


def counts(facts: RunFacts) -> Counts:
    """The five counts of a case."""
    return counts_of(strip(facts))


def level(facts: RunFacts) -> Level:
    """The highest level of any contract of the case."""
    return max((action.contract.level for action in facts.actions), key=_LEVELS.index, default=Level.LOW)


def trouble(marks: tuple[StripMark, ...]) -> StripMark | None:
    """The mark that a case is about: the worst of its strip; None when nothing is wrong."""
    found = [mark for mark in marks if mark.state in TROUBLE]
    return min(found, key=lambda mark: TROUBLE.index(mark.state), default=None)


def similar(facts: RunFacts) -> str:
    """What makes cases look alike: tool, error class, action state, workflow version; "" when nothing is wrong.

    It follows the facts, so that a case leaves its group as soon as it differs: a view, never a merge.
    """
    mark = trouble(strip(facts))
    if mark is None:
        return ""
    action = next(action for action in planner.current(facts) if action.step == mark.step)
    about = action.compensation if mark.state.startswith("compensation") else None
    tool, error_class = (about.tool, about.error_class) if about else (action.tool, action.error_class)
    return "|".join((tool, error_class, mark.state, str(facts.definition_id)))


def _touches_outside(facts: RunFacts) -> bool:
    return any(
        action.contract.effect_kind is EffectKind.EXTERNAL_EFFECT and action.state.value in _OUTSIDE
        for action in facts.actions
    )


def _waits_for_signature(facts: RunFacts) -> bool:
    return any(
        unit is not None and unit.permit is not None and unit.permit.state is PermitState.REQUESTED
        for action in facts.actions
        for unit in (action, action.compensation)
    )


def columns(facts: RunFacts) -> dict[str, Any]:
    """The columns of the queue's row that follow from the facts."""
    marks = strip(facts)
    five = counts_of(marks)
    plain = facts.title in ("", facts.definition.title)
    outside = _touches_outside(facts)
    return {
        "summary": {
            "version": facts.version,
            "title": facts.title or facts.definition.title,
            "titles": dict(facts.definition.titles) if plain else {},
            "customer": facts.customer,
            "amount": facts.amount,
            "currency": facts.currency,
            "business_ref": facts.business_ref,
            "run_ref": facts.ref,
            "workflow": facts.definition.name,
            "workflow_version": facts.definition.version,
            "team": facts.team,
            "tools": sorted({mark.tool for mark in marks}),
            "similar": similar(facts),
            "signoff": _waits_for_signature(facts),
            "touches_money": outside and bool(facts.amount),
            "touches_customer": outside and bool(facts.customer),
            "level": level(facts).value,
            "irreversible_confirmed": any(
                action.state is ActionState.CONFIRMED
                and action.contract.recovery_class is RecoveryClass.IRREVERSIBLE
                for action in facts.actions
            ),
            "strip": [
                [m.position, m.step, m.tool, m.state, m.recovery_class, [list(part) for part in m.items]]
                for m in marks
            ],
            "counts": [five.ok, five.failed, five.unknown, five.irreversible, five.compensable],
        },
        "unknowns": five.unknown,
        "compensation_failed": any(
            word == "compensation_failed" for mark in marks for word in (mark.state, *dict(mark.items))
        ),
        "search": _search_words(facts),
    }


def _search_words(facts: RunFacts) -> str:
    """What a case is found by, as a space-separated list of whole words, lower case."""
    words = {facts.ref, facts.business_ref, facts.customer}
    for action in facts.actions:
        words |= {action.key, action.provider_ref}
    if facts.handoff is not None:
        words.add(facts.handoff.ref)
    return " ".join(sorted(word.lower() for word in words if word))


def context(facts: RunFacts, reason: Reason) -> dict[str, Json]:
    """The structured context that a handoff opens with (S0-44, S0-47): no reading of logs needed."""
    actions = planner.current(facts)
    return {
        "reason": reason.value,
        "succeeded": [a.step for a in actions if a.state is ActionState.CONFIRMED],
        "failed": [
            {"step": a.step, "error_class": a.error_class, "detail": a.error_detail[:500]}
            for a in actions
            if a.state is ActionState.REJECTED
        ],
        "unknown": [
            {"step": a.step, "question": question(a)} for a in actions if a.state is ActionState.UNKNOWN
        ],
        "not_started": [
            a.step for a in actions if a.state in (ActionState.NOT_STARTED, ActionState.PREPARED)
        ],
        "effects": [{"step": a.step, "effect": done(a)} for a in planner.effects_left(facts)],
        "compensations": [
            {
                "of": a.step,
                "tool": a.compensation.tool,
                "kind": a.compensation.kind,
                "state": a.compensation.state.value,
            }
            for a in planner.to_compensate(facts)
            if a.compensation is not None
        ],
        "irreversible": [
            a.step
            for a in planner.to_compensate(facts)
            if a.contract.recovery_class is RecoveryClass.IRREVERSIBLE
        ],
    }


def done(action: ActionFacts) -> str:
    """The contract's sentence for "this took effect"."""
    return fill(action.contract.texts.done, args=action.args, result=action.result)


def question(action: ActionFacts) -> str:
    """The contract's question for "we do not know whether"."""
    return fill(action.contract.texts.question, args=action.args, result=action.result)


def elements(facts: RunFacts, action: ActionFacts) -> tuple[Json, ...]:
    """What a loop makes a call for, element by element; empty for any other step, and where it cannot be told."""
    step = next((step for step in facts.definition.steps if step.id == action.step), None)
    scope: dict[str, Json] = {"input": facts.input}
    scope |= {f"steps.{other.step}.result": other.result for other in planner.current(facts)}
    try:
        listed = bind(step.each, scope) if step is not None else None
    except Unbindable:
        return ()
    return tuple(listed) if isinstance(listed, list) else ()


def arguments(facts: RunFacts, action: ActionFacts) -> dict[str, Json]:
    """What a step is called with, by name; of one that was never prepared as far as it can be told from the picture."""
    if action.args is not None:
        return action.args if isinstance(action.args, dict) else {}
    scope: dict[str, Json] = {"input": facts.input}
    found: dict[str, Json] = {}
    for name, template in facts.definition.step(action.step).args.items():
        try:
            found[name] = bind(template, scope)
        except Unbindable:
            continue
    return found
