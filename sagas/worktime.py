"""Working time: which instants count for a team, and arithmetic over them. Pure; knows no clock and no database.

An instant is working time if and only if the clock on the team's wall shows an hour of that weekday's hours and the
date on it is no holiday. So an hour that the wall clock skips is not there, and one that it shows twice counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 1440

_SECOND = timedelta(seconds=1)
_FARTHEST_OFFSET = timedelta(hours=26)
"""No zone is farther from UTC, with a margin for a day that its clocks change on."""

type Span = tuple[int, int]
"""From and to in minutes of the wall clock's day, 0 to 1440; the end does not belong to it."""


@dataclass(frozen=True, kw_only=True)
class Worktime:
    """A team's working time. `hours` has the spans of each weekday (Monday 0), in order and apart from each other.

    `always` is the working time of somebody who is never away: every instant counts, in any zone.
    """

    zone: ZoneInfo
    hours: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    holidays: frozenset[date] = frozenset()
    always: bool = False

    def after(self, start: datetime, minutes: float) -> datetime:
        """The instant at which `minutes` of working time have gone by since `start`, in UTC.

        What ends with a working day ends at its last moment, not at the next day's first. Raises `ValueError` for a
        calendar without any working time, or less than no minutes.
        """
        left = timedelta(minutes=minutes)
        start = start.astimezone(UTC)
        if left < timedelta(0):
            raise ValueError("working time only goes forward")
        if not left or self.always:
            return start + left
        for begins, ends in self._spans_from(start):
            if ends - begins >= left:
                return begins + left
            left -= ends - begins
        raise AssertionError("unreachable")

    def between(self, start: datetime, end: datetime) -> timedelta:
        """How much working time lies between two instants; nothing if `end` is not later."""
        start, end = start.astimezone(UTC), end.astimezone(UTC)
        if self.always:
            return max(end - start, timedelta(0))
        total = timedelta(0)
        for begins, ends in self._spans_from(start):
            if begins >= end:
                break
            total += min(ends, end) - begins
        return total

    def counts(self, at: datetime) -> bool:
        """Whether this instant is working time."""
        if self.always:
            return True
        wall = at.astimezone(self.zone)
        second = wall.hour * 3600 + wall.minute * 60 + wall.second
        return any(begins * 60 <= second < ends * 60 for begins, ends in self._spans_of(wall.date()))

    def opens(self, at: datetime) -> datetime:
        """The first working instant that is not earlier than `at`, in UTC."""
        return at.astimezone(UTC) if self.always else next(self._spans_from(at.astimezone(UTC)))[0]

    def _spans_of(self, day: date) -> Sequence[Span]:
        return () if day in self.holidays else self.hours.get(day.weekday(), ())

    def _spans_from(self, start: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Working time from an instant on, without end: stretches of UTC, in order."""
        if not any(self.hours.values()):
            raise ValueError("this calendar has no working time")
        day = start.astimezone(self.zone).date() - timedelta(days=1)
        while True:
            for begins, ends in self._instants(day):
                if ends > start:
                    yield max(begins, start), ends
            day += timedelta(days=1)

    def _instants(self, day: date) -> list[tuple[datetime, datetime]]:
        """The stretches of UTC in which the wall shows this date and a time within its spans, in order."""
        spans = self._spans_of(day)
        if not spans:
            return []
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        found = []
        for since, until, offset in self._offsets(
            midnight - _FARTHEST_OFFSET, midnight + timedelta(days=1) + _FARTHEST_OFFSET
        ):
            for begins, ends in spans:
                first = max(midnight + timedelta(minutes=begins) - offset, since)
                last = min(midnight + timedelta(minutes=ends) - offset, until)
                if first < last:
                    found.append((first, last))
        return sorted(found)

    def _offsets(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """The stretches of one offset each between two instants, to the second: two where the clocks change."""
        while since < until:
            offset = self._offset(since)
            change = until if self._offset(until) == offset else self._change(since, until)
            yield since, change, offset
            since = change

    def _change(self, since: datetime, until: datetime) -> datetime:
        """The first instant after `since` at which another offset than there is in force."""
        offset = self._offset(since)
        while until - since > _SECOND:
            middle = since + timedelta(seconds=(until - since) // _SECOND // 2)
            since, until = (middle, until) if self._offset(middle) == offset else (since, middle)
        return until

    def _offset(self, at: datetime) -> timedelta:
        return at.astimezone(self.zone).utcoffset() or timedelta(0)


def spans_of(text: str) -> tuple[Span, Span | None]:
    """`09:00-17:30` as a span of its day, and what of it lies on the next day (`22:00-06:00`).

    Raises `ValueError` with a sentence.
    """
    parts = text.split("-")
    if len(parts) != 2:
        raise ValueError(f"{text!r} is no span such as 09:00-17:30")
    begins, ends = (_minute(part.strip()) for part in parts)
    if begins in (ends, DAY_MINUTES):
        raise ValueError(f"{text!r} is empty; a whole day is 00:00-24:00")
    if begins < ends:
        return (begins, ends), None
    return (begins, DAY_MINUTES), ((0, ends) if ends else None)


def _minute(text: str) -> int:
    hours, colon, minutes = text.partition(":")
    if colon and len(hours) == len(minutes) == 2 and (hours + minutes).isdecimal() and text.isascii():
        minute = int(hours) * 60 + int(minutes)
        if int(minutes) < 60 and minute <= DAY_MINUTES:
            return minute
    raise ValueError(f"{text!r} is no time of day between 00:00 and 24:00")
