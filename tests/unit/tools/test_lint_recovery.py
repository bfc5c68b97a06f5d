"""What the lint says about order, compensation and questions: each code where it belongs, and only there."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tools.samples import DOCUMENT, READ, contract
from tests.unit.tools.test_lint import FREE, LETTER, STEP
from tools import lint
from tools.contract import Contract
from tools.reader import definition_from_document

QUERY = {
    "tool": "find_booking",
    "args": {"key": {"from": "key"}},
    "found": {"text": "there", "pointer": "/booking"},
}
ASKED = {**LETTER, "status_query": QUERY}
COMPENSATION = DOCUMENT["compensation"]
SEES = {"text": "it is free", "read": "find_booking", "args": {"key": "k"}, "pointer": "/state", "value": "free",
        "operator": "equals"}  # fmt: skip


def step(name: str, tool: str = "book_room", **more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(STEP), "id": name, "tool": tool, **more}


def check(
    steps: list[dict[str, Any]], *others: dict[str, Any], book: dict[str, Any] | None = None, **more: Any
) -> list[lint.Finding]:
    known: dict[str, Contract] = {}
    for document in (DOCUMENT if book is None else book, READ, FREE, ASKED, *others):
        known[document["tool"]] = contract(document)
    document = {
        "name": "stay",
        "version": 1,
        "title": "A stay",
        "input_schema": {"type": "object", "properties": {"room": {"type": "string"}}},
        "steps": steps,
        **more,
    }
    return list(lint.check(definition_from_document(document), known))


def at(findings: list[lint.Finding], code: str) -> list[str]:
    return [finding.step for finding in findings if finding.code == code]


@pytest.mark.requirement("S2-8", "S2-13", "S2-17")
@given(count=st.integers(1, 12), place=st.integers(1, 12))
def test_an_irreversible_step_belongs_into_the_last_third(count: int, place: int) -> None:
    place = min(place, count)
    steps = [step(f"s{n}", "send_letter" if n == place else "book_room") for n in range(1, count + 1)]

    found = check(steps)

    outside = place <= 2 * count / 3
    assert at(found, "W101") == ([f"s{place}"] if outside else [])
    assert at(found, "W201") == ([f"s{place}"] if not outside and place < count else [])


@pytest.mark.requirement("S2-9")
@given(count=st.integers(1, 9), place=st.integers(1, 9))
def test_a_held_send_counts_as_the_last_step(count: int, place: int) -> None:
    place = min(place, count)
    steps = [step(f"s{n}") for n in range(1, count + 1)]
    steps[place - 1] = step(f"s{place}", "send_letter", held=True)

    assert not {"W101", "W201"} & {finding.code for finding in check(steps)}


def test_a_read_after_an_irreversible_step_takes_nothing_back() -> None:
    found = check([step("a"), step("b", "send_letter"), step("look", "find_booking", args={"key": "k"})])

    assert at(found, "W101") == ["b"]  # position 2 of 3
    assert (
        at(check([step("b", "send_letter"), step("look", "find_booking", args={"key": "k"})]), "W201") == []
    )


def test_a_held_step_may_use_what_later_steps_made_and_others_not_what_it_made() -> None:
    later = {"from": "steps.second.result", "pointer": "/booking"}
    args = {"room": later, "night": "x"}

    assert at(check([step("letter", "send_letter", held=True, args=args), step("second")]), "W005") == []
    args = {"room": {"from": "steps.letter.result", "pointer": "/booking"}, "night": "x"}
    assert at(check([step("letter", "send_letter", held=True), step("second", args=args)]), "W005") == [
        "second"
    ]


@pytest.mark.requirement("S4-23", "S4-27", "S1-3")
def test_an_effect_without_compensation_is_an_error_if_a_later_failure_compensates_the_run() -> None:
    free = step("free", "free_room", args={"booking": "B-1"})

    assert at(check([free, step("book")]), "W102") == ["free"]
    behind = check([free, step("book", on_rejected="handoff")])
    assert (at(behind, "W102"), at(behind, "W202")) == ([], ["free"])
    assert at(check([free, step("book")], on_failure="continue"), "W102") == []
    assert at(check([step("book"), free]), "W102") == []


@pytest.mark.requirement("S2-1", "S2-5", "S2-15")
@pytest.mark.parametrize(
    ("maker", "compensation", "safe"),
    [
        ({"idempotency": {"support": "honoured"}}, {}, True),
        ({"idempotency": {"support": "ignored"}}, {}, False),
        ({"idempotency": {"support": "none"}}, {}, False),
        ({"idempotency": {"support": "none", "natural": True}}, {}, True),
        ({"idempotency": {"support": "ignored"}}, {"already_done": SEES}, True),
        ({"idempotency": {"support": "ignored"}}, {"verify": SEES}, False),
    ],
)
def test_a_compensation_must_be_safe_to_repeat(
    maker: dict[str, Any], compensation: dict[str, Any], safe: bool
) -> None:
    book = {**DOCUMENT, "compensation": {**COMPENSATION, **compensation}}

    found = check([step("book")], {**FREE, **maker}, book=book)

    assert at(found, "W103") == ([] if safe else ["book"])


@pytest.mark.requirement("S0-82", "S3-11")
def test_an_irreversible_tool_that_cannot_be_asked_is_an_error() -> None:
    assert at(check([step("letter", "send_letter")], LETTER), "W104") == ["letter"]
    assert at(check([step("letter", "send_letter")]), "W104") == []


@pytest.mark.parametrize(
    ("prior", "pointer", "bindable"),
    [
        (None, "/booking", False),
        ({"tool": "find_booking", "args": {"key": "k"}}, "/none", False),
        ({"tool": "find_booking", "args": {"key": "k"}}, "/booking", True),
    ],
)
def test_a_compensation_bound_to_what_nothing_reads_is_an_error(
    prior: dict[str, Any] | None, pointer: str, bindable: bool
) -> None:
    args = {"booking": {"from": "prior", "pointer": pointer}}
    book = {**DOCUMENT, "compensation": {**COMPENSATION, "args": args}}
    if prior is not None:
        book["prior_state"] = prior

    assert at(check([step("book")], book=book), "W105") == ([] if bindable else ["book"])


def test_a_compensation_known_only_from_an_answer_that_may_be_missing_is_pointed_out() -> None:
    short = {**READ, "result_schema": {"type": "object", "properties": {"state": {"type": "string"}}}}
    asked = {**DOCUMENT, "status_query": {**QUERY, "found": {"text": "t", "pointer": "/state"}}}
    optional = {**DOCUMENT, "result_schema": {**DOCUMENT["result_schema"], "required": []}}

    assert at(check([step("book")], book=asked), "W210") == []
    assert at(check([step("book")], short, book=asked), "W210") == ["book"]
    assert at(check([step("book")], book=optional), "W210") == ["book"]


def test_one_compensation_for_unlike_steps_is_pointed_out_at_each() -> None:
    car = {**DOCUMENT, "tool": "book_car", "system": "cars"}
    bed = {**DOCUMENT, "tool": "book_bed"}
    letter = {**ASKED, "compensation": {**COMPENSATION, "kind": "mitigates"}}

    assert at(check([step("room"), step("car", "book_car")], car), "W203") == ["room", "car"]
    assert at(check([step("room"), step("bed", "book_bed")], bed), "W203") == []
    assert at(check([step("room"), step("again")]), "W203") == []
    assert at(check([step("car", "book_car"), step("letter", "send_letter")], car, letter), "W203") == []


@pytest.mark.requirement("S2-13")
@pytest.mark.parametrize(
    ("good", "bad", "enough"), [(4, 1, True), (3, 1, False), (8, 2, True), (0, 1, False)]
)
def test_four_of_five_steps_can_be_recovered_from(good: int, bad: int, enough: bool) -> None:
    steps = [step(f"g{n}") for n in range(good)] + [step(f"b{n}", "send_letter") for n in range(bad)]

    assert at(check(steps), "W204") == ([] if enough else [""])


@pytest.mark.requirement("S1-4")
def test_an_external_effect_that_nobody_confirms_is_pointed_out() -> None:
    confirmed = {**ASKED, "require_confirmation": True}

    assert at(check([step("letter", "send_letter")]), "W205") == ["letter"]
    assert at(check([step("letter", "send_letter")], confirmed), "W205") == []
    assert at(check([step("book")]), "W205") == []


def test_an_outcome_that_nothing_can_settle_is_pointed_out() -> None:
    lost = {**DOCUMENT, "idempotency": {"support": "ignored"}}

    assert at(check([step("book")], book=lost), "W208") == ["book"]
    assert at(check([step("book")]), "W208") == []
    natural = {**DOCUMENT, "idempotency": {"support": "none", "natural": True}}
    assert at(check([step("book")], book=natural), "W208") == []


def test_the_follow_ups_of_an_end_state_must_be_callable() -> None:
    def found(**changes: Any) -> set[str]:
        follow_up = {
            "id": "tell",
            "tool": "free_room",
            "contract_version": 1,
            "args": {"booking": "B"},
            "text": "t",
        }
        state = {
            "id": "ok",
            "title": "ok",
            "conditions": [{"text": "t", "step": "book", "states": ["confirmed"]}],
            "follow_ups": [{**follow_up, **changes}],
        }
        return {one.code for one in check([step("book")], end_states=[state]) if one.step == ""}

    assert found() == set()
    assert found(tool="nothing") == {"W001"}
    assert found(args={}) == {"W008"}
    assert found(args={"booking": "B", "x": 1}) == {"W007"}


@pytest.mark.requirement("S0-85")
@given(
    st.lists(st.from_regex(r"[a-z][a-z_]{2,30}", fullmatch=True), min_size=2, max_size=2, unique=True).filter(
        lambda names: not {*names} & {"find_booking", "free_room"}
    )
)
def test_a_tool_is_judged_by_what_its_contract_says_it_does_and_never_by_its_name(names: list[str]) -> None:
    booked, told = names
    plain = check([step("s1", "send_letter"), step("s2"), step("s3")])

    renamed = check(
        [step("s1", told), step("s2", booked), step("s3", booked)],
        {**copy.deepcopy(DOCUMENT), "tool": booked},
        {**copy.deepcopy(ASKED), "tool": told},
    )

    assert [(finding.code, finding.step) for finding in renamed] == [
        (finding.code, finding.step) for finding in plain
    ]
