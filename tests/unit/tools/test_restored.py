"""A masked copy that a person edited: what was left at the mask is the secret again, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from tools.redact import MASK, mask, restored

STORED = {
    "zip": "1",
    "card": {"number": "4111", "cvv": "123"},
    "note": "call with Bearer abcdefgh12345678",
    "people": [{"name": "A", "password": "x"}, {"name": "B", "password": "y"}],
}
SECRET = ("/args/card/number",)


def shown() -> dict[str, Any]:
    return dict(mask(STORED, SECRET))


@pytest.mark.requirement("S1-17")
def test_what_was_left_masked_is_what_it_was() -> None:
    assert "4111" not in str(shown())

    assert restored(shown(), STORED, SECRET) == (STORED, ())


@pytest.mark.requirement("S1-17")
def test_what_was_changed_is_changed_and_its_neighbours_keep_their_secrets() -> None:
    given = {**shown(), "zip": "12345", "card": {**shown()["card"], "number": "5500"}}

    value, misplaced = restored(given, STORED, SECRET)

    assert value == {**STORED, "zip": "12345", "card": {"number": "5500", "cvv": "123"}}
    assert misplaced == ()


def test_what_was_added_or_taken_away_stays_so() -> None:
    given = shown()
    del given["note"]
    given["people"] = [*given["people"], {"name": "C"}]

    value, misplaced = restored(given, STORED, SECRET)

    assert value == {
        "zip": "1",
        "card": STORED["card"],
        "people": [*STORED["people"], {"name": "C"}],
    }
    assert misplaced == ()


def test_a_mask_that_was_moved_opens_nothing() -> None:
    given = {**shown(), "zip": MASK, "other": MASK}

    value, misplaced = restored(given, STORED, SECRET)

    assert misplaced == ("/zip", "/other")
    assert (value["zip"], value["other"]) == (MASK, MASK)
