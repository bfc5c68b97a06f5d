"""The evidence phase of a command: reads made for a person, outside any transaction and within a time limit."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from django.conf import settings

from sagas import planner
from sagas.facts import (
    ActionFacts,
    ChangeSeen,
    ConditionCheck,
    EndStateCheck,
    Looked,
    PlanLook,
    RunFacts,
    SignoffFacts,
    SignoffLook,
)
from sagas.looking import look_at
from sagas.orders import ConditionSeen
from sagas.previews import scope
from sagas.published import pinned
from sagas.queries import facts_of_run, now
from sagas.states import ActionState
from sagas.tx import outside_transaction
from tools.bindings import Unbindable, bind
from tools.conditions import holds
from tools.contract import Condition, Json
from tools.definition import EndState, StepIs
from tools.outcome import Verdict, classify_query
from tools.pointers import MISSING, find
from tools.redact import mask, mask_text
from tools.world import World

TIME_LIMIT_S = 5.0
"""Seconds that one read may take while a person waits."""
SIGNOFF_LIMIT_S = 2.0
"""The same where it only illustrates a page: what does not answer in time is shown as not known."""
PLAN_LIMIT_S = 6.0
"""After which no further read of a plan is begun; each is made again right before its call anyway."""


def look(facts: RunFacts, verb: str, *, step: str = "", reference: str = "") -> Looked:
    """Make the reads that a verb needs before its transaction; empty for a verb that needs none."""
    outside_transaction()
    facts = facts_of_run(facts.ref, unmasked=True)
    world = World(settings.TOOL_SYSTEMS)
    try:
        match verb:
            case "resolve_happened":
                return _verify(facts, step, reference, world)
            case "read_back":
                return _read_back(facts, step, world)
            case "mark_acceptable":
                checks = tuple(_end_state(facts, state, world) for state in facts.definition.end_states)
                return Looked(verb=verb, end_states=checks)
            case _:
                return Looked(verb=verb, step=step)
    finally:
        world.close()


def look_signoff(signoff: SignoffFacts) -> SignoffLook:
    """Read what a compensation rests on and what it changes, for whoever is about to sign. One read is made once."""
    outside_transaction()
    facts = facts_of_run(signoff.run.ref, unmasked=True)
    actions = (one for whole in facts.actions for one in (whole, *whole.items))
    action = next(one for one in actions if one.id == signoff.action.id)
    if signoff.forward:
        return SignoffLook()
    world = World(settings.TOOL_SYSTEMS)
    try:
        return _look_at_compensation(facts, action, world)
    finally:
        world.close()


def look_plan(facts: RunFacts, *, leave_out: Collection[str] = ()) -> tuple[PlanLook, ...]:
    """Read what each compensation rests on and what it changes, in running order, for whoever is about to order them."""
    outside_transaction()
    facts = facts_of_run(facts.ref, unmasked=True)
    world, begun, looks = World(settings.TOOL_SYSTEMS), time.monotonic(), []
    try:
        for action in planner.to_compensate(facts):
            if action.compensation is None or action.step in leave_out:
                continue
            read = time.monotonic() - begun < PLAN_LIMIT_S
            seen = _look_at_compensation(facts, action, world) if read else SignoffLook()
            looks.append(
                PlanLook(
                    step=action.step,
                    item=action.item,
                    read=read,
                    preconditions=seen.preconditions,
                    changes=seen.changes,
                )
            )
        return tuple(looks)
    finally:
        world.close()


def _look_at_compensation(facts: RunFacts, action: ActionFacts, world: World) -> SignoffLook:
    declared = action.contract.compensation
    if declared is None:
        return SignoffLook()
    names, answers = scope(facts, action), _Answers()
    preconditions = tuple(
        _precondition(facts, condition, names, world, answers) for condition in declared.preconditions
    )
    after = declared.verify or declared.already_done
    changes = _changes(facts, action, after, names, world, answers) if after else ()
    return SignoffLook(preconditions=preconditions, changes=changes)


class _Answers(dict[str, ConditionSeen]):
    """The answers to the reads of one action: one read is made once."""


def _seen(
    facts: RunFacts, condition: Condition, names: dict[str, Json], world: World, answers: _Answers
) -> ConditionSeen:
    reads = {condition.read: pinned(facts.definition_id, condition.read)[1]} if condition.read else {}
    asked = f"{condition.read} {condition.args}"
    known = answers.get(asked)
    if known is None:
        known = look_at(condition, world, reads, names, time_limit_s=SIGNOFF_LIMIT_S)
        answers[asked] = known
        return known
    if known.body is None:
        return replace(known, text=condition.text)
    found = find(known.body, condition.pointer)
    shown = "nothing there" if found is MISSING else repr(found)
    met = holds(condition, known.body, names)
    return replace(known, text=condition.text, met=met, detail=f"{condition.read}: {shown}")


def _precondition(
    facts: RunFacts, condition: Condition, names: dict[str, Json], world: World, answers: _Answers
) -> ConditionCheck:
    seen = _seen(facts, condition, names, world, answers)
    return ConditionCheck(text=condition.text, met=seen.met, evidence=mask_text(seen.detail), read_at=now())


def _changes(
    facts: RunFacts,
    action: ActionFacts,
    after: Condition,
    names: dict[str, Json],
    world: World,
    answers: _Answers,
) -> tuple[ChangeSeen, ...]:
    """The fields that the check afterwards looks at: as they are, and as they have to be then."""
    if not after.read:
        return ()
    seen = _seen(facts, after, names, world, answers)
    contract = pinned(facts.definition_id, after.read)[1]
    body = mask(seen.body, contract.secret_fields)
    found = None if seen.body is None else find(body, after.pointer)
    try:
        wanted = mask(bind(after.value, {**names, "answer": seen.body}), action.contract.secret_fields)
    except Unbindable:
        wanted = None
    here, there = (None if found is MISSING else found), wanted
    field = after.pointer.rpartition("/")[2] or contract.tool
    pairs = [(field, here, there)]
    if isinstance(here, dict) and isinstance(there, dict):
        pairs = [(name, here.get(name), there.get(name)) for name in {**here, **there}]
    record = " · ".join(part for part in (contract.system, action.provider_ref) if part)
    return tuple(
        ChangeSeen(
            record=record,
            field=name,
            now=old,
            after=new,
            operator=after.operator,
            answered=seen.body is not None,
            read_at=now(),
        )
        for name, old, new in pairs
    )


def _verify(facts: RunFacts, step: str, reference: str, world: World) -> Looked:
    """Ask the tool's own status query; a reference that differs from the one it names is disproved.

    A tool without one is read under the reference, where its contract says how.
    """
    action = next((a for a in planner.current(facts) if a.step == step), None)
    if action is not None and action.state is not ActionState.UNKNOWN:
        return _verify_compensation(facts, action, world)
    if (
        action is not None
        and action.contract.status_query is None
        and action.contract.by_reference is not None
    ):
        return _verify_by_reference(facts, action, reference, world)
    query = action.contract.status_query if action is not None else None
    if action is None or query is None:
        return Looked(verb="resolve_happened", step=step, detail="There is no read that could prove it.")
    names = {**scope(facts, action), "args": action.args, "key": action.key}
    try:
        args = bind(dict(query.args), names)
    except Unbindable as error:
        return Looked(verb="resolve_happened", step=step, detail=str(error))
    contract = pinned(facts.definition_id, query.tool)[1]
    observation = world.call(contract, args=args, key="", time_limit_s=TIME_LIMIT_S)
    answer = classify_query(query, observation, names, contract=contract)
    if answer.verdict is Verdict.NO_ANSWER:
        return Looked(verb="resolve_happened", step=step, detail=answer.detail)
    if answer.verdict is not Verdict.FOUND:
        late = action.not_found_counts_at is None or facts.now >= action.not_found_counts_at
        return Looked(
            verb="resolve_happened",
            step=step,
            verified=False if late and query.authoritative else None,
            detail=f"{contract.tool} knows no such call",
        )
    same = not reference or not answer.reference or answer.reference == reference
    return Looked(
        verb="resolve_happened",
        step=step,
        verified=same,
        reference=answer.reference,
        detail="" if same else f"{contract.tool} names another reference, {answer.reference}",
        body=answer.result,
    )


def _verify_by_reference(facts: RunFacts, action: ActionFacts, reference: str, world: World) -> Looked:
    """Read what a person found under its reference; what is not this call's is disproved."""
    condition = action.contract.by_reference
    if condition is None or not condition.read:
        return Looked(
            verb="resolve_happened", step=action.step, detail="There is no read that could prove it."
        )
    names = {**scope(facts, action), "args": action.args, "key": action.key, "reference": reference}
    reads = {condition.read: pinned(facts.definition_id, condition.read)[1]}
    seen = look_at(condition, world, reads, names, time_limit_s=TIME_LIMIT_S)
    ours = seen.met is True
    return Looked(
        verb="resolve_happened",
        step=action.step,
        verified=seen.met,
        reference=reference if ours else "",
        detail="" if ours else seen.detail,
        body=seen.body if ours else None,
    )


