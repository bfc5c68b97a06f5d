"""The state tables, every pair of them: what the ledger lets through is exactly what the tables name."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from sagas import entries
from sagas.errors import IllegalMove
from sagas.ledger.desk import Desk
from sagas.models import Action, Compensation, Handoff, Permit, Run
from sagas.states import (
    ACTION_MOVES,
    FINAL_RUN_STATES,
    MOVES,
    RUN_MOVES,
    STATES,
    ActionState,
    Machine,
    RunState,
    Who,
    legal_pairs,
    move,
    run_verb,
)

ROWS: dict[Machine, type[Any]] = {
    Machine.ACTION: Action,
    Machine.COMPENSATION: Compensation,
    Machine.HANDOFF: Handoff,
    Machine.PERMIT: Permit,
}


def a_desk(machine: Machine, state: str) -> tuple[Desk, Any]:
    """A desk with one row in a state; nothing of it is stored."""
    run, action = Run(pk=1, ref="run_1"), Action(pk=1, step="s1", state=ActionState.CONFIRMED)
    row: Any = action if machine is Machine.ACTION else ROWS[machine](pk=1, state=state)
    row.state = state
    if machine in (Machine.COMPENSATION, Machine.PERMIT):
        row.action_id = action.pk
    now = datetime(2026, 3, 2, tzinfo=UTC)
    return Desk(
        run=run, actions=[action], compensations={}, handoffs=[], permits=[], freezes=(), now=now
    ), row


@pytest.mark.requirement("S3-2", "S3-3")
@pytest.mark.parametrize("machine", ROWS)
def test_the_ledger_moves_what_the_tables_name_and_nothing_else(machine: Machine) -> None:
    named = {(m.verb, m.source, m.target) for m in MOVES if m.machine is machine and m.source is not None}
    verbs = {m.verb for m in MOVES if m.machine is machine}
    tried = 0
    for verb, source, target in product(sorted(verbs), STATES[machine], STATES[machine]):
        desk, row = a_desk(machine, source)
        tried += 1
        if (verb, source, target) in named:
            desk.move(row, verb, target, actor=entries.PLANNER)
            assert (row.state, row.version) == (target, 2)
            (entry,) = desk._entries
            assert (entry.machine, entry.source, entry.target) == (machine, source, target)
            assert entry.name == move(machine, verb, source, target).entry
        else:
            with pytest.raises(IllegalMove):
                desk.move(row, verb, target, actor=entries.PLANNER)
            assert (row.state, row.version, desk._entries) == (source, 1, [])
    assert tried == len(verbs) * len(STATES[machine]) ** 2


def test_the_verb_of_a_run_follows_from_where_it_comes_and_where_it_goes() -> None:
    for source, target in product(RunState, RunState):
        verbs = {row.verb for row in RUN_MOVES if (row.source, row.target) == (source, target)}
        if verbs:
            assert run_verb(source, target) in verbs
        else:
            with pytest.raises(KeyError):
                run_verb(source, target)


@pytest.mark.parametrize("machine", Machine)
def test_every_state_can_be_reached(machine: Machine) -> None:
    reached: set[str] = {""}
    for _ in STATES[machine]:
        reached |= {target for m, source, target in legal_pairs() if m == machine and source in reached}
    assert reached - {""} == set(STATES[machine])


def test_a_final_run_moves_no_more_and_every_other_run_can_end() -> None:
    assert not [row for row in RUN_MOVES if row.source in FINAL_RUN_STATES]
    can_end: set[str] = set(FINAL_RUN_STATES)
    for _ in RunState:
        can_end |= {str(row.source) for row in RUN_MOVES if row.source is not None and row.target in can_end}
    assert can_end == set(RunState)


@pytest.mark.requirement("S3-4", "S3-10")
def test_unknown_is_left_by_evidence_or_a_person_alone_and_never_by_skipping() -> None:
    ways = {row.verb: row.who.split() for row in ACTION_MOVES if row.source is ActionState.UNKNOWN}
    assert set(ways) == {"find", "deny", "absent", "repeat", "part_found", "accept"}
    assert not {ActionState.SKIPPED, ActionState.NOT_STARTED, ActionState.SUPERSEDED} & {
        row.target for row in ACTION_MOVES if row.source is ActionState.UNKNOWN
    }
    # The system alone only asks again or repeats under the same key; it finds and denies nothing by itself.
    assert {verb for verb, who in ways.items() if who == [Who.SYSTEM]} == {"absent", "repeat"}


@pytest.mark.requirement("S3-10")
def test_what_is_confirmed_is_never_sent_again_in_its_generation() -> None:
    targets = {row.target for row in ACTION_MOVES if row.source is ActionState.CONFIRMED}
    assert targets == {ActionState.COMPENSATED, ActionState.ACCEPTED}


@pytest.mark.requirement("S0-48", "S0-4")
def test_the_entries_carry_the_names_that_are_asked_for_and_every_move_says_who() -> None:
    asked_for = {
        "tool.execution.succeeded",
        "tool.execution.failed",
        "tool.retry.scheduled",
        "tool.compensation.started",
        "tool.compensation.succeeded",
        "tool.compensation.failed",
        "human.handoff.started",
    }
    assert asked_for <= {row.entry for row in MOVES}
    for row in MOVES:
        assert row.who
        assert set(row.who.split()) <= {who.value for who in Who}


def test_the_machines_share_no_row_and_no_move_is_named_twice() -> None:
    keys = [(row.machine, row.verb, row.source, row.target) for row in MOVES]
    assert len(set(keys)) == len(keys)
    for row in MOVES:
        assert row.target in STATES[row.machine]
        assert row.source is None or row.source in STATES[row.machine]
