"""Where a value stands in its file, line-exact, for TOML and JSON."""

import contextlib
import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.json_text import read_json
from tools.positions import Unparsable
from tools.toml_text import read_toml

TOML = '''\
top = 1
"a.b" = { x = [1, { y = 2 }], "z" = """q " ] } # """ } # done
[t.u]
list = [
  1, # one
  "two",
]
[[s]]
id = "1"
[s.args]
v = true
[[s]]
id = 'x'
d.e = 1
[[s.inner]]
w = 2
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("top",), (1, 1)),
        (("a.b",), (2, 1)),
        (("a.b", "x", 1, "y"), (2, 21)),
        (("a.b", "z"), (2, 31)),
        (("t", "u"), (3, 1)),
        (("t", "u", "list", 1), (6, 3)),
        (("s", 0), (8, 1)),
        (("s", 0, "args", "v"), (11, 1)),
        (("s", 1, "id"), (13, 1)),
        (("s", 1, "d", "e"), (14, 1)),
        (("s", 1, "inner", 0, "w"), (16, 1)),
        (("s", 1, "missing"), (12, 1)),
        (("nowhere", "at", "all"), (1, 1)),
    ],
)
def test_every_toml_field_has_its_line_and_column(
    path: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    value, positions = read_toml(TOML)

    assert value == tomllib.loads(TOML)
    assert positions.place(path) == place


def test_every_json_field_has_its_line_and_column() -> None:
    _, positions = read_json('{\n  "a": [1, {"b": "x"}],\n  "c": null\n}')

    assert positions.place(("a", 1, "b")) == (2, 13)
    assert positions.place(("c",)) == (3, 3)
    assert positions.place(("a", 0)) == (2, 9)


def test_a_name_given_twice_in_json_is_noted() -> None:
    _, positions = read_json('{"a": 1,\n "a": 2}')

    assert [(fault.path, fault.message) for fault in positions.faults] == [
        (("a",), "is given twice, first on line 1")
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ('{"a":}', 1, 6),
        ('{"a" 1}', 1, 6),
        ("[1,\n", 2, 1),
        ('"open', 1, 1),
        ("[1] x", 1, 5),
        ('{"a":NaN}', 1, 6),
        ('{"a":1e999}', 1, 6),
        ('"\\x"', 1, 2),
        ("{a: 1}", 1, 2),
        ("[01]", 1, 3),
        ("[" * 100, 1, 66),
        ("9" * 5000, 1, 1),
    ],
)
def test_a_json_syntax_error_has_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(Unparsable) as caught:
        read_json(text)

    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "line"), [("a =", 1), ("a = 1\nb = ]", 2), ("a=1\na=2", 2), ('x = """\n\n', 3)]
)
def test_a_toml_syntax_error_has_its_line(text: str, line: int) -> None:
    with pytest.raises(Unparsable) as caught:
        read_toml(text)

    assert caught.value.line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=25,
)  # fmt: skip


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_json_is_read_as_the_standard_parser_reads_it(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert read_json(text)[0] == json.loads(text)


@given(st.text(alphabet="[]{}=.,\"'#\n\\ ab1tru-:e", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_json, read_toml):
        with contextlib.suppress(Unparsable):
            _, positions = read(text)
            assert min(map(positions.place, positions.offsets), default=(1, 1)) >= (1, 1)


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [deep for name, part in pairs for deep in _paths(part, (*path, name))]


def test_no_toml_field_is_left_without_a_place() -> None:
    value, positions = read_toml(TOML)

    assert [path for path in _paths(value) if path and path not in positions.offsets] == []
