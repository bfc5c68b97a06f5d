"""The calls with an effect that a verb would make by itself, with what they are made from. Pure; makes none of them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sagas import planner
from sagas.facts import ActionFacts, CompensationFacts, RunFacts
from sagas.leaving import failed_compensations, tried
from sagas.states import ActionState, CompensationState
from tools.contract import Compensation, Contract, Json, Who
from tools.keys import forward_key
from tools.pointers import find


@dataclass(frozen=True, kw_only=True)
class Intended:
    """A call with an effect that a verb would make by itself. `items`: the parts that it carries."""

    step: str
    contract: Contract
    args: Json
    key: str
    items: tuple[str, ...] = ()


def intended(
    facts: RunFacts, verb: str, *, step: str = "", leave_out: Collection[str] = ()
) -> tuple[Intended, ...]:
    """The calls with an effect among those that `preview` writes down, with what they are made from."""
    action = step_named(facts, step)
    match verb:
        case "retry" if action is not None:
            return tuple(once_more(action))
        case "edit_and_retry" | "redo" if action is not None:
            return (next_generation(facts, action),)
        case "stop_and_compensate":
            return made_up(facts, only=up_to_the_first_that_stays(facts))
        case "compensate" | "continue_compensation":
            left = {unit.id for unit in planner.to_compensate(facts) if unit.step in leave_out}
            return made_up(facts, without=left)
        case "skip_compensation":
            return made_up(facts, without=tried_in_vain(facts, step))
        case _:
            return ()


def step_named(facts: RunFacts, step: str) -> ActionFacts | None:
    """The current row of a step, if the run has it."""
    return next((action for action in planner.current(facts) if action.step == step), None)


def forward(action: ActionFacts) -> Intended:
    """A step's own call as its row has it."""
    args = action.args if action.args is not None else {}
    return Intended(step=action.step, contract=action.contract, args=args, key=action.key)


def next_generation(facts: RunFacts, action: ActionFacts) -> Intended:
    """The call with the key that its new generation will have."""
    contract = action.contract
    key = forward_key(facts.ref, action.step, action.item, contract.operation, action.generation + 1)
    return forward(replace(action, key=key))


def once_more(action: ActionFacts) -> list[Intended]:
    """The calls of a retry: of a call over many only what was refused, of a loop each refused one by itself."""
    refused = [item for item in action.items if item.state is ActionState.REJECTED]
    if action.state is not ActionState.PARTIAL or not refused:
        return [forward(action)]
    many = action.contract.items
    if many is None:
        return [replace(forward(item), items=(item.item,)) for item in refused]
    args = copy.deepcopy(action.args)
    holder, _, last = many.list.rpartition("/")
    find(args, holder)[last] = [item.args for item in refused]
    # The key of what goes out again is made from the very parts that are picked, so none is shown before.
    return [replace(forward(action), args=args, key="", items=tuple(item.item for item in refused))]


def up_to_the_first_that_stays(facts: RunFacts) -> frozenset[int]:
    """What is compensated by itself once a run is stopped: from the last effect back to the first without a remedy."""
    planned: set[int] = set()
    for action in planner.to_compensate(facts):
        if action.compensation is None or action.compensation.who == Who.HUMAN:
            break
        planned.add(action.id)
    return frozenset(planned)


def tried_in_vain(facts: RunFacts, step: str) -> frozenset[int]:
    """What a person may leave out: compensations of a step that were tried and failed."""
    return frozenset(unit.id for unit in failed_compensations(facts, step) if tried(unit))


def to_make_up_for(
    facts: RunFacts, without: Collection[int], only: Collection[int] | None
) -> Iterator[tuple[ActionFacts, CompensationFacts, Compensation]]:
    """What is compensated, in running order: the action, its row and what its contract declares."""
    for action in planner.to_compensate(facts):
        row, declared = action.compensation, action.contract.compensation
        if action.id in without or (only is not None and action.id not in only):
            continue
        if row is not None and declared is not None and row.state is not CompensationState.CONFIRMED:
            yield action, row, declared


def made_up(
    facts: RunFacts, *, without: Collection[int] = (), only: Collection[int] | None = None
) -> tuple[Intended, ...]:
    """The compensating calls in running order, `without` some actions or `only` of some."""
    return tuple(compensating(action, row) for action, row, _ in to_make_up_for(facts, without, only))


def compensating(action: ActionFacts, row: CompensationFacts) -> Intended:
    """The call that a compensation makes."""
    args = row.args if row.args is not None else {}
    return Intended(step=action.step, contract=row.contract, args=args, key=row.key)
