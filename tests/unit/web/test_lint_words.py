"""What the check and the ten questions say can be said in every language: the tables of the screens miss no word."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.utils import translation

from tests import builders
from tools import lint
from workbench.web.presenters import readiness_words
from workbench.web.presenters.lint_words import RULES

READINESS = Path(lint.__file__).parent / "readiness.py"


def test_every_code_is_said_in_the_words_of_the_check() -> None:
    with translation.override("en"):
        ours = {code: (str(one.title), str(one.harm), str(one.fix)) for code, one in RULES.items()}

    assert ours == {code: (one.title, one.harm, one.fix) for code, one in lint.CODES.items()}


def test_every_answer_that_a_contract_can_give_is_in_the_table() -> None:
    """Read off the source: whatever stands behind a mark is an answer."""
    tree = ast.parse(READINESS.read_text("utf-8"))
    given = {
        node.elts[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(node.elts[1], ast.Constant)
        if isinstance(node.elts[0], ast.Attribute) and ast.unparse(node.elts[0]).startswith("Mark.")
    }
    dictionaries = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    given |= {
        value.value
        for one in dictionaries
        for key, value in zip(one.keys, one.values, strict=True)
        if isinstance(value, ast.Constant) and key is not None and ast.unparse(key).startswith("Who.")
    }

    with translation.override("en"):
        assert {str(one) for one in readiness_words.ANSWERS} == given


@pytest.mark.parametrize("tool", ["send_notice", "reserve_stock", "query_notice", "create_ticket"])
def test_questions_and_answers_of_shipped_contracts_read_the_same_in_english(tool: str) -> None:
    with translation.override("en"):
        for answer in lint.readiness(builders.contract(tool)):
            assert str(readiness_words.QUESTIONS[answer.number - 1]) == answer.question
            assert answer.template in {str(one) for one in readiness_words.ANSWERS}
