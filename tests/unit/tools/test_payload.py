"""Payloads that can be stored whatever a tool has sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.payload import MAX_DEPTH, TEXT_KEPT, Unreadable, as_text, parse, whole_members

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


@pytest.mark.parametrize(
    ("beginning", "members"),
    [
        (b'{"id":"o-1","echo":"xxxxxxxx', {"id": "o-1"}),
        (b'{"id":"o-1","n":12', {"id": "o-1"}),
        (b'{"id":"a,b","lines":[{"a":1},{"a":2', {"id": "a,b"}),
        (b'{"id":"a\\",\\"b","deep":{"id":"o-2","x":', {"id": 'a","b'}),
        (b'{"lines":[1,2,3', {}),
        (b'[{"id":"o-1"},{"id":"o-2"},', {}),
        (b'\xef\xbb\xbf {"a":1,"b":"\xc3', {"a": 1}),
        (b'{"a":"\\ud800","b":', {"a": "\ufffd"}),
    ],
)
def test_of_a_document_that_was_cut_off_only_whole_members_are_kept(
    beginning: bytes, members: object
) -> None:
    assert whole_members(beginning) == members


@pytest.mark.parametrize(
    "beginning",
    [
        b"<html>" + b"x" * 100,
        b"",
        b'{"a":NaN,"b":',
        b'{"a":1,"a":2,"b":',
        b'{"a":\xff,"b":',
        b"[" * 100_000,
        b'{"a":1} and more',
        b'{"a":1},{"b":2',
    ],
)
def test_what_is_no_beginning_of_a_document_is_refused(beginning: bytes) -> None:
    with pytest.raises(Unreadable):
        whole_members(beginning)


@given(st.dictionaries(st.text(alphabet='abc"\\,{}[]é', max_size=4), JSON, min_size=1, max_size=5), st.data())
def test_wherever_a_document_is_cut_off_what_is_kept_stood_in_it(
    document: dict[str, object], data: st.DataObject
) -> None:
    raw = json.dumps(document, ensure_ascii=data.draw(st.booleans())).encode()
    cut = data.draw(st.integers(1, len(raw) - 1))

    members = whole_members(raw[:cut])

    assert members.items() <= parse(raw).items() or members == {n: parse(raw)[n] for n in members}