def _read_back(facts: RunFacts, step: str, world: World) -> Looked:
    """Ask the tool's own status query about a call that it has confirmed.

    `verified` None: it could not be read just now, or, with an empty `detail`, the tool offers no read at all.
    """
    action = next((a for a in planner.current(facts) if a.step == step), None)
    query = action.contract.status_query if action is not None else None
    if action is None or query is None:
        return Looked(verb="read_back", step=step)
    names = {**scope(facts, action), "args": action.args, "key": action.key}
    try:
        args = bind(dict(query.args), names)
    except Unbindable as error:
        return Looked(verb="read_back", step=step, detail=str(error))
    contract = pinned(facts.definition_id, query.tool)[1]
    observation = world.call(contract, args=args, key="", time_limit_s=TIME_LIMIT_S)
    answer = classify_query(query, observation, names, contract=contract)
    match answer.verdict:
        case Verdict.FOUND:
            return Looked(verb="read_back", step=step, verified=True, reference=answer.reference)
        case Verdict.ABSENT | Verdict.DENIED if query.authoritative:
            return Looked(
                verb="read_back", step=step, verified=False, detail=f"{contract.tool} knows no such call"
            )
        case _:
            return Looked(verb="read_back", step=step, detail=answer.detail or contract.tool)


def _verify_compensation(facts: RunFacts, action: ActionFacts, world: World) -> Looked:
    """Whether a compensation took effect is seen by looking at what it was to change."""
    declared = action.contract.compensation
    condition = (declared.already_done or declared.verify) if declared is not None else None
    if condition is None or not condition.read:
        return Looked(
            verb="resolve_happened", step=action.step, detail="There is no read that could prove it."
        )
    reads = {condition.read: pinned(facts.definition_id, condition.read)[1]}
    seen = look_at(condition, world, reads, scope(facts, action), time_limit_s=TIME_LIMIT_S)
    return Looked(verb="resolve_happened", step=action.step, verified=seen.met, detail=seen.detail)


