"""Statements that go to the database in one trip are done one after the other, all of them or none."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from sagas import rows
from sagas.models import Gate
from sagas.rows import Statement, add, as_rows, insert, select, send, store, update
from sagas.tx import durable

pytestmark = pytest.mark.usefixtures("db_clean")


def gate(tool: str) -> Statement:
    return insert(Gate, {"tool": tool})


def tools() -> list[str]:
    return [row.tool for row in as_rows(Gate, send(select(Gate, "ORDER BY tool", []))[0])]


def test_each_statement_of_a_trip_sees_those_before_it_and_says_what_it_touched() -> None:
    with CaptureQueriesContext(connection) as trips:
        first, second, changed, found = send(
            gate("book"),
            gate("pay"),
            update(Gate, {"tool": "paid 100 %; or ?"}, "tool = %s", ["pay"]),
            select(Gate, "ORDER BY tool", []),
        )

    assert len(trips) == 1
    assert first.rows[0][0] < second.rows[0][0]
    assert changed.count == 1
    assert [row.tool for row in as_rows(Gate, found)] == ["book", "paid 100 %; or ?"]


def test_where_one_statement_fails_none_after_it_is_done_and_the_transaction_is_lost() -> None:
    with pytest.raises(IntegrityError), durable():
        send(gate("book"), gate("book"), gate("pay"))

    assert tools() == []


def test_nothing_to_send_is_no_trip() -> None:
    with CaptureQueriesContext(connection) as trips:
        assert send() == []

    assert len(trips) == 0


def test_very_many_values_go_in_as_few_trips_as_it_takes_and_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = len(gate("any").params)
    monkeypatch.setattr(rows, "_VALUES_AT_ONCE", 3 * one)
    with CaptureQueriesContext(connection) as trips:
        sent = send(*(gate(f"tool {number}") for number in range(7)))

    assert len(trips) == 3
    ids = [each.rows[0][0] for each in sent]
    assert ids == sorted(ids)
    assert tools() == [f"tool {number}" for number in range(7)]


def test_a_row_that_is_stored_is_what_the_object_mapper_finds() -> None:
    row = store(Gate(tool="book"))
    other = add(Gate, {"tool": "pay"})

    assert Gate.objects.get(tool="book") == row
    assert not row._state.adding
    assert Gate.objects.get(pk=other).tool == "pay"
