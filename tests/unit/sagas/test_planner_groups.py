"""The planner on steps that are called at the same time: together out, together settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sagas import planner
from sagas.facts import ActionFacts, RunFacts
from sagas.planner import (
    decide,
)
from sagas.states import ActionState, Direction
from tests.unit.sagas.pictures import SOON, TOOLS, action, ago, freeze, run
from tests.unit.sagas.test_planner import DONE, C, N, R, said
from tools.definition import OnFailure


def group(*actions: ActionFacts, **changes: object) -> RunFacts:
    """A run whose first two steps go out together, the third after them."""
    facts = run(*actions)
    steps = [replace(s, group="both" if s.id in TOOLS[:2] else "") for s in facts.definition.steps]
    return replace(
        facts,
        definition=replace(facts.definition, steps=tuple(steps)),
        **changes,  # type: ignore[arg-type]
    )


SENT, UNKNOWN, PREPARED = action(1, "sent"), action(1, "unknown", due_at=SOON), action(1, "prepared")
THIRD = action(3, N)
GROUPS: dict[str, tuple[RunFacts, frozenset[int], str]] = {
    "the second goes out beside the first": (
        group(SENT, action(2, N), THIRD),
        frozenset({1}),
        "prepare: create_shipment",
    ),
    "and is sent": (group(SENT, action(2, "prepared"), THIRD), frozenset({1}), "send: create_shipment"),
    "a read is out for the first": (
        group(action(1, N), action(2, N), THIRD),
        frozenset({1}),
        "prepare: create_shipment",
    ),
    "both are out": (group(SENT, action(2, "sent"), THIRD), frozenset({1, 2}), "wait: for nothing"),
    "the next waits for all of them": (group(SENT, action(2, C), THIRD), frozenset({1}), "wait: for nothing"),
    "the next begins": (group(action(1, C), action(2, C), THIRD), frozenset(), "prepare: send_notice"),
    "one has to wait, the other not": (
        group(action(1, "prepared", due_at=SOON), action(2, N), THIRD),
        frozenset(),
        "prepare: create_shipment",
    ),
    "one is held, the other not": (
        group(action(1, N), action(2, N), THIRD, freezes=(freeze(applies_to="tool:reserve_stock"),)),
        frozenset(),
        "prepare: create_shipment",
    ),
    "one is held, the other done": (
        group(action(1, N), action(2, C), THIRD, freezes=(freeze(applies_to="tool:reserve_stock"),)),
        frozenset(),
        "wait: held",
    ),
    "one is refused, the other in flight": (
        group(SENT, action(2, R), THIRD),
        frozenset({1}),
        "turnback: create_shipment",
    ),
    "one is refused, the other not begun": (
        group(action(1, N), action(2, R), THIRD),
        frozenset(),
        "turnback: create_shipment",
    ),
    "back, the other still in flight": (
        group(SENT, action(2, C, "registered"), direction=Direction.UNDO),
        frozenset({1}),
        "wait: for nothing",
    ),
    "back, the other unknown": (
        group(UNKNOWN, action(2, C, "registered"), direction=Direction.UNDO),
        frozenset(),
        "wait: until later",
    ),
    "one is unknown, the other in flight": (
        group(action(1, "unknown"), action(2, "sent"), THIRD),
        frozenset({2}),
        "query: reserve_stock",
    ),
    "one is unknown, nothing new goes out": (
        group(UNKNOWN, action(2, "prepared"), THIRD),
        frozenset(),
        "wait: until later",
    ),
    "both are unknown, the second is due": (
        group(UNKNOWN, action(2, "unknown"), THIRD),
        frozenset(),
        "query: create_shipment",
    ),
    "one is being asked about": (
        group(action(1, "unknown"), action(2, "unknown"), THIRD),
        frozenset({1}),
        "query: create_shipment",
    ),
    "nobody is asked while a call is out": (
        group(action(1, "unknown", unknown_since=ago(3600)), action(2, "sent"), THIRD),
        frozenset({2}),
        "wait: for nothing",
    ),
    "then somebody is": (
        group(action(1, "unknown", unknown_since=ago(3600)), action(2, C), THIRD),
        frozenset(),
        "hand over: unknown_unresolved (reserve_stock)",
    ),
}


@pytest.mark.requirement("S2-10", "S4-16")
@pytest.mark.parametrize(("facts", "out", "expected"), GROUPS.values(), ids=GROUPS)
def test_steps_of_a_group_go_out_together_and_are_settled_together(
    facts: RunFacts, out: frozenset[int], expected: str
) -> None:
    assert said(decide(facts, out)) == expected


def test_a_person_is_asked_about_a_refusal_once_its_group_has_answered() -> None:
    refused, facts = action(2, R), group(SENT, action(2, R), THIRD)
    asks = [replace(s, on_rejected=OnFailure.HANDOFF) for s in facts.definition.steps]
    facts = replace(facts, definition=replace(facts.definition, steps=tuple(asks)))

    assert said(decide(facts, frozenset({1}))) == "wait: for nothing"
    idle = replace(facts, actions=(action(1, "prepared"), refused, THIRD))
    assert said(decide(idle)) == "hand over: rejected (create_shipment)"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (run(*DONE, whole=False), "read on"),
        (run(*DONE, action(3, N), whole=False), "prepare: send_notice"),
        (run(*DONE, action(3, "unknown"), whole=False), "query: send_notice"),
        (run(action(1, R), whole=False), "turnback: reserve_stock"),
        (run(DONE[1], back=True, whole=False), "turn: create_shipment"),
        (run(action(1, "compensated", "confirmed"), back=True, whole=False), "read on"),
        # Whether somebody ordered what lies before the pivot is not known from this part.
        (run(action(3, C), back=True, whole=False), "read on"),
    ],
)
def test_a_part_of_a_run_is_enough_for_the_next_step_and_never_for_the_end(
    facts: RunFacts, expected: str
) -> None:
    assert said(decide(facts)) == expected


def test_a_large_group_goes_out_a_few_at_a_time() -> None:
    many = planner.MOST_TOGETHER + 2
    actions = [
        replace(action(1, "sent" if n <= many - 2 else N), id=n, position=n, step=f"s{n}")
        for n in range(1, many + 1)
    ]
    facts = run(*actions)
    steps = tuple(replace(s, group="all") for s in facts.definition.steps)
    facts = replace(facts, definition=replace(facts.definition, steps=steps))

    assert said(decide(facts, frozenset(range(1, many - 1)))) == "wait: for nothing"
    assert said(decide(facts, frozenset(range(2, many - 1)))) == "wait: for nothing"
    done = (replace(actions[0], state=ActionState.CONFIRMED), *actions[1:])
    assert said(decide(replace(facts, actions=done))) == f"prepare: s{many - 1}"
