"""Codes are stable and told on a page; readiness and waivers follow from them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tools.samples import DOCUMENT, READ, contract
from tests.unit.tools.test_lint import LETTER
from tools import lint
from tools.lint import Finding, Mark, Severity, Waiver, page
from tools.lint.readiness import open_questions

ERRORS = {f"W{number:03}" for number in range(1, 12)} | {f"W10{number}" for number in range(1, 8)}
WARNINGS = {f"W{number}" for number in range(201, 211)}
FULL: dict[str, Any] = {
    **DOCUMENT,
    "texts": {**DOCUMENT["texts"], "effect": "A room is held"},
    "status_query": {"tool": "find_booking", "args": {"key": {"from": "key"}}, "found": {"text": "t"}},
    "statuses": {"409": "refused"},
    "compensation": {**DOCUMENT["compensation"], "who": "automatic", "verify": {"text": "t"}},
}


def finding(code: str, step: str = "s1") -> Finding:
    return Finding(code=code, step=step, message="m", fix="f")


@pytest.mark.requirement("S2-17")
def test_a_code_keeps_its_severity() -> None:
    assert {one.code for one in lint.CODES.values() if one.severity is Severity.ERROR} == ERRORS
    assert {one.code for one in lint.CODES.values() if one.severity is Severity.WARNING} == WARNINGS
    assert all(code == one.code and one.harm and one.fix for code, one in lint.CODES.items())


def test_the_page_says_what_the_table_says() -> None:
    assert not page.stale(), "run python -m tools.lint.page"
    text = page.PAGE.read_text("utf-8")
    assert [code for code in lint.CODES if f"| {code} |" not in text] == []


def test_a_stale_page_is_noticed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "lint.md")

    assert page.main(["--check"]) == 1
    assert page.main([]) == 0
    assert page.main(["--check"]) == 0


@pytest.mark.requirement("S1-24")
def test_the_ten_questions_are_answered_in_order() -> None:
    answers = lint.readiness(contract(FULL), tried={"book_room"})

    assert [answer.number for answer in answers] == list(range(1, 11))
    assert [answer.number for answer in answers if answer.mark is Mark.OPEN] == []
    assert [answer.number for answer in answers if answer.mark is Mark.WEAK] == [4, 6]
    assert {answer.mark for answer in lint.readiness(contract(READ))} <= {Mark.ANSWERED, Mark.WEAK}


@pytest.mark.requirement("S1-24")
@pytest.mark.parametrize(
    ("changes", "opened"),
    [
        ({}, {10}),
        ({"idempotency": {"support": "none"}}, {10}),
        ({"idempotency": {"support": "none"}, "status_query": None}, {2, 3, 10}),
        ({"status_query": None}, {10}),
        ({"result_schema": None, "reference": None, "texts": {**FULL["texts"], "done": "d"},
          "compensation": {**FULL["compensation"], "args": {"booking": "b"}}}, {8, 10}),
        ({"texts": DOCUMENT["texts"]}, {9, 10}),
        ({"compensation": DOCUMENT["compensation"]}, {6, 10}),
        ({"compensation": {**FULL["compensation"], "args": {"booking": {"from": "prior"}}}}, {4, 10}),
        ({"compensation": None, "recovery_class": "retryable", "idempotency": {"support": "none"}},
         {4, 5, 6, 7, 10}),
        ({"compensation": None, "recovery_class": "retryable", "retry": {"temporary": {"max_attempts": 2}}}, {10}),
    ],
)  # fmt: skip
def test_a_question_is_open_where_the_contract_does_not_answer_it(
    changes: dict[str, Any], opened: set[int]
) -> None:
    document = {name: value for name, value in {**FULL, **changes}.items() if value is not None}

    assert {answer.number for answer in open_questions(contract(document))} == opened


@pytest.mark.requirement("S1-24")
def test_three_open_questions_are_too_many_for_automatic_use() -> None:
    def said(document: dict[str, Any]) -> set[str]:
        known = {one.tool: one for one in (contract(document), contract(READ))}
        return {one.code for one in lint.check_contract(known[document["tool"]], known)}

    assert "W206" not in said(FULL)
    assert "W206" in said({**FULL, "compensation": DOCUMENT["compensation"], "texts": DOCUMENT["texts"]})
    assert "W206" not in said(LETTER | {"texts": FULL["texts"]})


def test_an_error_that_may_be_waived_passes_with_a_reason_and_no_other_does() -> None:
    findings = [finding("W101"), finding("W104", "s2"), finding("W001", "s3"), finding("W201", "s4")]

    assert [one.code for one in lint.unwaived(findings)] == ["W101", "W104", "W001"]
    waived = [Waiver(code="W101", reason="agreed"), Waiver(code="W001", reason="agreed")]
    assert [one.code for one in lint.unwaived(findings, waived)] == ["W104", "W001"]
    assert finding("W101") in lint.unwaived(findings, [Waiver(code="W101", reason="  ")])


@pytest.mark.parametrize(
    ("code", "reason", "fault"),
    [
        ("W101", "agreed", ""),
        ("W101", " ", "says why"),
        ("W102", "agreed", "was not found here"),
        ("W001", "agreed", "cannot be waived"),
        ("W105", "agreed", "cannot be waived"),
        ("W106", "agreed", "cannot be waived"),
        ("W201", "agreed", "is a warning"),
        ("W999", "agreed", "is no code"),
    ],
)
def test_a_waiver_names_an_error_that_is_there_and_may_be_waived(code: str, reason: str, fault: str) -> None:
    findings = [finding(one) for one in ("W101", "W001", "W105", "W106", "W201")]

    faults = lint.faults_of_waivers([Waiver(code=code, reason=reason)], findings)

    assert len(faults) == bool(fault)
    assert all(fault in one for one in faults)


def test_a_code_is_waived_once() -> None:
    twice = [Waiver(code="W101", reason="one"), Waiver(code="W101", reason="another")]

    assert set(lint.faults_of_waivers(twice, [finding("W101")])) == {"W101 is waived twice"}
