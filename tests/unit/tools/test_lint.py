"""The lint of definitions and contracts: every fault at once, each with what to do about it."""

import copy
from typing import Any

import pytest

from tests.unit.tools.samples import DOCUMENT, READ, contract, document
from tools import lint
from tools.contract import Contract
from tools.reader import definition_from_document

FREE = document(
    tool="free_room",
    recovery_class="retryable",
    compensation=None,
    reference=None,
    call={"adapter": "http", "method": "DELETE", "path": "/bookings/{booking}"},
    args_schema={"type": "object", "required": ["booking"], "properties": {"booking": {"type": "string"}}},
    texts={"title": "Room freed", "done": "Room freed", "question": "is the room free?"},
)
LETTER = document(
    tool="send_letter",
    effect_kind="external_effect",
    recovery_class="irreversible",
    compensation=None,
    escalation={"when": "w", "context": "c", "to": "t"},
)
FOUND = {"text": "t"}
STEP = {
    "id": "book",
    "tool": "book_room",
    "contract_version": 1,
    "args": {"room": {"from": "input", "pointer": "/room"}, "night": "2031-05-01"},
}
DEFINITION: dict[str, Any] = {
    "name": "stay",
    "version": 1,
    "title": "A stay",
    "input_schema": {"type": "object", "properties": {"room": {"type": "string"}}},
    "steps": [STEP],
    "end_states": [
        {
            "id": "ok",
            "title": "ok",
            "conditions": [{"text": "booked", "step": "book", "states": ["confirmed"]}],
        }
    ],
}


def contracts(**changes: Any) -> dict[str, Contract]:
    known = [contract(**changes), contract(READ), contract(FREE), contract(LETTER)]
    return {one.tool: one for one in known}


def codes(definition: dict[str, Any], known: dict[str, Contract] | None = None) -> set[tuple[str, str, str]]:
    found = lint.check(definition_from_document(definition), contracts() if known is None else known)
    return {(one.code, str(one.severity), one.step) for one in found}


def errors(definition: dict[str, Any], known: dict[str, Contract] | None = None) -> set[tuple[str, str]]:
    return {(code, step) for code, severity, step in codes(definition, known) if severity == "error"}


def with_step(**changes: Any) -> dict[str, Any]:
    definition = copy.deepcopy(DEFINITION)
    definition["steps"].append(copy.deepcopy(STEP) | {"id": "second"} | changes)
    return definition


def test_a_sound_definition_has_no_errors() -> None:
    found = lint.check(definition_from_document(DEFINITION), contracts())

    assert not lint.blocks(found)
    assert {one.code for one in found} <= {"W206", "W209"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tool": "nothing"}, "W001"),
        ({"contract_version": 2}, "W002"),
        ({"args": {"room": {"from": "steps.book.output"}, "night": "x"}}, "W003"),
        ({"args": {"room": {"from": "steps.none.result"}, "night": "x"}}, "W004"),
        (
            {"args": {"room": {"from": "steps.second.result", "pointer": "/booking"}, "night": "x"}},
            "W005",
        ),
        ({"args": {"room": {"from": "steps.book.result", "pointer": "/no"}, "night": "x"}}, "W006"),
        ({"args": {"room": {"from": "steps.book.prior"}, "night": "x"}}, "W006"),
        ({"args": {"room": "12", "nigth": "x"}}, "W007"),
        ({"args": {"room": "12"}}, "W008"),
        ({"args": {"room": 12, "night": "x"}}, "W009"),
    ],
)
def test_a_step_that_cannot_work_is_an_error_on_that_step(changes: dict[str, Any], expected: str) -> None:
    assert (expected, "error", "second") in codes(with_step(**changes))


def test_a_default_allows_for_a_value_that_may_not_be_there() -> None:
    args = {"room": {"from": "steps.book.result", "pointer": "/no", "default": "12"}, "night": "x"}

    assert not {code for code, severity, _ in codes(with_step(args=args)) if severity == "error"}


@pytest.mark.requirement("S0-33", "S0-72")
def test_one_rule_for_every_failure_is_refused() -> None:
    rule = {"max_attempts": 3, "first_delay_s": 1}
    blanket = dict.fromkeys(("temporary", "not_sent", "throttled", "no_answer", "server"), rule)

    assert ("W106", "error", "book") in codes(DEFINITION, contracts(retry=blanket))
    varied = blanket | {"throttled": {"max_attempts": 50}}
    assert "W106" not in {code for code, _, _ in codes(DEFINITION, contracts(retry=varied))}


@pytest.mark.requirement("S0-79", "S4-23")
@pytest.mark.parametrize("missing", ["free_room", "find_booking"])
def test_a_tool_that_a_contract_leans_on_must_be_published(missing: str) -> None:
    query = {
        "tool": "find_booking",
        "args": {"key": {"from": "key"}},
        "found": {"text": "t", "pointer": "/booking"},
    }
    known = contracts(status_query=query)
    known.pop(missing)

    assert ("W001", "error", "book") in codes(DEFINITION, known)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status_query": {"tool": "free_room", "args": {"booking": "x"}, "found": FOUND}}, "W010"),
        ({"status_query": {"tool": "find_booking", "args": {}, "found": FOUND}}, "W008"),
        ({"status_query": {"tool": "find_booking", "args": {"key": "k", "x": 1}, "found": FOUND}},
         "W007"),
        ({"prior_state": {"tool": "find_booking", "args": {"key": "k"}, "version": "/v"}}, "W006"),
        ({"compensation": DOCUMENT["compensation"] | {"tool": "find_booking", "args": {"key": "k"}}},
         "W011"),
        ({"compensation": DOCUMENT["compensation"] | {"args": {"booking": {"from": "prior"}}}}, "W105"),
        ({"compensation": DOCUMENT["compensation"] | {"args": {}}}, "W008"),
        ({"compensation": DOCUMENT["compensation"] | {
            "verify": {"text": "t", "read": "find_booking", "pointer": "/none"}}}, "W006"),
        ({"compensation": DOCUMENT["compensation"] | {
            "verify": {"text": "t", "read": "free_room", "pointer": "/booking"}}}, "W010"),
    ],
)  # fmt: skip
def test_a_contract_that_leans_on_the_wrong_thing_is_an_error(changes: dict[str, Any], expected: str) -> None:
    known = contracts(**changes)

    found = lint.check_contract(known["book_room"], known)

    assert expected in {one.code for one in found if one.severity is lint.Severity.ERROR}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"text": "t", "step": "none", "states": ["confirmed"]}, "W004"),
        ({"text": "t", "read": "nothing"}, "W001"),
        ({"text": "t", "read": "book_room"}, "W010"),
        ({"text": "t", "read": "find_booking", "pointer": "/none"}, "W006"),
        (
            {"text": "t", "read": "find_booking", "args": {"key": {"from": "steps.none.result"}}},
            "W004",
        ),
        ({"text": "t", "read": "find_booking", "args": {"key": {"from": "prior"}}}, "W003"),
    ],
)
def test_an_end_state_that_cannot_be_checked_is_an_error(condition: dict[str, Any], expected: str) -> None:
    definition = copy.deepcopy(DEFINITION)
    definition["end_states"][0]["conditions"] = [condition]

    assert (expected, "error", "") in codes(definition)
