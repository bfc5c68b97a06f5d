"""A handoff's schedule: when it is due, when somebody is reminded, who is told next, fixed at its opening."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sagas.escalation import Level, Team, level_name, next_alert, schedule, scheduled, undeclared
from sagas.worktime import Worktime

LONDON = ZoneInfo("Europe/London")
OFFICE = Team(
    name="accounts",
    title="Accounts",
    worktime=Worktime(zone=LONDON, hours={day: [(540, 1020)] for day in range(5)}),
    chain=(Level(to="lead"), Level(to="duty_manager", minutes=120)),
    version=3,
    digest="d",
)
OPENED = datetime(2026, 3, 27, 16, 30, tzinfo=LONDON)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_reminder_and_levels_are_working_time_after_the_opening() -> None:
    plan = schedule(OFFICE, 480, OPENED)

    assert plan.remind_at == utc("2026-03-30T11:30")
    assert plan.due_at == utc("2026-03-30T15:30")
    # Half an hour of Monday is left; the rest is Tuesday's.
    assert plan.levels == (("lead", utc("2026-03-30T15:30")), ("duty_manager", utc("2026-03-31T09:30")))
    assert (plan.zone, plan.calendar, plan.digest) == ("Europe/London", 3, "d")


def test_a_stored_schedule_is_the_same_again() -> None:
    plan = schedule(OFFICE, 480, OPENED)

    assert scheduled(plan.document()) == plan
    assert scheduled({}) is None


def test_what_is_told_next_is_the_earliest_that_was_not_told() -> None:
    plan = schedule(OFFICE, 480, OPENED)

    assert next_alert(plan, level=0, reminded=False) == plan.remind_at
    assert next_alert(plan, level=0, reminded=True) == plan.levels[0][1]
    assert next_alert(plan, level=1, reminded=False) == plan.levels[1][1]
    assert next_alert(plan, level=2, reminded=True) is None
    assert next_alert(plan, level=3, reminded=True) is None
    assert next_alert(None, level=0, reminded=False) is None


def test_a_team_may_want_no_reminder() -> None:
    plan = schedule(replace(OFFICE, remind_at=0.0), 480, OPENED)

    assert plan.remind_at is None
    assert next_alert(plan, level=0, reminded=False) == plan.due_at


def test_a_team_that_nobody_declared_works_around_the_clock_and_has_a_chain() -> None:
    plan = schedule(undeclared("x"), 60, OPENED)

    assert plan.due_at == utc("2026-03-27T17:30")
    assert [to for to, _ in plan.levels] == ["lead", "duty_manager"]
    assert (plan.zone, plan.calendar) == ("", 0)


@pytest.mark.parametrize(("level", "name"), [(0, ""), (1, "lead"), (2, "duty_manager"), (3, "")])
def test_a_level_has_the_name_of_its_chain(level: int, name: str) -> None:
    assert level_name(schedule(OFFICE, 480, OPENED), level) == name
