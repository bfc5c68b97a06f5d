"""The matrix of faults: what it enumerates, and that its judge sees every lie that a record could tell."""

from __future__ import annotations

from typing import Any

import pytest

from sagas.facts import RunFacts
from sagas.faultpoints import POINTS
from sagas.states import RunState
from tests.unit.sagas import pictures
from tools import lint
from tools.reader import contract_from_document, definition_from_document
from workbench.labs.chaos import matrix
from workbench.labs.chaos.case import AGAIN, Outcome, Strike, case_name, strikes
from workbench.labs.chaos.cells import BEHAVIOURS, Cell, cells, slot_of
from workbench.labs.chaos.contracts import KINDS, definition, documents
from workbench.labs.chaos.errands import ERRANDS
from workbench.labs.chaos.judge import judge
from workbench.labs.chaos.matrix import Tally
from workbench.labs.chaos.point import named

FORWARD = Cell(kind="asked", behaviour="ok", position="first", direction="forward")
BACK = Cell(kind="asked", behaviour="ok", position="first", direction="compensation")
BLIND = Cell(kind="blind", behaviour="no_answer", position="first", direction="forward")


# --- What is enumerated ---------------------------------------------------------------------------------------------


def test_every_kind_meets_every_behaviour_that_it_can_meet_both_ways() -> None:
    names = {cell.name for cell in cells()}

    assert len(names) == len(list(cells())) > 450
    for kind in KINDS:
        for name, behaviour in BEHAVIOURS.items():
            meets = not behaviour.only or kind.name in behaviour.only
            assert (f"{kind.name}/{name}/middle/forward" in names) is meets


def test_the_contracts_and_workflows_of_the_matrix_are_sound() -> None:
    contracts = {document["tool"]: contract_from_document(document) for document in documents()}
    for cell in {cell.workflow: cell for cell in cells()}.values():
        workflow = definition_from_document(definition(cell.workflow, cell.tools(), refused=cell.back))
        errors = {f.code for f in lint.check(workflow, contracts) if f.severity == "error"}
        assert errors <= ({"W103"} if cell.kind in ("asked", "blind") else set())


def test_a_cell_is_struck_at_every_point_of_its_own_call_and_at_those_around_it() -> None:
    own = {"tool": "place_asked", "direction": "forward"}
    others = {"tool": "place_plain", "direction": "forward"}
    reached = [
        ("start.after_commit", {}),
        ("step.begun", {}),
        ("sent.after_commit", own),
        ("call.answered", own),
        ("sent.after_commit", own),
        ("step.begun", {}),
        ("call.answered", others),
        *[("desk.fetched", {})] * 20,
    ]

    found = [strike.name for strike in strikes(FORWARD, reached)]

    assert found[:5] == [
        "start.after_commit#1",
        "step.begun#1",
        "sent.after_commit#1@place_asked",
        "call.answered#1@place_asked",
        "step.begun#2",
    ]
    assert found.count("desk.fetched#1") == 1
    assert len(found) < 12
    assert "call.answered#1@place_plain" not in found


def test_in_the_middle_the_process_that_recovers_is_struck_as_well() -> None:
    middle = Cell(kind="asked", behaviour="ok", position="middle", direction="forward")
    reached = [("call.answered", {"tool": "place_asked", "direction": "forward"})]

    assert [strike.again for strike in strikes(middle, reached)] == ["", *AGAIN]


def test_a_strike_is_a_plan_that_can_be_carried_out() -> None:
    for point in POINTS:
        assert Strike(point=point).plan().do == ("lose" if point.endswith(".commit_lost") else "kill")
    for again in AGAIN:
        assert Strike(point="call.answered", again=again).plan_again().point == again


def test_an_id_of_the_catalogue_stands_for_all_its_points_and_errands_are_points() -> None:
    assert named("CP-F6") == {"call.answered"}
    assert named("relay.read") == {"relay.read"}
    assert set(ERRANDS) <= set(POINTS)


# --- What is judged -------------------------------------------------------------------------------------------------


def facts(*states: str, state: str, made_up: str = "registered", **changes: Any) -> RunFacts:
    """Two steps in these states, in a run in that one."""
    actions = [
        pictures.action(number, one, made_up, tool="reserve_stock", step=f"s{number}")
        for number, one in enumerate(states, start=1)
    ]
    return pictures.run(*actions, **changes, state=RunState(state))


