"""What the record says of a run, whatever became of it: six runs are played once, each test reads what is kept.

A failure compensated, the same with the way back disturbed, a compensation that failed, an outcome that stays unknown, a
first try that failed, and a run without trouble that overwrites what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from sagas import api, states
from sagas.facts import ActionFacts, EntryFacts
from sagas.models import Handoff
from sagas.states import ActionState, CompensationState, Machine, RunState
from tests.integration.sagas.stage import Stage, stage

__all__ = ["stage"]

COMPENSATED, DISTURBED, STUCK, UNKNOWN, RETRIED, OVERWRITING = range(7300001, 7300007)
FLOWS: dict[int, tuple[str, list[dict[str, Any]]]] = {
    COMPENSATED: ("bank_opening", [{"tool": "send_sms", "mode": "fail_before"}]),
    DISTURBED: (
        "bank_opening",
        [
            {"tool": "send_sms", "mode": "fail_before"},
            {"tool": "reclaim_limit", "mode": "reset", "applied": True, "attempts": [1]},
            {"tool": "withdraw_file", "mode": "reset", "attempts": [1]},
        ],
    ),
    STUCK: (
        "bank_opening",
        [{"tool": "allocate_limit", "mode": "refuse"}, {"tool": "withdraw_file", "mode": "refuse"}],
    ),
    UNKNOWN: (
        "order_fulfilment",
        [
            {"tool": "send_notice", "mode": "reset", "applied": True},
            {"tool": "query_notice", "mode": "query_down"},
        ],
    ),
    RETRIED: (
        "order_fulfilment",
        [{"tool": "reserve_stock", "mode": "refuse", "status": 503, "attempts": [1]}],
    ),
    OVERWRITING: ("ticket_crm_notice", []),
}


@pytest.fixture(scope="module")
def played(stage: Stage) -> Stage:
    """All six runs, settled as far as they go by themselves."""
    for number, (definition, rules) in FLOWS.items():
        ref = stage.start(definition, number)
        stage.simulator.plan(*({**rule, "match": ref} for rule in rules))
    stage.settle()
    stage.remember()
    return stage


def trail(played: Stage, number: int) -> tuple[EntryFacts, ...]:
    return api.entries(played.ref(number))


def effective(actions: Iterable[ActionFacts]) -> list[ActionFacts]:
    """The actions that were sent and can leave something."""
    return [action for action in actions if action.contract.has_effect and action.attempts]


def first(entries: Iterable[EntryFacts], name: str, step: str) -> int:
    """The place in the trail of the first entry of that name about a step."""
    return next(entry.seq or 0 for entry in entries if entry.name == name and entry.step == step)


@pytest.mark.requirement("S0-17", "S0-21", "S0-83", "S0-86")
def test_a_run_says_what_was_done_what_was_made_up_for_and_what_comes_next(played: Stage) -> None:
    facts = played.facts(COMPENSATED)

    executed = [action.tool for action in facts.actions if action.attempts]
    compensated = [a.compensation.tool for a in facts.actions if a.compensation and a.compensation.attempts]
    assert executed == ["create_customer", "create_file", "allocate_limit", "send_sms"]
    assert compensated == ["release_customer_no", "withdraw_file", "reclaim_limit"]
    assert (facts.state, api.next_allowed(facts), facts.effects_left) == (RunState.COMPENSATED, (), ())
    stuck = played.facts(STUCK)
    waiting = [
        a.step
        for a in stuck.actions
        if a.compensation and a.compensation.state is CompensationState.REGISTERED
    ]
    assert waiting == ["create_customer"]
    assert "compensate" in api.next_allowed(stuck)


@pytest.mark.requirement("S0-18", "S0-49", "S0-86", "S2-3")
def test_the_trail_says_which_failure_turned_the_run_and_whether_making_up_worked(played: Stage) -> None:
    entries = trail(played, COMPENSATED)

    turned = next(entry for entry in entries if entry.name == "run.turned_back")
    refused = next(e for e in entries if e.step == "send_opening_sms" and e.target == ActionState.REJECTED)
    done = [entry.step for entry in entries if entry.name == "tool.compensation.succeeded"]
    assert turned.reason.startswith("send_opening_sms was rejected")
    assert (refused.seq or 0) < (turned.seq or 0)
    assert done == ["grant_credit_line", "file_customer", "create_customer"]
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))


@pytest.mark.requirement("S0-19", "S0-48")
def test_events_have_the_names_that_others_listen_for(played: Stage) -> None:
    wanted = {
        "tool.execution.succeeded",
        "tool.execution.failed",
        "tool.retry.scheduled",
        "tool.compensation.started",
        "tool.compensation.succeeded",
        "tool.compensation.failed",
        "human.handoff.started",
    }

    assert wanted <= {entry.name for number in FLOWS for entry in trail(played, number)}
    assert wanted <= {move.entry for move in states.MOVES}


@pytest.mark.requirement("S0-4")
def test_every_entry_carries_the_role_that_acted(played: Stage) -> None:
    roles = {entry.role for number in FLOWS for entry in trail(played, number)}

    assert "" not in roles
    assert {"planner", "executor", "validator", "compensation"} <= roles


@pytest.mark.requirement("S0-2", "S3-2")
def test_every_change_of_state_in_the_trail_is_a_row_of_the_tables(played: Stage) -> None:
    pairs = {
        (entry.machine, entry.source, entry.target)
        for number in FLOWS
        for entry in trail(played, number)
        if entry.machine and entry.target
    }

    assert {machine for machine, _, _ in pairs} >= {
        Machine.RUN,
        Machine.ACTION,
        Machine.COMPENSATION,
        Machine.HANDOFF,
    }
    assert pairs <= states.legal_pairs()


@pytest.mark.requirement("S0-34", "S4-6", "S4-8", "S4-23")
def test_the_compensation_is_on_record_before_the_call_it_makes_up_for(played: Stage) -> None:
    looked_at = 0
    for number in FLOWS:
        entries = trail(played, number)
        for action in effective(played.facts(number).actions):
            if action.contract.compensation is not None:
                looked_at += 1
                assert first(entries, "tool.compensation.registered", action.step) < first(
                    entries, "tool.execution.started", action.step
                )

    assert looked_at > 8


@pytest.mark.requirement("S0-73", "S3-5", "S3-18")
def test_every_effect_outside_has_its_call_on_record(played: Stage) -> None:
    keys = set()
    for number in FLOWS:
        for action in played.facts(number).actions:
            keys |= {action.key} if action.attempts else set()
            keys |= (
                {action.compensation.key} if action.compensation and action.compensation.attempts else set()
            )

    ours = {record["key"] for record in played.records if record["kind"] == "effect"}

    assert len(ours) > 10
    assert ours <= keys


@pytest.mark.requirement("S3-18", "S3-22")
def test_the_record_and_the_outside_agree_on_what_stands(played: Stage) -> None:
    effects = {record["key"] for record in played.records if record["kind"] == "effect"}

    for number in FLOWS:
        for action in played.facts(number).actions:
            if (
                action.state in (ActionState.CONFIRMED, ActionState.COMPENSATED)
                and action.contract.has_effect
            ):
                assert action.key in effects, action.step
            if action.state in (ActionState.REJECTED, ActionState.SKIPPED):
                assert action.key not in effects, action.step


@pytest.mark.requirement("S3-21", "S3-22")
def test_a_mixed_run_is_neither_failed_nor_done(played: Stage) -> None:
    facts = played.facts(UNKNOWN)

    assert [action.state for action in facts.actions] == [
        ActionState.CONFIRMED,
        ActionState.CONFIRMED,
        ActionState.UNKNOWN,
    ]
    assert facts.state is RunState.HANDOFF
    assert api.word_for_agent(facts) == "partially_completed"
    assert facts.effects_left == ("reserve_stock", "create_shipment")


@pytest.mark.requirement("S0-44", "S0-47")
@pytest.mark.parametrize("number", [STUCK, UNKNOWN], ids=["stuck", "unknown"])
def test_a_handoff_opens_with_a_structured_picture(played: Stage, number: int) -> None:
    facts = played.facts(number)
    context: dict[str, Any] = Handoff.objects.get(run__ref=facts.ref).context

    by_state = {state: [a.step for a in facts.actions if a.state is state] for state in ActionState}
    assert context["succeeded"] == by_state[ActionState.CONFIRMED]
    assert [one["step"] for one in context["failed"]] == by_state[ActionState.REJECTED]
    assert [one["step"] for one in context["unknown"]] == by_state[ActionState.UNKNOWN]
    assert [one["step"] for one in context["effects"]] == list(facts.effects_left)
    assert all(one["tool"] and one["kind"] and one["state"] for one in context["compensations"])


@pytest.mark.requirement("S1-7", "S1-10", "S1-13")
def test_what_was_there_before_a_write_is_read_and_kept_before_it_is_sent(played: Stage) -> None:
    facts = played.facts(OVERWRITING)
    (update,) = [action for action in facts.actions if action.tool == "update_account"]
    entries = trail(played, OVERWRITING)

    prepared = next(e for e in entries if e.name == "tool.execution.prepared" and e.step == update.step)
    of_the_write = [r for r in played.records if r["key"] == update.key and r["kind"] == "arrived"]
    reads = [r for r in played.records if r["tool"] == "get_account" and r["kind"] == "replied"]
    assert isinstance(update.prior_state, dict)
    assert update.prior_version
    assert isinstance(prepared.after, dict)
    assert prepared.after["prior_version"] == update.prior_version
    assert (prepared.seq or 0) < first(entries, "tool.execution.started", update.step)
    assert min(read["seq"] for read in reads) < min(write["seq"] for write in of_the_write)


@pytest.mark.requirement("S3-7", "S3-1")
def test_an_action_is_kept_with_id_name_state_key_reference_and_attempts(played: Stage) -> None:
    facts = played.facts(RETRIED)
    reserved = facts.action("reserve_stock")

    assert facts.state is RunState.COMPLETED
    assert reserved.id
    assert reserved.state is ActionState.CONFIRMED
    assert re.fullmatch(rf"{facts.ref}\.reserve_stock\..+", reserved.key)
    assert reserved.provider_ref
    assert [attempt.number for attempt in reserved.attempts] == [1, 2]
    assert [attempt.answer for attempt in reserved.attempts] == ["temporary", "confirmed"]


@pytest.mark.requirement("S0-30", "S1-25", "S2-2")
def test_a_passing_fault_is_repeated_and_compensates_nothing(played: Stage) -> None:
    names = [entry.name for entry in trail(played, RETRIED)]

    assert names.count("tool.retry.scheduled") == 1
    assert "run.turned_back" not in names
    assert "tool.compensation.started" not in names


@pytest.mark.requirement("S2-5", "S2-6", "S4-10")
def test_a_compensation_whose_answer_is_lost_takes_effect_once_all_the_same(played: Stage) -> None:
    facts = played.facts(DISTURBED)
    made_up = [
        action.compensation
        for action in facts.actions
        if action.compensation and action.compensation.attempts
    ]

    assert facts.state is RunState.COMPENSATED
    assert {one.tool: len(one.attempts) for one in made_up}["withdraw_file"] > 1
    for one in made_up:
        assert one.state is CompensationState.CONFIRMED
        assert [r["key"] for r in played.records if r["kind"] == "effect"].count(one.key) == 1


@pytest.mark.requirement("S2-4", "S4-20")
@pytest.mark.parametrize("number", FLOWS)
def test_the_present_state_of_everything_follows_from_the_trail_alone(played: Stage, number: int) -> None:
    facts, last = played.facts(number), {}
    for entry in trail(played, number):
        if entry.machine and entry.target:
            last[entry.machine, entry.step] = entry.target

    for action in facts.actions:
        assert last.get(("action", action.step), "not_started") == action.state
        if action.compensation is not None:
            assert last["compensation", action.step] == action.compensation.state
    assert last["run", ""] == facts.state
