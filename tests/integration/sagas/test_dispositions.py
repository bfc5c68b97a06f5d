"""What a failure in the middle leads to, and that the record names it: repeat, compensate, ask a person, or accept.

Six runs are played once, each with one failure; the tests read the trail, the offers and the ledger outside.
"""

from __future__ import annotations

from typing import Any

import pytest

from sagas import api
from sagas.facts import EntryFacts
from tests.integration.sagas.stage import Stage, stage
from workbench.api import documents

__all__ = ["stage"]

REPEATED, TIMED_OUT, COMPENSATED, ASKED, TICKET, REFUNDED = range(7410001, 7410007)
FLOWS: dict[int, tuple[str, list[dict[str, Any]]]] = {
    REPEATED: (
        "order_fulfilment",
        [{"tool": "reserve_stock", "mode": "refuse", "status": 503, "attempts": [1]}],
    ),
    TIMED_OUT: ("order_fulfilment", [{"tool": "reserve_stock", "mode": "no_answer", "attempts": [1]}]),
    COMPENSATED: ("bank_opening", [{"tool": "send_sms", "mode": "fail_before"}]),
    ASKED: (
        "order_fulfilment",
        [
            {"tool": "send_notice", "mode": "applied_no_answer"},
            {"tool": "query_notice", "mode": "query_down"},
        ],
    ),
    TICKET: ("ticket_crm_notice", [{"tool": "send_mail", "mode": "refuse"}]),
    REFUNDED: ("refund_crm", [{"tool": "update_account", "mode": "refuse", "also": '"paid"'}]),
}
REPEAT, COMPENSATE, PERSON = "tool.retry.scheduled", "run.turned_back", "human.handoff.started"


@pytest.fixture(scope="module")
def played(stage: Stage) -> Stage:
    """All six runs, settled as far as they go by themselves."""
    for number, (definition, rules) in FLOWS.items():
        ref = stage.start(definition, number)
        for rule in rules:
            also = rule.get("also")
            plain = {name: value for name, value in rule.items() if name != "also"}
            stage.simulator.plan({**plain, "match": [ref, also] if also else ref})
    stage.settle()
    stage.remember()
    return stage


def trail(stage: Stage, number: int) -> tuple[EntryFacts, ...]:
    return api.entries(stage.ref(number))


def names(stage: Stage, number: int) -> list[str]:
    return [entry.name for entry in trail(stage, number)]


@pytest.mark.requirement("S0-1", "S0-2", "S0-20")
@pytest.mark.parametrize(
    ("number", "disposition"),
    [
        (REPEATED, REPEAT),
        (TIMED_OUT, REPEAT),
        (COMPENSATED, COMPENSATE),
        (ASKED, PERSON),
        (TICKET, PERSON),
        (REFUNDED, PERSON),
    ],
)
def test_every_failure_in_the_middle_has_one_disposition_and_the_trail_names_it(
    played: Stage, number: int, disposition: str
) -> None:
    taken = [name for name in names(played, number) if name in (REPEAT, COMPENSATE, PERSON)]
    assert taken[-1] == disposition
    # A repeat may come first; compensating and asking a person never stand in for one another.
    assert set(taken) - {REPEAT} == {disposition} - {REPEAT}


@pytest.mark.requirement("S0-9", "S0-30", "S2-2")
def test_a_call_that_timed_out_and_may_be_repeated_is_repeated_before_anything_else(played: Stage) -> None:
    trail_of_it = names(played, TIMED_OUT)
    lost = trail_of_it.index("tool.execution.unknown")
    assert REPEAT in trail_of_it[lost:]
    assert not any(name.startswith(("run.turned_back", "tool.compensation.started")) for name in trail_of_it)
    assert played.facts(TIMED_OUT).state == "completed"
    assert played.simulator.ledger(tool="reserve_stock", kind="effect", business=f"O-{TIMED_OUT}")


