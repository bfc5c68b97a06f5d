"""What a status query proves: found, denied, absent, or nothing at all."""

import pytest

from tests.unit.tools.samples import READ, answer, contract
from tools.contract import Condition, StatusQuery
from tools.outcome import Observation, Seen, Verdict, classify_query

QUERY = StatusQuery(
    tool="find_booking",
    args={"key": {"from": "key"}},
    found=Condition(text="a booking stands", pointer="/state", operator="equals", value="booked"),
    denied=Condition(text="it was refused", pointer="/state", operator="equals", value="refused"),
    reference="/booking",
)


@pytest.mark.requirement("S3-8", "S0-38")
@pytest.mark.parametrize(
    ("observation", "verdict"),
    [
        (answer(200, {"state": "booked", "booking": "B-1"}), Verdict.FOUND),
        (answer(200, {"state": "refused"}), Verdict.DENIED),
        (answer(200, {"state": "other"}), Verdict.ABSENT),
        (answer(404, {"error": "none"}), Verdict.ABSENT),
        (answer(404), Verdict.ABSENT),
    ],
)
def test_a_readable_answer_is_evidence(observation: Observation, verdict: Verdict) -> None:
    assert classify_query(QUERY, observation, {}, contract=contract(READ)).verdict is verdict


@pytest.mark.requirement("S3-8", "S1-17", "S3-4")
@pytest.mark.parametrize(
    "observation",
    [
        Observation(seen=Seen.NO_ANSWER),
        Observation(seen=Seen.NOT_SENT),
        Observation(seen=Seen.REFUSED_HERE),
        Observation(seen=Seen.BAD_BODY, status=200),
        Observation(seen=Seen.BAD_BODY, status=404, body_text="<html>"),
        Observation(seen=Seen.TOO_LARGE, status=200),
        answer(200, {"unexpected": True}),
        answer(200, {"state": 7}),
        answer(200, {"state": "booked"}),
        answer(200, "booked"),
        answer(200),
        answer(202, {"state": "booked", "booking": "B-1"}),
        answer(302),
        answer(403),
        answer(410),
        answer(429),
        answer(500),
        answer(503),
    ],
)
def test_everything_else_leaves_the_question_open(observation: Observation) -> None:
    assert classify_query(QUERY, observation, {}, contract=contract(READ)).verdict is Verdict.NO_ANSWER


def test_what_the_world_noted_about_the_schema_is_enough() -> None:
    noted = answer(200, {"unexpected": True}, schema_fault="the whole lacks state")

    assert classify_query(QUERY, noted, {}).verdict is Verdict.NO_ANSWER


def test_a_found_call_brings_its_reference_and_body() -> None:
    found = classify_query(QUERY, answer(200, {"state": "booked", "booking": "B-1"}), {})

    assert (found.reference, found.result) == ("B-1", {"state": "booked", "booking": "B-1"})


def test_a_comparison_that_cannot_be_made_leaves_the_question_open() -> None:
    query = StatusQuery(
        tool="find_booking",
        args={},
        found=Condition(
            text="t", pointer="/state", operator="equals", value={"from": "args", "pointer": "/state"}
        ),
    )

    assert classify_query(query, answer(200, {"state": "x"}), {}).verdict is Verdict.NO_ANSWER
    assert (
        classify_query(query, answer(200, {"state": "x"}), {"args": {"state": "x"}}).verdict is Verdict.FOUND
    )


def test_a_not_found_that_is_not_in_the_tools_own_format_is_no_evidence() -> None:
    strict = contract(READ, errors={"schema": {"type": "object", "required": ["code"]}})

    assert classify_query(QUERY, answer(404, {"code": "x"}), {}, contract=strict).verdict is Verdict.ABSENT
    assert classify_query(QUERY, answer(404, {"msg": "x"}), {}, contract=strict).verdict is Verdict.NO_ANSWER
