"""Numbers as screens show them: counts, shares of a whole as small bars, figures with a target."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from workbench.web.presenters.clock import seconds_words
from workbench.web.presenters.words import Words

_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class Share:
    """A part of a whole: name, percent, count, and how long its bar is in pixels of 120."""

    name: Words
    percent: str
    count: str
    tone: str
    width: int


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number with the target that it is held to; `off` when it misses it."""

    name: Words
    value: str
    target: str
    off: bool


def percent(part: int, whole: int) -> int:
    """A share in whole percent, never rounded to all or to nothing when it is neither."""
    if not whole:
        return 0
    rounded = round(100 * part / whole)
    return min(max(rounded, 1 if part else 0), 100 if part == whole else 99)


def share(name: Words, part: int, whole: int, *, tone: str) -> Share:
    """A part with its bar; what is there is at least two pixels long."""
    width = round(_WIDTH * part / whole) if whole else 0
    return Share(
        name=name,
        percent=_("{n} %").format(n=percent(part, whole)),
        count=number(part),
        tone=tone,
        width=max(width, 2) if part else 0,
    )


def number(value: int) -> str:
    """A whole number with groups of three."""
    return f"{value:,}"


def counted(value: int, *, capped: bool) -> str:
    """A count, with a plus where counting stopped."""
    return _("{n} or more").format(n=number(value)) if capped else number(value)


def milliseconds(mean: int | None) -> str:
    """A mean duration in words, "" where nothing was answered."""
    if mean is None or mean >= 1000:
        return seconds_words(mean)
    return _("{n} ms").format(n=mean)