@pytest.mark.requirement("S0-31", "S2-2")
def test_what_took_effect_before_a_definite_failure_is_compensated_and_the_failure_is_named_as_the_reason(
    played: Stage,
) -> None:
    turned = next(entry for entry in trail(played, COMPENSATED) if entry.name == COMPENSATE)
    assert "send_opening_sms" in turned.reason
    assert played.facts(COMPENSATED).state == "compensated"
    assert played.facts(COMPENSATED).effects_left == ()


@pytest.mark.requirement("S0-37", "S0-36")
def test_the_plan_for_ticket_record_and_notice_mends_the_last_first_and_the_ticket_last(
    played: Stage,
) -> None:
    facts = played.facts(TICKET)
    plan = [call.step for call in api.preview(facts, "compensate").calls if call.direction == "compensation"]
    assert plan == ["update_crm", "open_ticket"]
    assert "notify_customer" in api.targets(facts, "retry")
    assert "notice_by_hand" in {state.id for state in facts.definition.end_states}


@pytest.mark.requirement("S0-12", "S0-3", "S0-25")
def test_a_refund_that_is_paid_while_the_record_is_not_may_be_kept_with_a_repair_as_its_follow_up(
    played: Stage,
) -> None:
    facts = played.facts(REFUNDED)
    assert facts.handoff is not None
    assert facts.action("pay_refund").state == "confirmed"
    assert api.obstacle(facts, "mark_acceptable") is None
    kept = next(state for state in facts.definition.end_states if state.id == "refund_kept_record_open")
    assert [follow_up.id for follow_up in kept.follow_ups] == ["open_task", "block_closing"]
    looked = api.look(facts, "mark_acceptable")
    held = next(check for check in looked.end_states if check.id == kept.id)
    assert held.met, "the state that is offered is read from the world, not inferred from the end of a call"


@pytest.mark.requirement("S3-12", "S3-13", "S1-20")
def test_the_server_says_what_is_a_fact_and_an_agents_words_move_nothing(played: Stage) -> None:
    before = played.facts(ASKED)
    document = documents.run(before)
    notice = next(action for action in document["actions"] if action["name"] == "send_notice")
    assert notice["state"] == "unknown"
    assert set(document["next_allowed"]) == {"query_status", "mark_acceptable", "escalate", "handoff"}
    assert "retry" not in document["next_allowed"]


@pytest.mark.requirement("S1-27", "S1-13")
def test_before_during_and_after_a_call_the_record_knows_state_key_and_outcome(played: Stage) -> None:
    crm = played.facts(TICKET).action("update_crm")
    assert crm.prior_state is not None
    assert crm.prior_read_at is not None
    assert crm.sent_at is not None
    assert crm.prior_read_at <= crm.sent_at
    assert crm.key
    outcomes = {number: played.facts(number) for number in (COMPENSATED, ASKED, TICKET)}
    assert outcomes[COMPENSATED].action("send_opening_sms").state == "rejected"
    assert outcomes[ASKED].action("send_notice").state == "unknown"
    assert outcomes[TICKET].handoff is not None


@pytest.mark.requirement("S1-23", "S1-21")
def test_a_call_outside_its_attempt_its_evidence_and_its_entries_are_linked_by_key_and_step(
    played: Stage,
) -> None:
    action = played.facts(TICKET).action("open_ticket")
    arrived = [r for r in played.records if r["kind"] == "arrived" and r["key"] == action.key]
    assert len(arrived) == 1
    assert [attempt.number for attempt in action.attempts] == [1]
    entries = [entry for entry in trail(played, TICKET) if entry.step == "open_ticket"]
    started = next(entry for entry in entries if entry.name == "tool.execution.started")
    assert isinstance(started.after, dict)
    assert started.after["key"] == action.key
    assert action.why == "The service desk owns the case from the start"


@pytest.mark.requirement("S0-5")
def test_the_system_that_a_step_reaches_is_on_record(played: Stage) -> None:
    systems = {action.contract.system for number in FLOWS for action in played.facts(number).actions}
    assert {"crm", "ticket", "mail", "core", "stock"} <= systems
