"""The engine's own reasons against a verb: for every picture either a reason with a sentence, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sagas.facts import RunFacts
from sagas.obstacles import _CHECKS, _WITHOUT_HANDOFF, obstacle, targets
from sagas.states import FINAL_RUN_STATES, Direction, HandoffState, PermitState, RunState
from sagas.verdicts import needs_second
from tests.unit.sagas.pictures import SOON, action, ago, changed, run
from tests.unit.workbench.cases import handoff
from tests.unit.workbench.test_signoff_policies import permit
from tools.contract import Idempotency, KeySupport

C, R, N = "confirmed", "rejected", "not_started"
DONE = (action(1, C, "registered"), action(2, C, "registered"))


def asked(*actions: object, back: bool = False, **changes: object) -> RunFacts:
    """A run that a person has."""
    return replace(run(*actions, back=back), state=RunState.HANDOFF, handoff=handoff(), **changes)  # type: ignore[arg-type]


def code(facts: RunFacts, verb: str, step: str = "") -> str:
    found = obstacle(facts, verb, step=step)
    return found.code if found is not None else ""


ENDED = asked(*DONE, action(3, "accepted"))


@pytest.mark.parametrize("verb", sorted(_CHECKS))
@pytest.mark.parametrize("state", sorted(FINAL_RUN_STATES))
def test_a_closed_case_takes_no_verb(verb: str, state: RunState) -> None:
    closed = replace(ENDED, state=state, handoff=handoff(state=HandoffState.RESOLVED))

    assert code(closed, verb, "send_notice") == "final"
    assert code(closed, "comment") == ""


@pytest.mark.parametrize("verb", sorted(set(_CHECKS) - set(_WITHOUT_HANDOFF)))
def test_without_a_handoff_there_is_nothing_to_settle(verb: str) -> None:
    assert code(run(*DONE, action(3, N)), verb, "send_notice") == "no_handoff"
    assert code(run(*DONE, action(3, N)), "stop_and_compensate") == ""


def test_a_verb_that_nobody_knows_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="undo_all"):
        obstacle(asked(*DONE, action(3, R)), "undo_all")


@pytest.mark.requirement("S3-8", "S3-10")
@pytest.mark.parametrize(
    ("third", "expected"),
    [("unknown", ""), (R, "nothing_unknown"), ("sent", "in_flight"), (N, "nothing_unknown")],
)
def test_only_an_unknown_outcome_is_asked_for_and_judged(third: str, expected: str) -> None:
    facts = asked(*DONE, action(3, third))

    assert code(facts, "query_status", "send_notice") == expected
    assert code(facts, "resolve_happened", "send_notice") == expected
    assert targets(facts, "query_status") == (("send_notice",) if third == "unknown" else ())


def test_a_tool_without_a_status_query_says_where_to_look() -> None:
    blind = action(3, "unknown")
    blind = replace(blind, contract=replace(blind.contract, status_query=None))

    found = obstacle(asked(*DONE, blind), "query_status", step="send_notice")

    assert found is not None
    assert (found.code, found.params) == ("no_status_query", {"tool": "send_notice", "system": "notify"})
    assert "notify" in found.sentence


@pytest.mark.requirement("S3-4", "S3-19")
@pytest.mark.parametrize(
    ("support", "retention_s", "expected"),
    [
        (KeySupport.HONOURED, None, ""),
        (KeySupport.HONOURED, 3600.0, ""),
        (KeySupport.HONOURED, 10.0, "key_no_longer_kept"),
        (KeySupport.IGNORED, None, "unknown_and_no_key"),
        (KeySupport.NONE, None, "unknown_and_no_key"),
    ],
)
def test_an_unknown_call_is_repeated_only_under_a_key_that_is_honoured_and_kept(
    support: KeySupport, retention_s: float | None, expected: str
) -> None:
    unknown = action(1, "unknown", "registered", sent_at=ago(60))
    idempotency = Idempotency(support=support, retention_s=retention_s)
    unknown = replace(unknown, contract=replace(unknown.contract, idempotency=idempotency))

    assert code(asked(unknown, action(2, N)), "retry", "reserve_stock") == expected


def test_a_rejected_step_may_be_tried_again_until_the_run_turned_back() -> None:
    rejected = (*DONE, action(3, R))

    assert code(asked(*rejected), "retry", "send_notice") == ""
    assert code(asked(*rejected), "edit_and_retry", "send_notice") == ""
    assert code(asked(*rejected, back=True), "retry", "send_notice") == "turned_back"
    assert code(asked(*rejected, back=True), "edit_and_retry", "send_notice") == "turned_back"
    assert code(asked(*rejected), "retry", "reserve_stock") == "nothing_to_retry"
    assert targets(asked(*rejected, back=True), "retry") == ()


@pytest.mark.requirement("S3-10")
def test_what_is_unknown_or_confirmed_is_never_sent_with_other_arguments() -> None:
    facts = asked(*DONE, action(3, "unknown"))

    assert code(facts, "edit_and_retry", "send_notice") == "not_rejected"
    assert code(facts, "edit_and_retry", "reserve_stock") == "not_rejected"


def test_not_happened_waits_for_the_last_moment_at_which_it_may_still_arrive() -> None:
    early = action(1, "unknown", "registered", not_found_counts_at=SOON)
    late = replace(early, not_found_counts_at=ago(1))

    assert code(asked(early), "resolve_not_happened", "reserve_stock") == "too_early"
    assert code(asked(late), "resolve_not_happened", "reserve_stock") == ""


def test_not_happened_waits_for_the_settling_point_of_a_compensation_too() -> None:
    unknown = action(1, C, "unknown")
    early, late = changed(unknown, not_found_counts_at=SOON), changed(unknown, not_found_counts_at=ago(1))

    assert code(asked(early, back=True), "resolve_not_happened", "reserve_stock") == "too_early"
    assert code(asked(late, back=True), "resolve_not_happened", "reserve_stock") == ""


@pytest.mark.parametrize(
    ("verb", "unknown", "proven", "expected"),
    [
        ("resolve_happened", 3, False, True),
        ("resolve_happened", 3, True, False),
        ("resolve_happened", 2, False, False),
        ("resolve_not_happened", 3, False, True),
        ("resolve_not_happened", 2, False, False),
        ("mark_acceptable", 3, False, True),
        ("mark_acceptable", 2, False, False),
        ("retry", 3, False, False),
    ],
)
def test_a_word_on_what_cannot_be_taken_back_takes_two_persons_unless_a_read_proves_it(
    verb: str, unknown: int, proven: bool, expected: bool
) -> None:
    facts = asked(DONE[0], action(unknown, "unknown", not_found_counts_at=ago(1)))
    step = facts.actions[-1].step

    assert needs_second(facts, verb, step=step, proven=proven) is expected


@pytest.mark.requirement("S0-69", "S0-36")
@pytest.mark.parametrize(
    ("facts", "step", "expected"),
    [
        (asked(*DONE, action(3, R)), "", ""),
        (asked(*DONE, action(3, R)), "create_shipment", ""),
        (asked(*DONE, action(3, R)), "reserve_stock", "not_the_last"),
        (asked(*DONE, action(3, "unknown")), "", "unknown_first"),
        (asked(*DONE, action(3, "sent")), "", "in_flight"),
        (asked(action(1, R, "voided")), "", "nothing_to_compensate"),
        (asked(action(1, C, tool="send_notice")), "", "irreversible"),
        (asked(changed(DONE[0], args=None), action(2, R, "voided")), "", "unbindable"),
        (asked(DONE[0], action(2, C, "unknown")), "", "unknown_first"),
    ],
)
def test_a_compensation_is_ordered_from_the_last_one_down_and_past_nothing_unknown(
    facts: RunFacts, step: str, expected: str
) -> None:
    assert code(facts, "compensate", step) == expected


@pytest.mark.parametrize(
    ("parts", "back", "expected"),
    [
        ((C, R, R), False, ""),
        (("unknown", R), False, ""),
        ((C, "unknown"), False, "not_refused_item"),
        ((C, "accepted"), False, "not_refused_item"),
        ((C, R), True, "turned_back"),
    ],
)
def test_only_refused_items_are_accepted_one_by_one_and_only_on_the_way_forward(
    parts: tuple[str, ...], back: bool, expected: str
) -> None:
    items = tuple(action(1, state, item=f"ART-{number}") for number, state in enumerate(parts))
    facts = asked(action(1, "partial", items=items), back=back)

    assert code(facts, "accept_items", "reserve_stock") == expected
    assert targets(facts, "accept_items") == (("reserve_stock",) if not expected else ())
    assert code(asked(action(1, R)), "accept_items", "reserve_stock") == "not_refused_item"


@pytest.mark.parametrize(
    ("made_up", "expected"), [("failed", ""), ("registered", "not_failed"), ("due", "not_failed")]
)
def test_a_compensation_is_left_out_only_after_a_real_try(made_up: str, expected: str) -> None:
    facts = asked(action(1, C, made_up), back=True)

    assert code(facts, "skip_compensation", "reserve_stock") == expected
    assert targets(facts, "skip_compensation") == (("reserve_stock",) if made_up == "failed" else ())


def test_a_compensation_that_nobody_signed_was_never_tried() -> None:
    unsigned = changed(action(1, C, "failed"), permit=permit(state=PermitState.REJECTED), sent_at=None)
    sent_before = changed(unsigned, sent_at=ago(60))

    assert code(asked(unsigned, back=True), "skip_compensation", "reserve_stock") == "not_tried"
    assert code(asked(sent_before, back=True), "skip_compensation", "reserve_stock") == ""


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (asked(*DONE, action(3, "unknown")), ""),
        (asked(*DONE, action(3, "sent")), "in_flight"),
        (asked(DONE[0], action(2, C, "unknown"), back=True), "outstanding"),
        (asked(DONE[0], action(2, C, "sent"), back=True), "outstanding"),
    ],
)
def test_nothing_is_accepted_while_something_is_under_way(facts: RunFacts, expected: str) -> None:
    assert code(facts, "mark_acceptable") == expected


def test_nothing_is_accepted_where_the_workflow_names_no_end_state() -> None:
    facts = asked(*DONE, action(3, R))

    assert (
        code(replace(facts, definition=replace(facts.definition, end_states=())), "mark_acceptable")
        == "no_end_states"
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (asked(*DONE, action(3, "unknown", unknown_since=ago(3600))), "unknown_first"),
        (asked(*DONE, action(3, R)), "still_stuck"),
        (asked(*DONE, action(3, N)), ""),
        (asked(DONE[0], action(2, "compensated", "confirmed"), back=True), ""),
    ],
)
def test_a_run_is_resumed_only_when_something_has_changed(facts: RunFacts, expected: str) -> None:
    assert code(facts, "resume") == expected


def test_stopping_is_possible_once_and_escalating_up_to_the_top() -> None:
    facts = asked(*DONE, action(3, R))

    assert code(facts, "stop_and_compensate") == ""
    turned = replace(facts, direction=Direction.UNDO, turned_back_by="Maya", turned_back_at=ago(60))
    found = obstacle(turned, "stop_and_compensate")
    assert found is not None
    assert (found.code, "Maya" in found.sentence) == ("stopped_already", True)
    assert code(facts, "escalate") == ""
    assert code(replace(facts, handoff=handoff(escalation=3)), "escalate") == "highest"
