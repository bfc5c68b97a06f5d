"""Entries: event and audit record in one (engine.md, section 9). How one is written; never how one is read.

Knows nothing of Django's models: the application role may insert these very columns and no others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Protocol

from sagas.facts import Actor, ActorKind
from tools.contract import Json

type Sql = str | int | None
"""What an entry's columns are made of."""


class Cursor(Protocol):
    """What is needed of a database cursor."""

    def execute(self, sql: str, params: Sequence[Sql], /) -> object: ...


@dataclass(frozen=True, kw_only=True)
class EntryRow:
    """One entry to be written. `machine` "" = nothing moved: a note, or a refusal.

    `reason_code` says in one word what `reason` says in a person's own; "" where nobody gave one.
    """

    name: str
    actor: Actor
    run_id: int | None = None
    run_ref: str = ""
    seq: int | None = None
    machine: str = ""
    object_id: int | None = None
    object_version: int | None = None
    step: str = ""
    source: str = ""
    target: str = ""
    reason: str = ""
    reason_code: str = ""
    before: Json = None
    after: Json = None
    command_id: str = ""
    saw_version: int | None = None


_COLUMNS = (
    "run_id, run_ref, seq, name, machine, object_id, object_version, step, source, target, actor_kind, "
    "actor_id, actor_name, role, reason, before, after, command_id, saw_version, reason_code"
)
_VALUES = "(" + ", ".join(["%s"] * 15 + ["%s::jsonb", "%s::jsonb", "%s", "%s", "%s"]) + ")"


_FEW, _AT_ONCE = 20, 1000
"""Up to `_FEW` entries are written by a statement each, which the driver remembers; more, so many at once."""


def statements(rows: Sequence[EntryRow]) -> Iterator[tuple[str, list[Sql]]]:
    """What writes entries in order, each statement with its values; who sends it, and over which driver, is not said."""
    for part in batched(rows, 1 if len(rows) <= _FEW else _AT_ONCE):
        sql = f"INSERT INTO sagas_entry ({_COLUMNS}) VALUES " + ", ".join([_VALUES] * len(part))  # noqa: S608  fixed text
        yield sql, [value for row in part for value in _values(row)]


def insert(cursor: Cursor, rows: Sequence[EntryRow]) -> None:
    """Write entries in order."""
    for sql, values in statements(rows):
        cursor.execute(sql, values)


def _values(row: EntryRow) -> tuple[Sql, ...]:
    return (
        row.run_id,
        row.run_ref,
        row.seq,
        row.name,
        row.machine,
        row.object_id,
        row.object_version,
        row.step,
        row.source,
        row.target,
        row.actor.kind.value,
        row.actor.id,
        row.actor.name,
        row.actor.role,
        row.reason,
        _json(row.before),
        _json(row.after),
        row.command_id,
        row.saw_version,
        row.reason_code,
    )


LONGEST_VALUE = 32_768
"""Characters of JSON that an entry holds before or after a change at most: it is an event as well."""

_TEXT_KEPT, _PARTS_KEPT = 500, 50


def _json(value: Json) -> str | None:
    """The value as text; of one that is too long its shape with everything long in it cut short, said so in place."""
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return text
    short = json.dumps(_shortened(value), ensure_ascii=False)
    return short if len(short) <= LONGEST_VALUE else json.dumps({"not_shown": f"{len(text)} characters"})


def _shortened(value: Json) -> Json:
    if isinstance(value, str):
        left = len(value) - _TEXT_KEPT
        return value if left <= 0 else f"{value[:_TEXT_KEPT]}… {left} more characters"
    if isinstance(value, dict):
        kept = {name[:_TEXT_KEPT]: _shortened(part) for name, part in list(value.items())[:_PARTS_KEPT]}
        left = len(value) - _PARTS_KEPT
        return kept if left <= 0 else {**kept, "not_shown": f"{left} more names"}
    if isinstance(value, list | tuple):
        left = len(value) - _PARTS_KEPT
        kept_parts = [_shortened(part) for part in value[:_PARTS_KEPT]]
        return kept_parts if left <= 0 else [*kept_parts, f"… {left} more"]
    return value


def engine(role: str) -> Actor:
    """The engine itself as an actor, in one of its roles (S0-4): planner, executor, tool, validator, compensation."""
    return Actor(kind=ActorKind.SYSTEM, id="engine", name="Amends", role=role)


PLANNER = engine("planner")
EXECUTOR = engine("executor")
TOOL = engine("tool")
VALIDATOR = engine("validator")
COMPENSATOR = engine("compensation")
RECOVERY = engine("recovery")
