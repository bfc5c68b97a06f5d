"""Working time is exact where wall clocks jump, over weekends, midnights and holidays."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagas.worktime import Worktime, spans_of

LONDON, BERLIN = ZoneInfo("Europe/London"), ZoneInfo("Europe/Berlin")
OFFICE = Worktime(zone=LONDON, hours={day: [(9 * 60, 17 * 60)] for day in range(5)})
NIGHTS = Worktime(zone=LONDON, hours={day: [(0, 6 * 60), (22 * 60, 1440)] for day in range(7)})
EVERY_HOUR = Worktime(zone=LONDON, hours={day: [(0, 1440)] for day in range(7)})


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(text: str, zone: ZoneInfo = LONDON) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("opened", "four_hours", "eight_hours"),
    [
        # The clocks go forward on Sunday 29 March 2026.
        ("2026-03-27T16:30", "2026-03-30T11:30", "2026-03-30T15:30"),
        # The clocks go back on Sunday 25 October 2026.
        ("2026-10-23T16:30", "2026-10-26T12:30", "2026-10-26T16:30"),
    ],
)
def test_a_weekend_on_which_the_clocks_change_takes_no_working_hour(
    opened: str, four_hours: str, eight_hours: str
) -> None:
    assert OFFICE.after(wall(opened), 240) == utc(four_hours)
    assert OFFICE.after(wall(opened), 480) == utc(eight_hours)


def test_what_opens_on_a_saturday_begins_to_count_on_monday() -> None:
    opened = wall("2026-03-28T12:00")

    assert OFFICE.after(opened, 240) == wall("2026-03-30T13:00")
    # At the last moment of the day, not at the first of the next one.
    assert OFFICE.after(opened, 480) == wall("2026-03-30T17:00")
    assert OFFICE.after(opened, 481) == wall("2026-03-31T09:01")


def test_a_shift_over_the_missing_hour_is_an_hour_shorter() -> None:
    night = wall("2026-03-28T22:00")

    assert NIGHTS.between(night, wall("2026-03-29T06:00")) == timedelta(hours=7)
    assert NIGHTS.after(night, 7 * 60) == wall("2026-03-29T06:00")


def test_a_shift_over_the_hour_that_comes_twice_is_an_hour_longer() -> None:
    night = wall("2026-10-24T22:00")

    assert NIGHTS.between(night, wall("2026-10-25T06:00")) == timedelta(hours=9)
    # Half past one comes twice; three and a half hours after ten it is there for the first time.
    assert NIGHTS.after(night, 210) == utc("2026-10-25T00:30")
    assert NIGHTS.after(night, 270) == utc("2026-10-25T01:30")


def test_hours_that_the_wall_clock_skips_are_not_there() -> None:
    skipped = Worktime(zone=BERLIN, hours={6: [(2 * 60, 3 * 60)]})
    partly = Worktime(zone=BERLIN, hours={6: [(90, 180)]})

    assert skipped.after(wall("2026-03-28T12:00", BERLIN), 30) == wall("2026-04-05T02:30", BERLIN)
    assert partly.between(wall("2026-03-28T12:00", BERLIN), wall("2026-03-30T00:00", BERLIN)) == timedelta(
        minutes=30
    )


def test_hours_that_the_wall_clock_shows_twice_count_twice() -> None:
    twice = Worktime(zone=LONDON, hours={6: [(60, 90)]})

    assert twice.between(utc("2026-10-25T00:00"), utc("2026-10-25T06:00")) == timedelta(hours=1)
    assert twice.counts(utc("2026-10-25T00:10"))
    assert not twice.counts(utc("2026-10-25T00:40"))
    assert twice.counts(utc("2026-10-25T01:10"))


def test_a_day_whose_midnight_is_skipped_is_a_day_all_the_same() -> None:
    cairo = Worktime(zone=ZoneInfo("Africa/Cairo"), hours={day: [(0, 1440)] for day in range(7)})

    # On Friday 24 April 2026 midnight becomes one o'clock.
    day = cairo.between(utc("2026-04-23T22:00"), wall("2026-04-25T00:00", cairo.zone))

    assert day == timedelta(hours=23)


def test_a_date_that_a_zone_left_out_has_no_hours() -> None:
    apia = Worktime(zone=ZoneInfo("Pacific/Apia"), hours={4: [(0, 1440)]})

    # Samoa went from Thursday 29 to Saturday 31 December 2011.
    assert apia.opens(utc("2011-12-29T12:00")) == wall("2012-01-06T00:00", apia.zone)


def test_a_holiday_does_not_count_and_another_year_does() -> None:
    closed = Worktime(zone=LONDON, hours=OFFICE.hours, holidays=frozenset({date(2026, 12, 25)}))

    assert closed.after(wall("2026-12-24T16:00"), 120) == wall("2026-12-28T10:00")
    assert not closed.counts(wall("2026-12-25T10:00"))


def test_midnight_is_no_border_for_who_works_over_it() -> None:
    assert EVERY_HOUR.after(wall("2026-06-01T23:50"), 20) == wall("2026-06-02T00:10")
    assert EVERY_HOUR.after(wall("2026-03-29T00:30"), 60) == wall("2026-03-29T02:30")


def test_around_the_clock_every_minute_counts() -> None:
    always = Worktime(zone=LONDON, always=True)

    assert always.after(wall("2026-03-28T12:00"), 1440) == utc("2026-03-29T12:00")
    assert always.between(utc("2026-01-01T00:00"), utc("2026-01-02T00:00")) == timedelta(days=1)


def test_a_calendar_without_hours_is_refused_not_searched_for_ever() -> None:
    with pytest.raises(ValueError, match="no working time"):
        Worktime(zone=LONDON).after(wall("2026-01-01T00:00"), 1)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("09:00-17:30", ((540, 1050), None)),
        ("00:00-24:00", ((0, 1440), None)),
        ("22:00-06:00", ((1320, 1440), (0, 360))),
        ("22:00-00:00", ((1320, 1440), None)),
    ],
)
def test_a_span_may_go_over_midnight(text: str, spans: object) -> None:
    assert spans_of(text) == spans


@pytest.mark.parametrize(
    "text",
    ["9-17", "09:00", "09:00-09:00", "24:00-06:00", "09:60-10:00", "25:00-26:00", "a-b", "٠٩:00-10:00"],
)
def test_what_is_no_span_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"no span|no time of day|empty"):
        spans_of(text)


# --- Properties ---------------------------------------------------------------------------------------------------

ZONES = [
    "Europe/London",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Pacific/Apia",
    "UTC",
]


@st.composite
def calendars(draw: st.DrawFn) -> Worktime:
    hours = {}
    for day in range(7):
        marks = sorted(draw(st.sets(st.integers(0, 48), min_size=0, max_size=4)))
        hours[day] = [(a * 30, b * 30) for a, b in zip(marks[::2], marks[1::2], strict=False)]
    hours[draw(st.integers(0, 6))] = [(540, 1020)]
    holidays = draw(st.sets(st.dates(date(2026, 1, 1), date(2026, 12, 31)), max_size=3))
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    return Worktime(zone=zone, hours=hours, holidays=frozenset(holidays))


# Around the nights on which one of the zones changes its clocks, and anywhere else.
INSTANTS = st.one_of(
    st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 6), timezones=st.just(UTC)),
    st.datetimes(datetime(2026, 10, 23), datetime(2026, 11, 3), timezones=st.just(UTC)),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
).map(lambda at: at.replace(microsecond=0))


@settings(max_examples=80, deadline=None)
@given(calendar=calendars(), start=INSTANTS, minutes=st.integers(1, 4000))
def test_what_was_added_lies_between(calendar: Worktime, start: datetime, minutes: int) -> None:
    end = calendar.after(start, minutes)

    assert calendar.between(start, end) == timedelta(minutes=minutes)
    assert calendar.counts(end - timedelta(seconds=1))


@settings(max_examples=60, deadline=None)
@given(calendar=calendars(), start=INSTANTS, first=st.integers(1, 2000), second=st.integers(1, 2000))
def test_two_stretches_after_each_other_are_one(
    calendar: Worktime, start: datetime, first: int, second: int
) -> None:
    assert calendar.after(calendar.after(start, first), second) == calendar.after(start, first + second)


@settings(max_examples=60, deadline=None)
@given(calendar=calendars(), start=INSTANTS, later=st.integers(0, 10_000), minutes=st.integers(1, 2000))
def test_what_begins_later_does_not_end_earlier(
    calendar: Worktime, start: datetime, later: int, minutes: int
) -> None:
    assert calendar.after(start + timedelta(minutes=later), minutes) >= calendar.after(start, minutes)


@settings(max_examples=25, deadline=None)
@given(calendar=calendars(), start=INSTANTS)
def test_three_days_hold_as_many_working_minutes_as_the_wall_clock_shows(
    calendar: Worktime, start: datetime
) -> None:
    """The model: go from minute to minute and look at the clock on the wall."""
    start = start.replace(second=0)
    minutes = range(3 * 1440)

    shown = sum(calendar.counts(start + timedelta(minutes=minute)) for minute in minutes)

    assert calendar.between(start, start + timedelta(days=3)) == timedelta(minutes=shown)