def record(
    kind: str, step: int, direction: str = "do", *, call: int = 1, status: int | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "business": slot_of("c1", step),
        "direction": direction,
        "call": call,
        "status": status,
    }


DONE = [record("effect", 1), record("effect", 2, call=2)]


def faults(cell: Cell, run: RunFacts | None, *records: dict[str, Any]) -> set[str]:
    return {fault for fault, _ in judge(cell, run, "c1", records).faults}


def test_a_run_that_did_what_it_says_is_sound() -> None:
    assert faults(FORWARD, facts("confirmed", "confirmed", state="completed"), *DONE) == set()


def test_a_run_that_is_not_there_is_lost() -> None:
    assert faults(FORWARD, None) == {"lost"}


@pytest.mark.parametrize(
    ("run", "records", "fault"),
    [
        (facts("confirmed", "confirmed", state="completed"), [*DONE, record("effect", 1)], "doubled"),
        (facts("confirmed", "confirmed", state="completed"), DONE[:1], "false-confirmed"),
        (
            facts("compensated", "rejected", state="compensated", made_up="confirmed"),
            DONE[:1],
            "false-confirmed",
        ),
        (facts("rejected", "skipped", state="failed_clean"), DONE[:1], "false-rejected"),
        (facts("confirmed", "skipped", state="compensated"), DONE[:1], "false-rejected"),
        (facts("confirmed", "sent", state="running"), DONE[:1], "stuck"),
        (facts("confirmed", "confirmed", state="closed_accepted"), DONE, "stuck"),
        (facts("confirmed", "unknown", state="handoff"), DONE[:1], "stuck"),
    ],
    ids=[
        "twice",
        "never there",
        "still there",
        "there after all",
        "left over",
        "running",
        "given up",
        "unneeded",
    ],
)
def test_a_lie_of_the_record_is_seen(run: RunFacts, records: list[dict[str, Any]], fault: str) -> None:
    assert fault in faults(FORWARD, run, *records)


def test_making_up_for_a_step_twice_is_seen() -> None:
    undone = record("effect", 1, "compensate")

    assert "doubled" in faults(
        BACK,
        facts("compensated", "skipped", state="compensated", made_up="confirmed"),
        DONE[0],
        undone,
        undone,
    )


def test_making_up_in_the_order_of_doing_is_seen() -> None:
    undone = [record("effect", 1, "compensate"), record("effect", 2, "compensate", call=2)]
    run = facts("compensated", "compensated", state="compensated", made_up="confirmed")

    assert faults(BACK, run, *DONE, *undone) == {"disordered"}
    assert faults(BACK, run, *DONE, *reversed(undone)) == set()


def test_a_second_call_without_a_clear_answer_to_the_first_is_seen_where_nobody_can_ask() -> None:
    run = facts("confirmed", "confirmed", state="completed")
    throttled = [record("arrived", 1), record("replied", 1, status=429), record("arrived", 1, call=3)]
    blindly = [record("arrived", 1), record("replied", 1), record("arrived", 1, call=3)]

    assert faults(BLIND, run, *throttled, *DONE) == set()
    assert faults(BLIND, run, *blindly, *DONE) == {"doubled"}


def test_a_call_without_a_compensation_on_record_is_seen() -> None:
    run = facts("confirmed", "confirmed", state="completed", made_up="")

    assert faults(FORWARD, run, record("arrived", 1), *DONE) == {"unregistered"}


def test_nothing_played_holds_nothing() -> None:
    assert not Tally().holds
    assert case_name(FORWARD, None) == "asked/ok/first/forward/unstruck"


class Ground:
    """Lanes that play every cell at once, without a fault."""

    def __init__(self, lanes: int) -> None:
        self.lanes = [self] * lanes

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def play(self, cell: Cell, *, only: str, most: int | None) -> list[Outcome]:
        return [Outcome(case=case_name(cell, None), struck=False, state="completed", faults=(), seconds=0.1)]


@pytest.mark.parametrize(("minutes", "played"), [(None, 3), (1.0, 3), (0.0, 0)])
def test_when_its_time_is_up_nothing_more_is_begun(
    monkeypatch: pytest.MonkeyPatch, minutes: float | None, played: int
) -> None:
    monkeypatch.setattr(matrix, "Lanes", Ground)
    assert matrix.play([FORWARD] * 3, print, lanes=2, minutes=minutes).cases == played
