"""The case page: what is known with its source, what is not known as a question at the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState, HandoffState, RunState
from tests import builders
from workbench.web.presenters import case, reasons, steps
from workbench.web.presenters import known as told


@pytest.mark.requirement("S0-45", "S3-4")
def test_unknowns_come_last_as_questions() -> None:
    unknown_first = builders.run(
        builders.action("reserve_stock", 1, ActionState.UNKNOWN),
        builders.action("create_shipment", 2, ActionState.CONFIRMED, provider_ref="SH-1"),
    )

    known = told.known(unknown_first, builders.clock())

    assert [fact.question for fact in known] == [False, True]
    assert known[1].says == "Not known: is the stock reserved for this order?"
    assert known[1].icon == "unk"


def test_a_fact_names_its_system_its_reference_and_its_time() -> None:
    known = told.known(builders.run(), builders.clock())

    assert known[0].says == "2 × SKU-1 are reserved for order O-1"
    assert known[0].source == "stock · R-1 · 11:32:00"


def test_a_compensation_without_an_answer_is_a_question_too() -> None:
    action = builders.action("reserve_stock", 1, ActionState.CONFIRMED)
    stuck = builders.compensation(action, CompensationState.UNKNOWN)
    known = told.known(
        builders.run(builders.action("reserve_stock", 1, ActionState.CONFIRMED, compensation=stuck)),
        builders.clock(),
    )

    assert [(fact.icon, fact.question) for fact in known] == [("ok", False), ("unk", True)]


def test_the_lede_is_made_of_whole_sentences_of_ours() -> None:
    assert case.lede(builders.run()) == (
        "2 of 3 steps are confirmed. "
        "“Shipping notice to the customer” got no answer, so nobody knows whether it took effect."
    )


def test_the_nearest_end_state_stands_open() -> None:
    ends = case.ends(builders.run())

    assert [end.open for end in ends].count(True) == 1
    assert next(end for end in ends if end.open).tally == "2 of 3 met"


@pytest.mark.requirement("S0-43")
@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_words_of_its_own(reason: Reason) -> None:
    assert str(reason) in reasons.REASONS
    words = reasons.reason_words(str(reason))

    assert "send_notice" in reasons.long(str(reason), {"tool": "send_notice"}, "") or "{tool}" not in str(
        words.long
    )


@pytest.mark.requirement("S3-4")
@pytest.mark.parametrize("reason", [reason for reason in Reason if "unknown" in reason])
def test_an_unknown_case_has_no_failed_colour(reason: Reason) -> None:
    words = reasons.reason_words(str(reason))

    assert words.tone == "unk"
    assert "fail" not in str(words.pill).lower()


def test_a_closed_case_says_how_and_whether_the_run_goes_on() -> None:
    closed = builders.handoff(
        state=HandoffState.RESOLVED, resolved_at=builders.NOW, resolution="a person ordered a retry"
    )
    shown = case.case(
        builders.run(handoff=closed, state=RunState.RUNNING),
        closed,
        reader="maya",
        clock=builders.clock(),
        level="medium",
    )

    assert shown.closed == "Closed 11:42:00: a person ordered a retry. The run goes on."


def test_a_run_that_needs_a_person_again_leads_to_its_new_case() -> None:
    closed = builders.handoff(state=HandoffState.RESOLVED, resolved_at=builders.NOW, resolution="x")
    again = builders.handoff(id=2, ref="HF-2002")
    shown = case.case(
        builders.run(handoff=closed, handoffs=(closed, again)),
        closed,
        reader="maya",
        clock=builders.clock(),
        level="low",
    )

    assert (shown.again_ref, shown.again_url) == ("HF-2002", "/handoffs/HF-2002/")


def test_secrets_do_not_reach_the_page() -> None:
    args = {"phone": "+49 30 1234567", "template": "t", "customer_no": "7"}
    shown = steps.steps(
        builders.run(builders.action("send_sms", 1, ActionState.CONFIRMED, args=args)), builders.clock()
    )

    said = " ".join(line.value for line in shown[0].lines)
    assert "1234567" not in said
    assert "[masked]" in said


def test_silent_queries_are_one_line() -> None:
    proofs = tuple(builders.evidence(at=builders.NOW + timedelta(seconds=n)) for n in range(20))
    shown = steps.steps(
        builders.run(builders.action("send_notice", 1, ActionState.UNKNOWN, evidence=proofs)),
        builders.clock(),
    )

    assert len(shown[0].evidence) == 1
    assert "20 times, last 11:42:19" in shown[0].evidence[0].value
