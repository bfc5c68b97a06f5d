"""A case in small: strip, counts, queue row and the context that a handoff opens with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sagas import summary
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState
from tests.unit.sagas.pictures import action, run
from tests.unit.workbench.cases import handoff

CASE = run(
    action(1, "confirmed", "registered", args={"order": "O-1", "sku": "SKU-1", "qty": 2}, provider_ref="R-1"),
    action(2, "rejected", "voided", error_class="refused", error_detail="no carrier goes there"),
    action(3, "unknown"),
)


@pytest.mark.requirement("S3-22")
@pytest.mark.parametrize("state", set(ActionState) - {ActionState.CONFIRMED, ActionState.PARTIAL})
def test_a_mark_says_the_state_of_the_action(state: ActionState) -> None:
    assert summary.mark_word(action(1, state, "registered")) == state.value


@pytest.mark.parametrize(
    ("made_up", "word"),
    [
        ("registered", "confirmed"),
        ("due", "compensating"),
        ("sent", "compensating"),
        ("awaiting_approval", "waiting"),
        ("unknown", "compensation_unknown"),
        ("failed", "compensation_failed"),
        ("confirmed", "confirmed"),
        ("skipped_by_operator", "confirmed"),
        ("voided", "confirmed"),
    ],
)
def test_what_the_compensation_of_a_confirmed_action_does_says_more(made_up: str, word: str) -> None:
    assert summary.mark_word(action(1, "confirmed", made_up)) == word
    assert made_up in set(CompensationState)


@pytest.mark.requirement("S3-22")
def test_the_five_counts_tell_success_failure_and_unknown_apart() -> None:
    counts = summary.counts(CASE)

    assert (counts.ok, counts.failed, counts.unknown) == (1, 1, 1)
    assert (counts.irreversible, counts.compensable) == (1, 2)


def test_the_counts_and_the_strip_never_differ() -> None:
    row = summary.columns(CASE)
    words = [mark[3] for mark in row["summary"]["strip"]]

    assert words == ["confirmed", "rejected", "unknown"]
    assert row["summary"]["counts"][:3] == [
        words.count("confirmed"),
        words.count("rejected"),
        words.count("unknown"),
    ]
    assert row["unknowns"] == 1
    assert row["compensation_failed"] is False


def test_a_failed_compensation_marks_the_case() -> None:
    row = summary.columns(run(action(1, "confirmed", "failed"), back=True))

    assert row["compensation_failed"] is True
    assert row["summary"]["counts"][1] == 1


def test_a_case_is_found_by_run_business_key_reference_and_handoff() -> None:
    words = summary.columns(replace(CASE, handoff=handoff()))["search"].split()

    assert {CASE.ref, CASE.business_ref.lower(), "r-1", "hf-2001"} <= set(words)
    assert {a.key.lower() for a in CASE.actions} <= set(words)


@pytest.mark.requirement("S0-44", "S0-47")
def test_a_handoff_opens_with_all_that_is_known_in_parts() -> None:
    context = summary.context(CASE, Reason.REJECTED)

    assert context["reason"] == "rejected"
    assert context["succeeded"] == ["reserve_stock"]
    assert context["failed"] == [
        {"step": "create_shipment", "error_class": "refused", "detail": "no carrier goes there"}
    ]
    (unknown,) = context["unknown"]
    assert unknown["step"] == "send_notice"
    assert unknown["question"].endswith("?")
    assert [effect["step"] for effect in context["effects"]] == ["reserve_stock"]
    assert context["effects"][0]["effect"] == "2 × SKU-1 are reserved for order O-1"
    (made_up,) = context["compensations"]
    assert (made_up["of"], made_up["tool"], made_up["kind"]) == ("reserve_stock", "release_stock", "restores")
