"""Times as people read them: in their zone, absolute on evidence, relative only for deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.translation import gettext as _

from tools.contract import Json


@dataclass(frozen=True, kw_only=True)
class Due:
    """A deadline: `left` in words, `at` as a clock time, `late` when it has passed."""

    left: str
    at: str
    late: bool

    @property
    def both(self) -> str:
        """31 m left, due 11:13."""
        return _("{left}, {at}").format(left=self.left, at=self.at)


@dataclass(frozen=True)
class Clock:
    """The server's now and the reader's zone; every time on a page goes through one of these."""

    now: datetime
    zone: tzinfo

    def time(self, at: datetime | None) -> str:
        """14:03:09, with the date in front when it is another day."""
        return self._day(at) + self._local(at).strftime("%H:%M:%S") if at else ""

    def short(self, at: datetime | None) -> str:
        """14:03, with the date in front when it is another day."""
        return self._day(at) + self._local(at).strftime("%H:%M") if at else ""

    def exact(self, at: datetime | None) -> str:
        """14:03:09.120, for the inside of evidence."""
        if not at:
            return ""
        local = self._local(at)
        return f"{self._day(at)}{local:%H:%M:%S}.{local.microsecond // 1000:03d}"

    def stamp(self, at: datetime | None) -> str:
        """For `<time datetime>`."""
        return self._local(at).isoformat(timespec="milliseconds") if at else ""

    def due(self, at: datetime) -> Due:
        """How long until `at`, rounded down to minutes, or how long past it."""
        seconds = int((at - self.now).total_seconds())
        late = seconds < 0
        span = span_words(abs(seconds))
        left = _("{span} late").format(span=span) if late else _("{span} left").format(span=span)
        return Due(left=left, at=_("due {time}").format(time=self.short(at)), late=late)

    def _local(self, at: datetime) -> datetime:
        return at.astimezone(self.zone)

    def _day(self, at: datetime) -> str:
        local = self._local(at)
        return "" if local.date() == self._local(self.now).date() else f"{local:%Y-%m-%d} "


def limit_words(schedule: Mapping[str, Json], due_at: datetime) -> str:
    """How a due time came about: 8 h of working time, Europe/London (UTC+01:00); "" where every minute counts."""
    zone = str(schedule.get("zone") or "")
    if not zone:
        return ""
    offset = f"{due_at.astimezone(zone_of(zone)):%z}"
    return _("{span} of working time, {zone} (UTC{offset})").format(
        span=span_words(int(float(schedule["minutes"]) * 60)), zone=zone, offset=f"{offset[:3]}:{offset[3:]}"
    )


def span_words(seconds: int) -> str:
    """A span as people say it: 40 s, 31 m, 1 h 12 m, 3 d 4 h."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return _("{days} d {hours} h").format(days=days, hours=hours)
    if hours:
        return _("{hours} h {minutes} m").format(hours=hours, minutes=minutes)
    if minutes:
        return _("{minutes} m").format(minutes=minutes)
    return _("{seconds} s").format(seconds=rest)


def seconds_words(milliseconds: int | None) -> str:
    """A duration on evidence: 0.4 s."""
    return "" if milliseconds is None else _("{seconds} s").format(seconds=f"{milliseconds / 1000:.1f}")


def zone_of(name: str) -> tzinfo:
    """The zone of this name; UTC when this machine does not know it."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
