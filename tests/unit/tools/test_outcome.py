"""The table from observation to outcome (docs: contracts narrow it, they never widen it)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tools.samples import READ, answer, contract
from tools.agent_words import AnswerStatus, answer_status
from tools.contract import ErrorClass, Json, Meaning
from tools.meanings import may_mean
from tools.outcome import Cut, Observation, OutcomeKind, Seen, classify

BOOKED = {"booking": "B-1"}


@pytest.mark.requirement("S1-17", "S1-18", "S3-4", "S3-6", "S3-19", "S0-8")
@pytest.mark.parametrize(
    ("observation", "kind", "error_class"),
    [
        (Observation(seen=Seen.NOT_SENT), OutcomeKind.NOT_SENT, ErrorClass.NOT_SENT),
        (Observation(seen=Seen.REFUSED_HERE), OutcomeKind.REJECTED, ErrorClass.VALIDATION),
        (Observation(seen=Seen.NO_ANSWER), OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER),
        (Observation(seen=Seen.NO_ANSWER, status=200), OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER),
        (Observation(seen=Seen.RAISED), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (Observation(seen=Seen.BAD_BODY), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (Observation(seen=Seen.BAD_BODY, status=200), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (Observation(seen=Seen.TOO_LARGE, status=201), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(200, BOOKED), OutcomeKind.CONFIRMED, None),
        (answer(201, BOOKED), OutcomeKind.CONFIRMED, None),
        (answer(200, {"room": "12"}), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(200, {"booking": 7}), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(200, {"booking": ""}), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(200, {"booking": "B\ufffd"}), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(200), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(204), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(202, {}), OutcomeKind.ACCEPTED, None),
        (Observation(seen=Seen.BAD_BODY, status=202), OutcomeKind.UNKNOWN, ErrorClass.GARBAGE),
        (answer(207, {"items": []}), OutcomeKind.PARTIAL, ErrorClass.PARTIAL),
        (answer(301), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (answer(400, {}), OutcomeKind.REJECTED, ErrorClass.VALIDATION),
        (answer(422, {}), OutcomeKind.REJECTED, ErrorClass.VALIDATION),
        (answer(401), OutcomeKind.REJECTED, ErrorClass.PERMISSION),
        (answer(403), OutcomeKind.REJECTED, ErrorClass.PERMISSION),
        (answer(404, {}), OutcomeKind.UNKNOWN, ErrorClass.NOT_FOUND),
        (answer(408), OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER),
        (answer(409, {}), OutcomeKind.UNKNOWN, ErrorClass.CONFLICT),
        (answer(412), OutcomeKind.REJECTED, ErrorClass.CONFLICT),
        (answer(418), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (answer(429), OutcomeKind.THROTTLED, ErrorClass.THROTTLED),
        (answer(500), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (answer(502), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (answer(503, headers={"retry-after": "1"}), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
        (answer(504), OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER),
        (answer(101), OutcomeKind.UNKNOWN, ErrorClass.SERVER),
    ],
)
@pytest.mark.parametrize("compensating", [False, True])
def test_an_observation_means_no_more_than_it_proves(
    observation: Observation, kind: OutcomeKind, error_class: ErrorClass | None, compensating: bool
) -> None:
    outcome = classify(contract(), observation, compensating=compensating)

    assert (outcome.kind, outcome.error_class) == (kind, error_class)


@pytest.mark.requirement("S3-9")
@pytest.mark.parametrize(
    ("status", "meaning", "kind"),
    [
        (500, "temporary", OutcomeKind.TEMPORARY),
        (503, "temporary", OutcomeKind.TEMPORARY),
        (404, "not_found", OutcomeKind.REJECTED),
        (409, "refused", OutcomeKind.REJECTED),
        (409, "conflict", OutcomeKind.REJECTED),
        (409, "in_flight", OutcomeKind.UNKNOWN),
        (303, "refused", OutcomeKind.REJECTED),
        (429, "unknown", OutcomeKind.UNKNOWN),
        (202, "confirmed", OutcomeKind.CONFIRMED),
        (400, "unknown", OutcomeKind.UNKNOWN),
    ],
)
def test_the_contract_decides_what_a_status_means(status: int, meaning: str, kind: OutcomeKind) -> None:
    assert classify(contract(statuses={str(status): meaning}), answer(status, BOOKED)).kind is kind


@pytest.mark.requirement("S3-4", "S4-5")
@pytest.mark.parametrize("status", [408, 502, 504])
@pytest.mark.parametrize(
    "meaning", [one for one in Meaning if one not in {Meaning.UNKNOWN, Meaning.IN_FLIGHT}]
)
def test_a_gateways_silence_proves_nothing_whatever_the_contract_says(status: int, meaning: Meaning) -> None:
    widened = replace(contract(), statuses={status: meaning})

    assert classify(widened, answer(status, BOOKED)).kind is OutcomeKind.UNKNOWN


@given(
    st.integers(100, 599), st.sampled_from(Meaning), st.booleans(), st.sampled_from([BOOKED, {}, None, "x"])
)
def test_no_contract_makes_an_error_confirm_or_a_success_vanish(
    status: int, meaning: Meaning, compensating: bool, body: object
) -> None:
    widened = replace(contract(), statuses={status: meaning})

    kind = classify(widened, answer(status, body), compensating=compensating).kind

    success = 200 <= status <= 299
    if kind is OutcomeKind.CONFIRMED:
        assert success or (compensating and status in {404, 409, 410})
    if success:
        assert kind not in {OutcomeKind.REJECTED, OutcomeKind.TEMPORARY, OutcomeKind.THROTTLED}
    assert may_mean(status, meaning) or kind is OutcomeKind.UNKNOWN


def test_not_found_means_already_gone_only_to_a_compensation_whose_contract_says_so() -> None:
    declared = contract(statuses={"404": "confirmed"})

    assert classify(declared, answer(404, {"code": "none"}), compensating=True).kind is OutcomeKind.CONFIRMED
    assert classify(declared, answer(404, {"code": "none"})).kind is OutcomeKind.UNKNOWN
    page = Observation(seen=Seen.BAD_BODY, status=404, body_text="<html>")
    assert classify(declared, page, compensating=True).kind is OutcomeKind.UNKNOWN


@pytest.mark.requirement("S3-9")
def test_an_error_that_is_not_in_the_tools_own_format_says_nothing() -> None:
    schema = {"type": "object", "required": ["code"]}
    declared = contract(statuses={"404": "not_found"}, errors={"schema": schema})

    assert classify(declared, answer(404, {"code": "none"})).kind is OutcomeKind.REJECTED
    assert classify(declared, answer(404, {"message": "from the proxy"})).kind is OutcomeKind.UNKNOWN
    assert classify(declared, Observation(seen=Seen.BAD_BODY, status=404)).kind is OutcomeKind.UNKNOWN


def test_one_status_means_different_things_by_the_tools_code() -> None:
    codes = {"key_in_use": "in_flight", "state_conflict": "conflict"}
    declared = contract(errors={"code": "/error/code", "codes": codes})

    in_use = classify(declared, answer(409, {"error": {"code": "key_in_use"}}))
    conflict = classify(declared, answer(409, {"error": {"code": "state_conflict"}}))
    other = classify(declared, answer(409, {"error": {"code": "other"}}))

    assert (in_use.kind, in_use.error_class) == (OutcomeKind.UNKNOWN, ErrorClass.IN_FLIGHT)
    assert (conflict.kind, conflict.error_class) == (OutcomeKind.REJECTED, ErrorClass.CONFLICT)
    assert other.kind is OutcomeKind.UNKNOWN


def test_an_embedded_failure_is_judged_by_the_contract_alone() -> None:
    failed = answer(200, {"booking": "B-1", "ok": False})
    says_so = {"text": "the booking is ok", "pointer": "/ok", "operator": "equals", "value": True}

    assert classify(contract(), failed).kind is OutcomeKind.CONFIRMED
    assert classify(contract(succeeded_when=says_so), failed).kind is OutcomeKind.UNKNOWN
    assert classify(contract(succeeded_when=says_so), answer(200, {"booking": "B", "ok": True})).kind is (
        OutcomeKind.CONFIRMED
    )


def test_an_answer_to_somebody_elses_call_is_not_taken_for_ours() -> None:
    echoing = contract(echo="/key")

    assert classify(echoing, answer(200, BOOKED | {"key": "K-1"})).kind is OutcomeKind.CONFIRMED
    assert classify(echoing, answer(200, BOOKED | {"key": "K-2"})).kind is OutcomeKind.UNKNOWN
    assert classify(echoing, answer(200, BOOKED)).kind is OutcomeKind.UNKNOWN


@pytest.mark.requirement("S3-7")
def test_a_confirmation_carries_the_providers_reference() -> None:
    outcome = classify(contract(), answer(201, BOOKED))

    assert outcome.reference == "B-1"
    assert outcome.result == BOOKED


def test_a_number_is_a_reference_but_a_flag_is_none() -> None:
    loose = contract(result_schema=None)

    assert classify(loose, answer(200, {"booking": 77})).reference == "77"
    assert classify(loose, answer(200, {"booking": True})).kind is OutcomeKind.UNKNOWN


@pytest.mark.requirement("S4-5")
def test_throttling_carries_the_time_to_wait() -> None:
    outcome = classify(contract(), answer(429, headers={"retry-after": "3"}))

    assert (outcome.kind, outcome.retry_after_s) == (OutcomeKind.THROTTLED, 3.0)


@pytest.mark.requirement("S1-2", "S0-51")
@pytest.mark.parametrize(
    "observation", [Observation(seen=Seen.NO_ANSWER), answer(500), answer(200, "no table")]
)
def test_a_read_that_did_not_answer_is_simply_repeated(observation: Observation) -> None:
    assert classify(contract(READ), observation).kind is OutcomeKind.TEMPORARY


def test_a_broken_schema_in_a_contract_does_not_confirm() -> None:
    broken = replace(contract(), result_schema={"$ref": "https://example.com/schema"})

    assert classify(broken, answer(200, BOOKED)).kind is OutcomeKind.UNKNOWN


@pytest.mark.requirement("S1-19")
@pytest.mark.parametrize(
    ("kind", "error_class", "compensation_due", "word"),
    [
        (OutcomeKind.CONFIRMED, None, False, AnswerStatus.SUCCEEDED),
        (OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER, False, AnswerStatus.TIMEOUT_UNKNOWN),
        (OutcomeKind.PARTIAL, ErrorClass.PARTIAL, False, AnswerStatus.PARTIAL_SUCCESS),
        (OutcomeKind.REJECTED, ErrorClass.VALIDATION, True, AnswerStatus.VALIDATION_FAILED),
        (OutcomeKind.REJECTED, ErrorClass.PERMISSION, True, AnswerStatus.PERMISSION_DENIED),
        (OutcomeKind.REJECTED, ErrorClass.REFUSED, True, AnswerStatus.COMPENSATION_REQUIRED),
        (OutcomeKind.REJECTED, ErrorClass.REFUSED, False, AnswerStatus.HUMAN_REVIEW_REQUIRED),
        (OutcomeKind.THROTTLED, ErrorClass.THROTTLED, False, None),
        (OutcomeKind.ACCEPTED, None, False, None),
    ],
)
def test_the_agent_gets_one_of_seven_words_or_none_yet(
    kind: OutcomeKind, error_class: ErrorClass | None, compensation_due: bool, word: AnswerStatus | None
) -> None:
    assert answer_status(kind, error_class, compensation_due=compensation_due) is word


@pytest.mark.requirement("S0-44")
def test_what_the_tool_says_of_its_refusal_is_kept_and_cannot_steer_a_screen() -> None:
    said = {"error": "room_taken", "message": "Room 12 is\u202e taken\n", "other": "left out"}
    assert classify(contract(), answer(422, said)).detail == "room_taken: Room 12 is taken"

    named = contract(errors={"code": "/code"})
    assert classify(named, answer(422, {"code": "E-7", "error": "x"})).detail == "E-7"
    assert classify(contract(), answer(422, {"error": {"deep": 1}, "detail": "no"})).detail == "no"
    assert classify(contract(), answer(422, ["nothing"])).detail == ""
    assert len(classify(contract(), answer(422, {"message": "x" * 9000})).detail) == 300


def cut_off(body: Json, status: int = 201) -> Observation:
    return Observation(
        seen=Seen.TOO_LARGE,
        status=status,
        body=body,
        body_bytes=65_537,
        body_sha256="ab",
        body_declared=40_000_000,
        key="K-1",
    )


class TestAnAnswerThatWasTooLarge:
    """What was read before the limit may prove success; what nobody read proves nothing."""

    def test_the_reference_at_its_beginning_proves_success(self) -> None:
        outcome = classify(contract(), cut_off(BOOKED), in_part=True)

        assert (outcome.kind, outcome.reference, outcome.result) == (OutcomeKind.CONFIRMED, "B-1", BOOKED)
        assert outcome.cut == Cut(read=65_537, sha256="ab", declared=40_000_000)

    def test_whoever_does_not_allow_it_gets_no_success_out_of_a_part(self) -> None:
        assert classify(contract(), cut_off(BOOKED)).kind is OutcomeKind.UNKNOWN
        assert classify(contract(READ), cut_off(BOOKED, 200)).kind is OutcomeKind.TEMPORARY

    @pytest.mark.parametrize("body", [{}, {"room": "12"}, {"booking": 7}, None, {"booking": ""}])
    def test_without_the_reference_it_is_unknown(self, body: Json) -> None:
        outcome = classify(contract(), cut_off(body), in_part=True)

        assert (outcome.kind, outcome.error_class) == (OutcomeKind.UNKNOWN, ErrorClass.GARBAGE)
        assert outcome.cut is not None

    def test_what_its_compensation_needs_has_to_be_there_and_a_default_is_no_help(self) -> None:
        line = {"from": "result", "pointer": "/line", "default": "none"}
        undo = {"tool": "free_room", "kind": "restores", "args": {"line": line}}

        assert (
            classify(contract(compensation=undo), cut_off(BOOKED), in_part=True).kind is OutcomeKind.UNKNOWN
        )
        whole = cut_off({**BOOKED, "line": "L-1"})
        assert classify(contract(compensation=undo), whole, in_part=True).kind is OutcomeKind.CONFIRMED

    def test_another_key_in_the_part_that_was_read_is_no_success(self) -> None:
        mixed_up = cut_off({**BOOKED, "key": "K-2"})

        assert classify(contract(echo="/key"), mixed_up, in_part=True).kind is OutcomeKind.UNKNOWN

    def test_a_contract_that_asks_for_no_proof_gets_none_from_a_part(self) -> None:
        assert classify(contract(reference=None), cut_off(BOOKED), in_part=True).kind is OutcomeKind.UNKNOWN

    def test_a_read_is_done_with_what_was_read(self) -> None:
        outcome = classify(contract(READ), cut_off({}, 200), in_part=True)

        assert (outcome.kind, outcome.result) == (OutcomeKind.CONFIRMED, {})

    @pytest.mark.parametrize("status", [400, 409, 500, 502, 404])
    def test_an_error_is_judged_by_its_status_as_before(self, status: int) -> None:
        whole = classify(contract(), replace(cut_off(BOOKED, status), seen=Seen.BAD_BODY, body=None))

        assert classify(contract(), cut_off(BOOKED, status), in_part=True).kind is whole.kind
