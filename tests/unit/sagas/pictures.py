"""Pictures of an order run for the planner: three steps, each with a contract of the catalogue, in any state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sagas.facts import ActionFacts, CompensationFacts, FreezeFacts, RunFacts
from sagas.states import ActionState, CompensationState, Direction, RunState
from tests.unit.workbench import cases
from tests.unit.workbench.cases import NOW
from tools.definition import Definition, Step

TOOLS = ("reserve_stock", "create_shipment", "send_notice")
SOON, BEFORE = NOW + timedelta(seconds=30), NOW - timedelta(seconds=30)


@cache
def _drawn(position: int, tool: str) -> tuple[ActionFacts, CompensationFacts | None]:
    blank = cases.action(
        position, tool, "not_started", sent_at=None, attempts_used=0, not_found_counts_at=None
    )
    made_up = cases.compensation(blank) if blank.contract.compensation is not None else None
    return blank, made_up


@cache
def _order() -> RunFacts:
    return cases.case()


def action(position: int, state: str, made_up: str = "", *, tool: str = "", **changes: Any) -> ActionFacts:
    """The action at a position in a state; `made_up` is the state of its compensation, "" = none on record."""
    blank, compensation = _drawn(position, tool or TOOLS[position - 1])
    confirmed = state in ("confirmed", "compensated", "partial")
    facts = replace(
        blank, state=ActionState(state), confirm_seq=position if confirmed else None, compensation=None
    )
    if made_up:
        assert compensation is not None
        facts = replace(facts, compensation=replace(compensation, state=CompensationState(made_up)))
    return replace(facts, **changes)


def changed(facts: ActionFacts, **changes: Any) -> ActionFacts:
    """The action with its compensation changed."""
    assert facts.compensation is not None
    return replace(facts, compensation=replace(facts.compensation, **changes))


def run(*actions: ActionFacts, back: bool = False, **changes: Any) -> RunFacts:
    """A run of these actions, nobody asked about it."""
    facts = replace(
        _order(),
        state=RunState.COMPENSATING if back else RunState.RUNNING,
        direction=Direction.UNDO if back else Direction.FORWARD,
        actions=actions,
        handoff=None,
        definition=_with_steps_for(actions),
    )
    return replace(facts, **changes)


def _with_steps_for(actions: tuple[ActionFacts, ...]) -> Definition:
    """The order's definition, where an action of another tool stands in for a step of it."""
    known = {step.id: step for step in _order().definition.steps}
    names = dict.fromkeys(a.step for a in sorted(actions, key=lambda one: one.position))
    steps = [known.get(n) or Step(id=n, tool=n, contract_version=1, args={}) for n in names]
    return replace(_order().definition, steps=tuple(steps))


def freeze(scope: str = "forward", applies_to: str = "all") -> FreezeFacts:
    return cases.frozen(scope, applies_to)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)