def _end_state(facts: RunFacts, end_state: EndState, world: World) -> EndStateCheck:
    checks = tuple(_condition(facts, condition, world) for condition in end_state.conditions)
    return EndStateCheck(
        id=end_state.id,
        title=end_state.title,
        conditions=checks,
        met=all(check.met is True for check in checks),
    )


def _condition(facts: RunFacts, condition: Condition | StepIs, world: World) -> ConditionCheck:
    actions = planner.current(facts)
    if isinstance(condition, StepIs):
        action = next((a for a in actions if a.step == condition.step), None)
        state = _state_of(action)
        return ConditionCheck(
            text=condition.text,
            met=state in condition.states,
            evidence=state or "no such step",
            read_at=now(),
        )
    reads = {condition.read: pinned(facts.definition_id, condition.read)[1]} if condition.read else {}
    seen = look_at(condition, world, reads, _whole_scope(facts, actions), time_limit_s=TIME_LIMIT_S)
    return ConditionCheck(text=condition.text, met=seen.met, evidence=seen.detail, read_at=now())


def _state_of(action: ActionFacts | None) -> str:
    if action is None:
        return ""
    return action.settled_as.value


def _whole_scope(facts: RunFacts, actions: tuple[ActionFacts, ...]) -> dict[str, object]:
    return dict(scope(facts, actions[0]))
