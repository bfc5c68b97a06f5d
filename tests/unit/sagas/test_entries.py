"""An entry is an event as well: what it says of a change is bounded, whatever a tool or a caller sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sagas.entries import LONGEST_VALUE, PLANNER, EntryRow, insert
from tools.contract import Json


class Cursor:
    """Keeps what it was told to write."""

    def execute(self, sql: str, params: Any, /) -> object:
        self.params = params
        return None


def written(value: Json) -> Any:
    cursor = Cursor()
    insert(cursor, [EntryRow(name="x", actor=PLANNER, after=value)])
    text = cursor.params[16]
    assert text is None or len(text) <= LONGEST_VALUE
    return None if text is None else json.loads(text)


@pytest.mark.parametrize(
    "value", [None, {}, {"a": "x" * 30_000}, ["a"] * 1000, {"a": {"b": [1, 2.5, True, None]}}]
)
def test_what_is_not_too_long_is_written_as_it_is(value: Json) -> None:
    assert written(value) == value


def test_a_long_text_is_cut_where_it_stands_and_the_rest_is_kept() -> None:
    said = written({"ref": "HF-1", "body": "x" * 1_000_000})

    assert said["ref"] == "HF-1"
    assert said["body"].startswith("x" * 500)
    assert said["body"].endswith("999500 more characters")


def test_a_long_list_and_many_names_say_how_many_are_not_shown() -> None:
    said = written(
        {"steps": [f"s{n}" * 3 for n in range(10_000)], "map": {f"n{n}" * 9: n for n in range(2_000)}}
    )

    assert said["steps"][-1] == "… 9950 more"
    assert said["map"]["not_shown"] == "1950 more names"


def test_what_stays_too_long_in_every_part_is_only_named() -> None:
    many: Json = {f"a{n}": {f"b{m}": "x" * 500 for m in range(50)} for n in range(50)}

    assert "characters" in written(many)["not_shown"]
