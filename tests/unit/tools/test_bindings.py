"""Arguments out of the closed vocabulary: what is looked up, what is literal, what cannot be bound."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bindings import Unbindable, bind, bindings_in, fault, sources

SCOPE = {
    "input": {"order": "O-1", "lines": [{"sku": "A"}, {"sku": "B"}], "a/b": 1, "none": None},
    "key": "K-1",
}
NAMES = st.text(max_size=9).filter(lambda name: name not in {"from", "literal"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("template", "bound"),
    [
        ("plain", "plain"),
        ({"from": "key"}, "K-1"),
        ({"from": "input", "pointer": "/order"}, "O-1"),
        ({"from": "input", "pointer": "/lines/1/sku"}, "B"),
        ({"from": "input", "pointer": "/a~1b"}, 1),
        ({"from": "input", "pointer": "/none"}, None),
        ({"from": "input", "pointer": "/nothing", "default": 7}, 7),
        ({"from": "steps.s1.result", "pointer": "/x", "default": None}, None),
        ({"a": [{"from": "key"}, {"b": {"from": "key"}}]}, {"a": ["K-1", {"b": "K-1"}]}),
        ({"literal": {"from": "key"}}, {"from": "key"}),
    ],
)
def test_a_binding_takes_its_value_from_the_named_place(template: object, bound: object) -> None:
    assert bind(template, SCOPE) == bound


@pytest.mark.parametrize(
    "template",
    [
        {"from": "input", "pointer": "/nothing"},
        {"from": "input", "pointer": "/lines/2"},
        {"from": "input", "pointer": "/lines/01"},
        {"from": "input", "pointer": "/lines/-"},
        {"from": "input", "pointer": "/order/0"},
        {"from": "output"},
        {"from": "input", "pointer": "order"},
        {"from": "input", "pointr": "/order"},
        {"from": 3},
    ],
)
def test_a_binding_without_a_value_says_where_it_stands(template: object) -> None:
    with pytest.raises(Unbindable) as caught:
        bind({"deep": [template]}, SCOPE)

    assert caught.value.where == "/deep/0"


@given(JSON)
def test_a_value_without_bindings_passes_unchanged(value: object) -> None:
    assert bind(value, {}) == value


@given(st.dictionaries(st.sampled_from(["from", "pointer", "default", "other"]), JSON, min_size=1))
def test_binding_anything_gives_a_value_or_says_that_it_cannot(template: dict[str, object]) -> None:
    with contextlib.suppress(Unbindable):
        assert "from" not in template or bind(template, SCOPE) is not template


def test_sources_are_listed_but_not_those_inside_a_literal() -> None:
    template = {
        "a": {"from": "input", "pointer": "/x"},
        "b": [{"from": "key"}],
        "c": {"literal": {"from": "z"}},
    }

    assert sources(template) == {"input", "key"}
    assert [binding.where for binding in bindings_in(template)] == ["/a", "/b/0"]


def test_a_malformed_binding_is_told_apart_from_a_missing_value() -> None:
    assert fault({"from": "input", "pointer": "x"})
    assert fault({"from": "input", "pointer": "/x", "defualt": 1})
    assert not fault({"from": "input", "pointer": "/x", "default": 1})
