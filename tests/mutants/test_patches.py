"""Every seeded bug still fits the product, and is Python."""

import ast

import pytest

from tests.mutants.boot import sources
from tests.mutants.catalogue import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_seeded_bug_still_applies(mutant: Mutant) -> None:
    for text in sources(mutant).values():
        ast.parse(text)


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
