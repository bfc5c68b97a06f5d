"""Idempotency keys: the same call always has the same one, two calls never share one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.keys import LONGEST, compensation_key, forward_key

PARTS = st.tuples(st.text(), st.text(), st.none() | st.text(min_size=1), st.text(), st.integers(0, 99))


@pytest.mark.requirement("S4-12", "S1-6")
def test_the_same_call_has_the_same_key_whenever_it_is_asked_for() -> None:
    key = forward_key("R-7", "send_notice", None, "send", 1)

    assert key == "R-7.send_notice.send.g1"
    assert forward_key("R-7", "send_notice", None, "send", 1) == key


@pytest.mark.requirement("S4-12")
@given(PARTS, PARTS)
def test_two_different_calls_never_share_a_key(
    one: tuple[str, str, str | None, str, int], other: tuple[str, str, str | None, str, int]
) -> None:
    assert (forward_key(*one) == forward_key(*other)) == (one == other)


@pytest.mark.requirement("S2-15")
@given(PARTS, PARTS)
def test_a_compensation_has_a_derived_key_that_no_forward_call_can_have(
    one: tuple[str, str, str | None, str, int], other: tuple[str, str, str | None, str, int]
) -> None:
    assert compensation_key(forward_key(*one)) != forward_key(*other)
    assert compensation_key(forward_key(*one)) == compensation_key(forward_key(*one))


@given(PARTS)
def test_a_key_can_travel_in_a_header(parts: tuple[str, str, str | None, str, int]) -> None:
    for key in (forward_key(*parts), compensation_key(forward_key(*parts))):
        assert len(key) <= LONGEST
        assert key.isascii()
        assert key.isprintable()
        assert " " not in key


def test_long_names_still_give_different_keys() -> None:
    long = "x" * 500

    assert forward_key("R-1", long + "a", None, "send", 1) != forward_key("R-1", long + "b", None, "send", 1)
