"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests import builders
from workbench.web.presenters.clock import limit_words, span_words, zone_of


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(40, "40 s"), (1860, "31 m"), (4320, "1 h 12 m"), (273_600, "3 d 4 h")],
)
def test_a_span_is_rounded_down_to_what_matters(seconds: int, words: str) -> None:
    assert span_words(seconds) == words


def test_a_deadline_is_relative_and_absolute() -> None:
    due = builders.clock().due(builders.NOW + timedelta(minutes=31, seconds=20))

    assert (due.left, due.at, due.late) == ("31 m left", "due 12:13", False)


def test_a_missed_deadline_says_late() -> None:
    due = builders.clock().due(builders.NOW - timedelta(minutes=14))

    assert (due.left, due.late) == ("14 m late", True)


def test_evidence_has_milliseconds_and_another_day_its_date() -> None:
    clock = builders.clock()

    assert clock.exact(builders.NOW + timedelta(milliseconds=120)) == "11:42:00.120"
    assert clock.short(builders.NOW - timedelta(days=1)) == "2026-03-13 11:42"


def test_a_zone_that_this_machine_does_not_know_is_utc() -> None:
    assert str(zone_of("Nowhere/Land")) == "UTC"


@pytest.mark.parametrize(
    ("due_at", "words"),
    [
        (datetime(2026, 3, 30, 15, 30, tzinfo=UTC), "8 h 0 m of working time, Europe/London (UTC+01:00)"),
        (datetime(2026, 10, 26, 16, 30, tzinfo=UTC), "8 h 0 m of working time, Europe/London (UTC+00:00)"),
    ],
)
def test_a_limit_in_working_time_names_the_zone_and_the_offset_at_the_due_time(
    due_at: datetime, words: str
) -> None:
    assert limit_words({"zone": "Europe/London", "minutes": 480}, due_at) == words
    assert limit_words({"zone": "", "minutes": 480}, due_at) == ""
    assert limit_words({}, due_at) == ""
