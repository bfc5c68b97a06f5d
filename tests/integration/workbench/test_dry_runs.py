"""Dry runs: a call tried in the provider's test mode, shown before anybody decides, honoured before the leap."""

from __future__ import annotations

from typing import Any

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Attempt, Evidence
from sagas.states import RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows, tried
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import Desk
from tests.integration.workbench.test_plans import plan_of, run_plan
from workbench.commands import Preview, make_preview


@pytest.fixture
def no_flight(workplace: Simulator) -> RunFacts:
    """Car and hotel are booked, the flight was refused for good."""
    workplace.plan({"tool": "book_flight", "mode": "refuse"})
    return tried.trip()


def calls(world: Simulator, tool: str, kind: str = "arrived") -> int:
    return sum(row["kind"] == kind for row in world.ledger(tool=tool))


def preview(facts: RunFacts, verb: str, **given: Any) -> Preview:
    desk = Desk("maya")
    fresh = api.handoff_facts(ref_of(facts))
    step = given.pop("step", "")
    return make_preview(
        actor=desk.actor, person=desk.person, facts=fresh, verb=verb, step=step, arguments=given
    )


def test_a_plan_says_what_the_test_mode_said_and_where_there_is_none(
    no_flight: RunFacts, workplace: Simulator
) -> None:
    written = (Attempt.objects.count(), Evidence.objects.count(), api.run_facts(no_flight.ref).version)

    plan = plan_of("maya", no_flight)

    seen = [(one.tool, one.offered, one.accepted) for one in plan.preview.dry_runs]
    assert seen == [("cancel_hotel", True, True), ("cancel_car", False, None)]
    read = [call.tool for call in plan.preview.calls if not call.changes_state]
    assert "try_cancel_hotel" in read
    assert calls(workplace, "try_cancel_hotel") == 1
    assert calls(workplace, "try_cancel_hotel", "effect") == calls(workplace, "cancel_hotel") == 0
    assert written == (
        Attempt.objects.count(),
        Evidence.objects.count(),
        api.run_facts(no_flight.ref).version,
    )


def test_what_the_test_mode_accepts_is_tried_again_right_before_the_call_and_then_done(
    no_flight: RunFacts, workplace: Simulator
) -> None:
    done = run_plan("maya", plan_of("maya", no_flight))
    facts = flows.drive_until_still(no_flight.ref)

    assert done.accepted, done
    assert facts.state is RunState.COMPENSATED
    assert calls(workplace, "try_cancel_hotel") == 2
    assert calls(workplace, "cancel_hotel", "effect") == 1


def test_a_compensation_that_the_test_mode_refuses_is_not_sent_and_comes_back_to_a_person(
    no_flight: RunFacts, workplace: Simulator
) -> None:
    workplace.plan({"tool": "try_cancel_hotel", "mode": "refuse"})
    plan = plan_of("maya", no_flight)

    done = run_plan("maya", plan)
    facts = flows.drive_until_still(no_flight.ref)

    assert plan.preview.dry_runs[0].accepted is False
    assert done.accepted, done
    assert facts.state is RunState.HANDOFF
    assert calls(workplace, "cancel_hotel") == 0
    compensation = facts.action("book_hotel").compensation
    assert compensation is not None
    assert "the hotel desk would call the booking off" in compensation.error_detail


def test_a_test_mode_that_does_not_answer_holds_no_compensation_up(
    no_flight: RunFacts, workplace: Simulator
) -> None:
    workplace.plan({"tool": "try_cancel_hotel", "mode": "reset"})
    plan = plan_of("maya", no_flight)

    run_plan("maya", plan)
    facts = flows.drive_until_still(no_flight.ref)

    assert plan.preview.dry_runs[0].accepted is None
    assert facts.state is RunState.COMPENSATED


def test_the_preview_of_a_repeat_tries_the_very_arguments_that_would_be_sent(workplace: Simulator) -> None:
    workplace.plan({"tool": "book_hotel", "mode": "refuse"})
    facts = tried.trip()

    again = preview(facts, "retry", step="book_hotel")
    args = {"trip": facts.business_ref, "hotel": "HARBOUR-000"}
    other = preview(facts, "edit_and_retry", step="book_hotel", args=args)

    assert [(one.offered, one.accepted) for one in again.dry_runs] == [(True, True)]
    assert [(one.accepted, one.detail) for one in other.dry_runs] == [
        (False, "try_book_hotel: HARBOUR-000 is booked out")
    ]
    assert calls(workplace, "book_hotel") == 1


def test_a_tool_without_a_test_mode_is_not_asked(rejected_notice: RunFacts) -> None:
    again = preview(rejected_notice, "retry", step="send_notice")

    assert [(one.tool, one.offered) for one in again.dry_runs] == [("send_notice", False)]
