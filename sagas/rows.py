"""Rows by statements that are composed once: what the engine reads and writes many times for each step of a run.

The object mapper composes a statement anew each time, which costs several times what the server does with it; and a
step has a dozen statements, so that those that do not wait for each other's answers go to the server in one trip.
Names come from the models and conditions from the code alone, never from outside. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Field, Model
from django.db.models.expressions import DatabaseDefault

type Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """One statement with its values, ready to be sent."""

    text: str
    params: Sequence[Any] = ()


@dataclass(frozen=True)
class Sent:
    """What became of a statement: the rows it gives, and how many it touched."""

    rows: Sequence[Row]
    count: int


_VALUES_AT_ONCE = 20_000
"""Values that one trip carries about: more would only be more to hold in memory at once, on both sides."""


def send(*statements: Statement) -> list[Sent]:
    """Send these in one trip (very many: in as few as it takes) and return what became of each.

    The server does one after the other; each sees those before it, and what others have committed by the time that it
    begins. If one fails its error is raised and nothing of its trip counts, nor of the transaction around it.
    """
    sent: list[Sent] = []
    trip: list[Statement] = []
    carried = 0
    for statement in statements:
        carried += len(statement.params)
        if trip and carried > _VALUES_AT_ONCE:
            sent += _one_trip(trip)
            trip, carried = [], len(statement.params)
        trip.append(statement)
    return sent + (_one_trip(trip) if trip else [])


def _one_trip(statements: Sequence[Statement]) -> list[Sent]:
    with connection.cursor() as cursor:
        own = cursor.cursor
        if len(statements) == 1:
            cursor.execute(statements[0].text, statements[0].params)
        else:
            # Put together one by one: the driver remembers how to put together a statement that is short.
            cursor.execute(";\n".join(own.mogrify(one.text, one.params) for one in statements))
        # All answers are here; the driver's own cursor is asked for them, without Django's detour each time.
        return [_seen(each) for each in own.results()]


def _seen(cursor: Any) -> Sent:
    return Sent(cursor.fetchall() if cursor.pgresult.nfields else (), cursor.rowcount)


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


def select(model: type[Model], rest: str, params: Sequence[Any]) -> Statement:
    """Reads the rows of a table under `rest` of a statement: its condition, its order, its lock. See `as_rows`."""
    return Statement(f'SELECT {_shape(model).columns} FROM "{model._meta.db_table}" {rest}', params)  # noqa: S608  fixed text


def as_rows[M: Model](model: type[M], sent: Sent) -> list[M]:
    """What a `select` of this model found."""
    shape, found = _shape(model), [list(row) for row in sent.rows]
    for row in found:
        for place, field in shape.converted:
            row[place] = field.from_db_value(row[place], None, connection)  # type: ignore[attr-defined]
    return [model.from_db(DEFAULT_DB_ALIAS, shape.names, row) for row in found]


def fetch[M: Model](model: type[M], rest: str, params: Sequence[Any]) -> list[M]:
    """The rows of a table under `rest` of a statement."""
    (sent,) = send(select(model, rest, params))
    return as_rows(model, sent)


def update(
    model: type[Model], columns: Mapping[str, Any], condition: str, params: Sequence[Any]
) -> Statement:
    """Sets columns where a condition holds."""
    fields, values = _prepared(model, columns)
    assigned = ", ".join(f'"{field.column}" = %s' for field in fields)
    return Statement(
        f'UPDATE "{model._meta.db_table}" SET {assigned} WHERE {condition}',  # noqa: S608  fixed text
        [*values, *params],
    )


def change(model: type[Model], columns: Mapping[str, Any], condition: str, params: Sequence[Any]) -> int:
    """Set columns where a condition holds; returns in how many rows."""
    return send(update(model, columns, condition, params))[0].count


def insert(model: type[Model], columns: Mapping[str, Any]) -> Statement:
    """Adds a row of these columns, every other as its model says; gives its number."""
    left_out = [field for field in model._meta.concrete_fields if field.attname not in columns]
    given = dict(columns) | {
        field.attname: field.get_default()
        for field in left_out
        if not (field.primary_key or field.has_db_default())
    }
    fields, values = _prepared(model, given)
    names = ", ".join(f'"{field.column}"' for field in fields)
    places = ", ".join(["%s"] * len(values))
    return Statement(
        f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES ({places}) RETURNING id',  # noqa: S608  fixed text
        values,
    )


def add(model: type[Model], columns: Mapping[str, Any]) -> int:
    """Add a row of these columns, every other as its model says; returns its number."""
    return int(send(insert(model, columns))[0].rows[0][0])


def store[M: Model](row: M) -> M:
    """Add a row that is new; it is given its number."""
    columns = {
        field.attname: value
        for field in row._meta.concrete_fields
        if not field.primary_key and not isinstance(value := getattr(row, field.attname), DatabaseDefault)
    }
    row.pk = add(type(row), columns)
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


def _prepared(model: type[Model], columns: Mapping[str, Any]) -> tuple[list[Field[Any, Any]], list[Any]]:
    """The fields of these columns, and their values as the database takes them."""
    fields = [field for field in map(model._meta.get_field, columns) if isinstance(field, Field)]
    assert len(fields) == len(columns)  # noqa: S101  columns of ours
    own, given = connections[DEFAULT_DB_ALIAS], zip(fields, columns.values(), strict=True)
    return fields, [field.get_db_prep_save(value, own) for field, value in given]
