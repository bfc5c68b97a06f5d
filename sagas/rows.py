"""Rows by statements that are composed once: what the engine reads and writes many times for each step of a run.

The object mapper composes a statement anew each time, which costs several times what the server does with it. Names
come from the models and conditions from the code alone, never from outside. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Field, Model


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """How rows of a model lie in its table. `converted`: the places of what is not yet a value of Python."""

    columns: str
    names: tuple[str, ...]
    converted: tuple[tuple[int, Field[Any, Any]], ...]


@cache
def _shape(model: type[Model]) -> _Shape:
    fields = model._meta.concrete_fields
    return _Shape(
        columns=", ".join(f'"{field.column}"' for field in fields),
        names=tuple(field.attname for field in fields),
        converted=tuple(
            (place, field) for place, field in enumerate(fields) if hasattr(field, "from_db_value")
        ),
    )


def fetch[M: Model](model: type[M], rest: str, params: Sequence[Any]) -> list[M]:
    """The rows of a table under `rest` of a statement: its condition, its order, its lock."""
    shape = _shape(model)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {shape.columns} FROM "{model._meta.db_table}" {rest}', params)  # noqa: S608  fixed text
        found = [list(row) for row in cursor.fetchall()]
    for row in found:
        for place, field in shape.converted:
            row[place] = field.from_db_value(row[place], None, connection)  # type: ignore[attr-defined]
    return [model.from_db(DEFAULT_DB_ALIAS, shape.names, row) for row in found]


def change(model: type[Model], columns: Mapping[str, Any], condition: str, params: Sequence[Any]) -> int:
    """Set columns where a condition holds; returns in how many rows."""
    fields = [model._meta.get_field(name) for name in columns]
    assert all(isinstance(field, Field) for field in fields)  # noqa: S101  columns of ours
    given = [
        field.get_db_prep_save(value, connection)  # type: ignore[union-attr]
        for field, value in zip(fields, columns.values(), strict=True)
    ]
    assigned = ", ".join(f'"{field.column}" = %s' for field in fields)  # type: ignore[union-attr]
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE "{model._meta.db_table}" SET {assigned} WHERE {condition}', [*given, *params])  # noqa: S608  fixed text
        return int(cursor.rowcount)


def add(model: type[Model], columns: Mapping[str, Any]) -> int:
    """Add a row of these columns, every other as its model says; returns its number."""
    left_out = [field for field in model._meta.concrete_fields if field.attname not in columns]
    given = dict(columns) | {
        field.attname: field.get_default()
        for field in left_out
        if not (field.primary_key or field.has_db_default())
    }
    fields = [model._meta.get_field(name) for name in given]
    values = [
        field.get_db_prep_save(value, connection)  # type: ignore[union-attr]
        for field, value in zip(fields, given.values(), strict=True)
    ]
    names = ", ".join(f'"{field.column}"' for field in fields)  # type: ignore[union-attr]
    places = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES ({places}) RETURNING id',  # noqa: S608  fixed text
            values,
        )
        return int(cursor.fetchone()[0])
