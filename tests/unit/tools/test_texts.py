"""Texts of contracts with their placeholders filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.texts import fill, inert, placeholders


def test_a_sentence_is_filled_from_arguments_and_result() -> None:
    text = "Room {args.room.no} is booked as {result.booking}"

    assert fill(text, args={"room": {"no": 12}}, result={"booking": "B-1"}) == "Room 12 is booked as B-1"


@pytest.mark.parametrize("args", [None, {}, {"x": None}, {"x": {"y": 1}}, {"x": [1]}, "text"])
def test_a_value_that_is_missing_or_no_scalar_leaves_a_mark(args: object) -> None:
    assert fill("the order {args.x}", args=args) == "the order …"


def test_nothing_else_in_braces_is_filled() -> None:
    assert fill("{0} {args} {args.x} {{args.x}} {secret.x}", args={"x": "{args.x}"}) == (
        "{0} {args} {args.x} {{args.x}} {secret.x}"
    )


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\u202eb", "line\nline", "a\x00b", "a\u2028b"])
def test_what_a_tool_answers_cannot_steer_the_reader(hostile: str) -> None:
    shown = fill("{result.x}", result={"x": hostile})

    assert shown.isprintable()


@given(st.text(), st.text())
def test_filling_anything_gives_text(text: str, value: str) -> None:
    assert isinstance(fill(text + "{args.x}", args={"x": value}), str)
    assert inert(value).isprintable() or not value.isprintable()


def test_placeholders_are_listed_for_checks() -> None:
    assert placeholders("{args.a} {result.b.c} {other.d}") == {("args", "a"), ("result", "b.c")}
