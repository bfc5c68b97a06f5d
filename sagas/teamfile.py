"""Reads a team's file, or its document as stored: zone, hours, holidays, chain. Says all that is wrong at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path as FilePath
from zoneinfo import ZoneInfo, available_timezones

from jsonschema import Draft202012Validator

from sagas.escalation import HIGHEST_LEVEL, UNDECLARED, Level, Team
from sagas.worktime import WEEKDAYS, Span, Worktime, spans_of
from tools.canonical import digest
from tools.contract import Json
from tools.problems import Fault
from tools.reader import read_document, refuse
from tools.structure import faults_against

_NAME = "^[a-z][a-z0-9_-]{0,62}$"
_SCHEMA: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "time_zone", "hours"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": _NAME,
            "description": "the team's name as workflows write it: small letters, digits, _ and -",
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 200, "description": "what people call it"},
        "time_zone": {"type": "string", "description": "a zone such as Europe/London"},
        "hours": {
            "description": '"always", or for each weekday (mon to sun) a list of spans such as 09:00-17:30',
            "oneOf": [
                {"const": "always"},
                {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                },
            ],
        },
        "holidays": {
            "type": "array",
            "maxItems": 2000,
            "items": {"type": "string"},
            "description": "dates such as 2026-12-25 on which nobody works",
        },
        "remind_at": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "the share of the time limit after which the team is reminded; 0 for never",
        },
        "chain": {
            "type": "array",
            "minItems": 1,
            "maxItems": HIGHEST_LEVEL,
            "description": "who is told when a case is late, one after another",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["to"],
                "properties": {
                    "to": {"type": "string", "pattern": _NAME, "description": "to whom, such as lead"},
                    "minutes": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 100_000,
                        "description": "working minutes after the one before; the first counts from the due time",
                    },
                },
            },
        },
    },
}
_VALIDATOR = Draft202012Validator(_SCHEMA)


def read_team(path: str | FilePath) -> tuple[Team, Json]:
    """The team in a TOML or JSON file, and its document. Raises `FileProblems` with all that is wrong; OSError."""
    document, positions = read_document(path)
    refuse(_faults(document), str(path), positions)
    return team_from_document(document), document


def team_from_document(document: Json, *, version: int = 0) -> Team:
    """A team from a document that was checked before it was stored."""
    hours = document["hours"]
    return Team(
        name=document["name"],
        title=document.get("title", document["name"]),
        worktime=Worktime(
            zone=ZoneInfo(document["time_zone"]),
            hours={} if hours == "always" else _week(hours),
            holidays=frozenset(date.fromisoformat(day) for day in document.get("holidays", ())),
            always=hours == "always",
        ),
        chain=tuple(Level(**level) for level in document["chain"]) if "chain" in document else UNDECLARED,
        remind_at=document.get("remind_at", 0.5),
        version=version,
        digest=digest(document),
    )


def _week(hours: dict[str, list[str]]) -> dict[int, list[Span]]:
    """The spans of each weekday in order; what goes over midnight lies on two days."""
    week: dict[int, list[Span]] = {day: [] for day in range(7)}
    for name, texts in hours.items():
        day = WEEKDAYS.index(name)
        for text in texts:
            today, tomorrow = spans_of(text)
            week[day].append(today)
            if tomorrow is not None:
                week[(day + 1) % 7].append(tomorrow)
    return {day: sorted(spans) for day, spans in week.items()}


def _faults(document: Json) -> list[Fault]:
    return faults_against(_VALIDATOR, document, "team") or [
        *_faults_of_zone(document),
        *_faults_of_hours(document["hours"]),
        *_faults_of_holidays(document.get("holidays", ())),
        *_faults_of_chain(document.get("chain", ())),
    ]


def _faults_of_zone(document: Json) -> Iterator[Fault]:
    if document["time_zone"] not in available_timezones():
        yield Fault(
            path=("time_zone",),
            message=f"`{document['time_zone'][:60]}` is no time zone",
            remedy="Write a name of the zone database, such as Europe/London.",
        )


def _faults_of_hours(hours: Json) -> Iterator[Fault]:
    if hours == "always":
        return
    sound = True
    for name, texts in hours.items():
        if name not in WEEKDAYS:
            sound = False
            yield Fault(
                path=("hours", name),
                message=f"`{name[:60]}` is no weekday",
                remedy=f"Write one of {', '.join(WEEKDAYS)}.",
            )
        for index, text in enumerate(texts):
            try:
                spans_of(text)
            except ValueError as error:
                sound = False
                yield Fault(
                    path=("hours", name, index),
                    message=str(error),
                    remedy="Write a span such as 09:00-17:30.",
                )
    if sound:
        yield from _faults_of_week(_week(hours))


def _faults_of_week(week: dict[int, list[Span]]) -> Iterator[Fault]:
    if not any(week.values()):
        remedy = 'Give some weekday hours, or write hours = "always".'
        yield Fault(path=("hours",), message="no weekday has any hours", remedy=remedy)
    for day, spans in week.items():
        for (_, ends), (begins, _) in pairwise(spans):
            if begins < ends:
                message = f"two spans of {WEEKDAYS[day]} lie over each other"
                yield Fault(path=("hours", WEEKDAYS[day]), message=message, remedy="Write them as one.")
                break


def _faults_of_holidays(holidays: Json) -> Iterator[Fault]:
    for index, text in enumerate(holidays):
        try:
            if date.fromisoformat(text).isoformat() == text:
                continue
        except ValueError:
            pass
        yield Fault(
            path=("holidays", index), message=f"`{text[:60]}` is no date", remedy="Write it as 2026-12-25."
        )


def _faults_of_chain(chain: Json) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, level in enumerate(chain):
        if level["to"] in seen:
            message = f"`{level['to']}` stands in the chain twice"
            yield Fault(path=("chain", index, "to"), message=message, remedy="Name everybody once.")
        seen.add(level["to"])
