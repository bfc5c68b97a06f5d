"""Steps of a group: out at the same time, recorded one by one, settled together, made up for one after the other.

Judged by the outside ledger. The runs are played side by side once; each test looks at its own.
"""

from __future__ import annotations

from typing import Any

import pytest

from sagas import api
from sagas.ledger.start import run_ref
from sagas.published import check_definition
from sagas.states import CompensationState, RunState
from tests.faults.conftest import wait_until
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import Stage, stage
from tests.integration.sagas.test_gates import meanwhile
from tests.integration.sagas.trips import GROUP, names, publish, records, start, states, steps_of, trip
from tools.reader import definition_from_document

__all__ = ["stage"]

FINE, ONE_REFUSED, TWO_REFUSED, UNKNOWN_BESIDE, ABSENT, TEMPORARY, ASKS_A_PERSON = range(7_200_001, 7_200_008)
SLOW = {"mode": "slow", "delay_ms": 900}
TOGETHER = {"mode": "ok", "gate": "until all are there"}


RULES: dict[int, tuple[dict[str, Any], ...]] = {
    FINE: tuple({"tool": f"book_{one}", "holds": one, **TOGETHER} for one in GROUP),
    ONE_REFUSED: (
        {"tool": "book_car", "mode": "refuse"},
        {"tool": "book_hotel", "holds": "hotel", **SLOW},
    ),
    TWO_REFUSED: (
        {"tool": "book_car", "mode": "refuse"},
        {"tool": "book_hotel", "holds": "hotel", "mode": "refuse"},
    ),
    UNKNOWN_BESIDE: (
        {"tool": "book_car", "mode": "refuse"},
        {"tool": "book_hotel", "holds": "hotel", "mode": "applied_no_answer", "attempts": [1]},
    ),
    ABSENT: ({"tool": "book_hotel", "holds": "hotel", "mode": "no_answer", "attempts": [1]},),
    TEMPORARY: ({"tool": "book_flight", "mode": "query_down", "attempts": [1]},),
    ASKS_A_PERSON: (
        {"tool": "book_hotel", "holds": "hotel", "mode": "refuse"},
        {"tool": "book_car", **SLOW},
    ),
}


def planned(stage: Stage) -> list[dict[str, Any]]:
    """Each rule for its own run; `holds` picks the one call of several of a tool."""
    rules = []
    for number, own in RULES.items():
        ref = run_ref(AGENT, f"run-{number}")
        for rule in own:
            rest = {name: value for name, value in rule.items() if name != "holds"}
            rules.append({**rest, "match": f"{ref}.{rule['holds']}" if "holds" in rule else ref})
    return rules


@pytest.fixture(scope="module")
def played(stage: Stage) -> Stage:
    publish()
    stage.simulator.plan(*planned(stage))
    for number in RULES:
        start(stage, number, "trip_asked" if number == ASKS_A_PERSON else "trip_at_once")

    def let_them_pass() -> None:
        wait_until(
            lambda: stage.simulator.held_at(TOGETHER["gate"]) == len(GROUP), "all are there", seconds=30
        )
        stage.simulator.let_pass(TOGETHER["gate"])

    with meanwhile(let_them_pass):
        stage.settle()
    stage.remember()
    return stage


# --- Forward ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-16")
def test_the_calls_of_a_group_overlap_and_the_next_step_waits_for_all_of_them(played: Stage) -> None:
    facts = played.facts(FINE)

    assert facts.state is RunState.COMPLETED
    calls = [
        (one["kind"], one["key"].split(".")[1])
        for one in played.records
        if one["key"].startswith(played.ref(FINE)) and one["kind"] in ("arrived", "replied")
    ]
    in_group = [one for one in calls if one[1] in GROUP]
    assert [kind for kind, _ in in_group] == ["arrived"] * 3 + ["replied"] * 3
    assert calls.index(("arrived", "last")) > max(calls.index(("replied", step)) for step in GROUP)
    assert calls.index(("replied", "eve")) < min(calls.index(("arrived", step)) for step in GROUP)


def test_every_step_of_a_group_is_on_record_with_its_compensation_before_any_of_it_arrives(
    played: Stage,
) -> None:
    """One commit holds the marks of all of them; each result has a commit of its own."""
    entries = {entry.name + entry.step: entry for entry in api.entries(played.ref(FINE))}
    started = [entries[f"tool.execution.started{step}"].seq or 0 for step in GROUP]
    succeeded = [entries[f"tool.execution.succeeded{step}"].seq or 0 for step in GROUP]

    assert all(f"tool.compensation.registered{step}" in entries for step in GROUP)
    assert max(started) < min(succeeded)
    assert sorted(a.confirm_seq or 0 for a in played.facts(FINE).actions) == [1, 2, 3, 4, 5]


