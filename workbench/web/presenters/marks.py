"""Marks, strips, bars, counts, risk and owner: the small pieces that several screens share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby

from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas.facts import Counts, StripMark
from tools.contract import Contract
from workbench.web.presenters import words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import StateWord, Words

LONGEST_STRIP = 8
# Equal strips are made once a language: a long queue shows few different ones.
REMEMBERED = 1024
_BAR_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One mark of a strip: shape, bar below, and everything it says in words."""

    icon: str
    bar: str
    says: str


@dataclass(frozen=True, kw_only=True)
class BarPart:
    """One stretch of a proportional bar, in pixels."""

    tone: str
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Strip:
    """Up to eight marks, or a bar from nine steps up; `says` is the accessible name."""

    says: str
    marks: tuple[Mark, ...] = ()
    bar: tuple[BarPart, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Count:
    """One of the five counts; zero is a dot."""

    name: Words
    value: int
    tone: str
    first: bool = False


@dataclass(frozen=True, kw_only=True)
class Risk:
    """A level as bars and words."""

    level: int
    word: Words
    long: Words


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Who holds the claim, as initials and words; `mine` when it is the reader. `claim_url` where it can be taken."""

    initials: str
    name: Words
    nobody: bool = False
    mine: bool = False
    since: str = ""
    until: str = ""
    ref: str = ""
    version: int = 0
    claim_url: str = ""


def strip(marks: Iterable[StripMark]) -> Strip:
    """The step strip of a case."""
    return _strip(tuple(marks), get_language() or "")


@lru_cache(maxsize=REMEMBERED)
def _strip(all_marks: tuple[StripMark, ...], _language: str) -> Strip:
    if sum(number for __, number in words_of(all_marks)) > LONGEST_STRIP:
        return _bar(words_of(all_marks))
    says = ngettext("{n} step", "{n} steps", len(all_marks)).format(n=len(all_marks))
    return Strip(says=says, marks=tuple(_mark(mark) for mark in all_marks))


def long_strip(marks: Iterable[StripMark]) -> Strip | None:
    """The bar of a case with more steps, or parts of steps, than a strip shows; None for the others."""
    made = strip(marks)
    return made if made.bar else None


def _mark(mark: StripMark) -> Mark:
    state, kept = words.state(mark.state), words.recovery(mark.recovery_class)
    says = f"{mark.position}. {mark.tool}: {_lower(state.word)}, {_lower(kept.word)}"
    return Mark(icon=state.icon, bar=kept.bar, says=says)


def _lower(word: Words) -> str:
    text = str(word)
    return text[:1].lower() + text[1:]


_TONES = {
    "ok": "ok",
    "kept": "ok",
    "bad": "bad",
    "compfailed": "bad",
    "unk": "unk",
    "compensated": "cmp",
    "compensating": "run",
    "sent": "run",
}
_TONE_ORDER = ("ok", "cmp", "run", "bad", "unk", "wait")


def words_of(marks: Iterable[StripMark]) -> tuple[tuple[str, int], ...]:
    """How often each word stands for a step, or for a part of one that is a call over many."""
    found: Counter[str] = Counter()
    for mark in marks:
        found.update(dict(mark.items or ((mark.state, 1),)))
    return tuple(found.items())


def bar(found: Iterable[tuple[str, int]]) -> Strip:
    """A proportional bar of words and how often each is there, good news first; what failed is hatched."""
    return _bar(tuple(found))


def _bar(found: tuple[tuple[str, int], ...]) -> Strip:
    ordered = sorted(found, key=lambda one: _TONE_ORDER.index(_tone(one[0])))
    every = sum(number for __, number in ordered)
    parts, x = [], 0.0
    for tone, same in groupby(ordered, key=lambda one: _tone(one[0])):
        width = _BAR_WIDTH * sum(number for __, number in same) / every
        parts.append(BarPart(tone=tone, x=round(x, 2), width=round(max(width - 1, 2), 2)))
        x += width
    listed = _(", ").join(
        _("{n} {word}").format(n=number, word=_lower(words.state(word).word)) for word, number in ordered
    )
    return Strip(says=_("{listed} of {all}").format(listed=listed, all=every), bar=tuple(parts))


def _tone(word: str) -> str:
    return _TONES.get(words.state(word).icon, "wait")


def counts(found: Counts) -> tuple[Count, ...]:
    """The five counts in their fixed order."""
    return _counts(found, get_language() or "")


@lru_cache(maxsize=REMEMBERED)
def _counts(found: Counts, _language: str) -> tuple[Count, ...]:
    rows = (
        (_("ok"), found.ok, "g"),
        (_("failed"), found.failed, "b"),
        (_("unknown"), found.unknown, "u"),
        (_("irreversible"), found.irreversible, ""),
        (_("compensable"), found.compensable, ""),
    )
    return tuple(
        Count(name=name, value=value, tone=tone if value else "z", first=number == 0)
        for number, (name, value, tone) in enumerate(rows)
    )


def risk(level: str) -> Risk:
    """How much is at stake."""
    number, word, long = words.LEVELS.get(level, (0, level, level))
    return Risk(level=number, word=word, long=long)


def owner(
    *, claimed_by: str, name: str, until: datetime | None, since: datetime | None, reader: str, clock: Clock
) -> Owner:
    """Who holds the claim; a lease that has run out counts as nobody's."""
    if not claimed_by or (until is not None and until <= clock.now):
        return Owner(initials="?", name=_("Unclaimed"), nobody=True)
    mine = claimed_by == reader
    return Owner(
        initials=initials(name),
        name=_("You") if mine else name,
        mine=mine,
        since=clock.short(since),
        until=clock.short(until),
    )


def initials(name: str) -> str:
    """Two letters that stand for a person."""
    parts = [part for part in name.replace(".", " ").split() if part]
    return "".join(part[0] for part in parts[:2]).upper() or "?"


def state_of(contract: Contract, state: str, compensation: str) -> StateWord:
    """An action's state with its compensation folded in, as the strip shows it."""
    folded: Mapping[str, str] = {
        "due": "compensating",
        "sent": "compensating",
        "awaiting_approval": "awaiting_approval",
        "unknown": "compensation_unknown",
        "failed": "compensation_failed",
    }
    if state == "confirmed" and contract.has_effect and compensation in folded:
        return words.state(folded[compensation])
    return words.state(state)


def recovery_of(contract: Contract) -> words.ClassWord:
    """A tool's recovery class; a tool without effect is read only whatever it says."""
    return words.recovery(str(contract.recovery_class)) if contract.has_effect else words.READ_ONLY
