"""What a trip to the database was: for tests that keep count."""

from __future__ import annotations

from typing import Any


def touched(cursor: Any) -> list[int]:
    """How many rows each statement of the last trip gave or touched. The answers stay to be read."""
    own = cursor.cursor
    rows = [int(each.rowcount) for each in own.results()]
    own.set_result(0)
    return rows
