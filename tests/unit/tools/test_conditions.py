"""Conditions: what holds, what does not, and what cannot be judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bindings import Unbindable
from tools.conditions import OPERATORS, evaluate, holds
from tools.contract import Condition

DOCUMENT = {"state": "held", "qty": 3, "flag": True, "none": None, "list": [1]}


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("S0-23", "S0-25")
@pytest.mark.parametrize(
    ("pointer", "operator", "value", "expected"),
    [
        ("/state", "equals", "held", True),
        ("/state", "equals", "HELD", False),
        ("/qty", "equals", 3.0, True),
        ("/flag", "equals", 1, False),
        ("/qty", "not_equals", 4, True),
        ("/list", "equals", [True], False),
        ("/state", "exists", None, True),
        ("/none", "exists", None, False),
        ("/none", "absent", None, True),
        ("/gone", "absent", None, True),
        ("/state", "one_of", ["sold", "held"], True),
        ("/state", "one_of", "held", False),
        ("/qty", "at_least", 3, True),
        ("/qty", "at_least", 4, False),
        ("/qty", "at_most", 3, True),
        ("/flag", "at_least", 0, False),
        ("/state", "at_most", "zzz", False),
    ],
)
def test_operators_compare_as_json_does(pointer: str, operator: str, value: object, expected: bool) -> None:
    condition = Condition(text="it is so", pointer=pointer, operator=operator, value=value)

    assert holds(condition, DOCUMENT) is expected


@pytest.mark.requirement("S1-17")
@pytest.mark.parametrize("operator", [one for one in OPERATORS if one != "absent"])
def test_a_missing_value_is_no_evidence(operator: str) -> None:
    condition = Condition(text="it is so", pointer="/gone", operator=operator, value=0)

    assert not holds(condition, DOCUMENT)


def test_a_comparison_with_an_unknown_value_does_not_hold_and_can_be_told_apart() -> None:
    condition = Condition(
        text="t", pointer="/state", operator="not_equals", value={"from": "prior", "pointer": "/s"}
    )

    assert not holds(condition, DOCUMENT, {})
    with pytest.raises(Unbindable):
        evaluate(condition, DOCUMENT, {})
    assert holds(condition, DOCUMENT, {"prior": {"s": "free"}})


@given(st.sampled_from(OPERATORS), DOCUMENTS)
def test_any_document_gets_an_answer(operator: str, document: object) -> None:
    condition = Condition(text="t", pointer="/0", operator=operator, value=document)

    assert holds(condition, document) in (True, False)
