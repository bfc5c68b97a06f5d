"""Payloads that can be stored whatever a tool has sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.payload import MAX_DEPTH, TEXT_KEPT, Unreadable, as_text, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>login</html>",
        b'{"a": 1',
        b'{"a": NaN}',
        b"[Infinity]",
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
        b'{"a": "\xc3"}',
        b"[" * 1_000_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"1" * 5000,
        b'{"a": 1} trailing',
        b"\x00",
    ],
)
def test_a_text_that_is_no_usable_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        parse(raw)


@given(JSON)
def test_sound_json_is_read_as_it_is(value: object) -> None:
    names_are_storable = "\\u0000" not in json.dumps(value)
    if names_are_storable:
        assert parse(json.dumps(value).encode()) == value


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    assert parse(b'{"a\\u0000": "x\\u0000\\ud800y"}') == {"a\ufffd": "x\ufffd\ufffdy"}


def test_the_depth_limit_counts_nesting_and_not_brackets_in_text() -> None:
    assert parse(json.dumps(["[" * 500] * 3).encode()) == ["[" * 500] * 3
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(Unreadable):
        parse(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def test_an_empty_body_is_nothing() -> None:
    assert parse(b"") is None
    assert parse(b" \n") is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        value = parse(raw)
    except Unreadable:
        assert "\x00" not in as_text(raw)
    else:
        json.dumps(value, allow_nan=False).encode()


def test_the_text_that_is_kept_is_bounded() -> None:
    assert len(as_text(b"x" * (TEXT_KEPT * 2))) == TEXT_KEPT