def test_a_sibling_that_is_proved_absent_goes_out_again_and_the_group_waits_for_it(played: Stage) -> None:
    facts = played.facts(ABSENT)

    assert facts.state is RunState.COMPLETED
    assert steps_of(records(played, ABSENT, "arrived", of="hotel")) == ["hotel"] * 2
    assert len({one["key"] for one in records(played, ABSENT, "arrived", of="hotel")}) == 1
    assert len(records(played, ABSENT, "effect")) == 5
    assert steps_of(records(played, ABSENT, "arrived"))[-1] == "last"


def test_a_sibling_that_failed_for_the_moment_is_called_again_and_the_others_are_not(played: Stage) -> None:
    assert played.facts(TEMPORARY).state is RunState.COMPLETED
    assert sorted(steps_of(records(played, TEMPORARY, "arrived"))) == sorted(
        ["eve", "car", "hotel", "flight", "flight", "last"]
    )


# --- Back -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-10", "S0-36")
def test_one_is_refused_the_others_are_waited_for_and_made_up_for_in_the_reverse_order_of_confirmation(
    played: Stage,
) -> None:
    facts = played.facts(ONE_REFUSED)

    assert facts.state is RunState.COMPENSATED
    assert states(facts) == {
        "eve": "compensated",
        "car": "rejected",
        "hotel": "compensated",
        "flight": "compensated",
        "last": "skipped",
    }
    compensating = [one for one in records(played, ONE_REFUSED, "effect") if one["direction"] == "compensate"]
    # The hotel answered last, so it was confirmed last, whatever its place in the file.
    assert steps_of(compensating) == ["hotel", "flight", "eve"]
    replied = records(played, ONE_REFUSED, "replied", of="hotel")[0]
    assert compensating[0]["seq"] > replied["seq"]
    assert not records(played, ONE_REFUSED, "arrived", of="last")


@pytest.mark.requirement("S2-10")
def test_compensations_of_a_group_go_out_one_after_the_other(played: Stage) -> None:
    """None arrives before the one before it was answered."""
    back = [
        one
        for one in played.records
        if one["key"].startswith(played.ref(ONE_REFUSED))
        and one["direction"] == "compensate"
        and one["kind"] in ("arrived", "replied")
    ]
    assert [one["kind"] for one in back] == ["arrived", "replied"] * 3


@pytest.mark.requirement("S2-10")
def test_two_failures_turn_the_run_back_once(played: Stage) -> None:
    facts = played.facts(TWO_REFUSED)

    assert facts.state is RunState.COMPENSATED
    assert [states(facts)[step] for step in GROUP] == ["rejected", "rejected", "compensated"]
    assert names(facts).count("run.turned_back") == 1
    assert names(facts).count("tool.execution.failed") == 2
    started = [e.step for e in api.entries(facts.ref) if e.name == "tool.compensation.started"]
    assert started == ["flight", "eve"]
    made_up = {a.step: a.compensation.state for a in facts.actions if a.compensation}
    assert made_up["car"] is made_up["hotel"] is CompensationState.VOIDED


@pytest.mark.requirement("S3-8")
def test_nothing_is_made_up_for_while_a_sibling_is_unknown(played: Stage) -> None:
    facts = played.facts(UNKNOWN_BESIDE)

    assert facts.state is RunState.COMPENSATED
    assert states(facts)["hotel"] == "compensated"
    told = [(entry.name, entry.step) for entry in api.entries(facts.ref)]
    found = told.index(("tool.execution.resolved", "hotel"))
    assert found < min(i for i, (name, _) in enumerate(told) if name == "tool.compensation.started")
    assert len(records(played, UNKNOWN_BESIDE, "arrived", of="hotel")) >= 1
    bookings = records(played, UNKNOWN_BESIDE, "effect", of="hotel")
    assert [one["direction"] for one in bookings] == ["do", "compensate"]


@pytest.mark.requirement("S0-44", "S0-47")
def test_a_person_is_asked_once_the_others_have_answered(played: Stage) -> None:
    facts = played.facts(ASKS_A_PERSON)

    assert facts.state is RunState.HANDOFF
    opened = next(e for e in api.entries(facts.ref) if e.name == "human.handoff.started")
    assert sorted(opened.after["succeeded"]) == ["car", "eve", "flight"]
    assert [one["step"] for one in opened.after["failed"]] == ["hotel"]
    assert states(facts)["last"] == "not_started"


# --- Checked before it runs ---------------------------------------------------------------------------------------


def test_what_a_group_may_not_do_is_found_when_it_is_published(stage: Stage) -> None:
    reads = {"args": {"trip": {"from": "steps.car.result", "pointer": "/booking"}, "hotel": "H-1"}}
    found = check_definition(definition_from_document(trip(hotel=reads)))

    assert [(one.code, one.step) for one in found if one.severity == "error"] == [("W005", "hotel")]
    assert "runs at the same time" in next(one.message for one in found if one.code == "W005")
