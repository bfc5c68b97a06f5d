"""Every failure case that the sources of the three examples name, played on the engine, judged from outside.

Their words are mapped once (`EXPECTED`). All cases are played side by side; a case is a test.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import batched
from typing import Any

import pytest
from django.db import connections

from sagas import api
from sagas.executor import Drain, perform
from sagas.facts import ActionFacts, QueueFilter, RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.start import run_ref
from sagas.models import Run
from sagas.orders import Ask, Call, Claim, Order
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState, RunState
from tests.integration.sagas.conftest import AGENT, ROOT, drain
from tests.integration.sagas.stage import Stage, stage
from tools.world import World

__all__ = ["stage"]

pytestmark = pytest.mark.requirement("S0-10", "S0-41", "S3-6")

FLOWS = {
    "seed-003-order-fulfilment": "order_fulfilment",
    "seed-002-bank-account-opening": "bank_opening",
    "seed-000-ticket-crm-notify": "ticket_crm_notice",
}
TOOL_OF = {
    "open_ticket": "create_ticket",
    "update_crm": "update_account",
    "notify_customer": "send_mail",
    "file_customer": "create_file",
    "grant_credit_line": "allocate_limit",
    "send_opening_sms": "send_sms",
    "charge_card_fee": "debit_fee",
}
QUERY_OF = {
    "reserve_stock": "get_reservation",
    "create_shipment": "get_shipment",
    "send_notice": "query_notice",
    "create_ticket": "find_ticket_by_key",
    "update_account": "get_account",
    "send_mail": "find_mail_by_key",
    "create_customer": "find_customer",
    "create_file": "find_file",
    "allocate_limit": "get_allocation",
    "send_sms": "find_sms",
    "debit_fee": "find_entry",
}
COMPENSATION_OF = {
    "reserve_stock": "release_stock",
    "create_ticket": "close_ticket",
    "create_customer": "release_customer_no",
}


@dataclass(frozen=True)
class Case:
    """One failure case of a source, with the number of the run that plays it."""

    flow: str
    name: str
    inject: dict[str, Any]
    expect: dict[str, Any]
    number: int

    @property
    def tool(self) -> str:
        step = str(self.inject["step"])
        return TOOL_OF.get(step, step)

    @property
    def match(self) -> str:
        return str(self.number)


def _cases() -> list[Case]:
    cases: list[Case] = []
    for source, flow in FLOWS.items():
        document = json.loads((ROOT / "examples" / "sources" / f"{source}.json").read_text())
        for case in document["failure_cases"]:
            number = 2_000_001 + len(cases)
            cases.append(Case(flow, case["case"], case["inject"], case["expect"], number))
    return cases


CASES = _cases()


# --- Playing ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(stage: Stage) -> Stage:
    """Every case played to its rest; those whose status query can only be silenced for everybody come last.

    In small groups: nobody's time for recovering runs out while the others have their turn.
    """
    apart = [case for case in CASES if _is_query_down(case) and case.tool in ASKED_BY_RESULT]
    together = [case for case in CASES if case not in apart]
    for group in (*batched(together, GROUP), apart):
        stage.simulator.plan(*[rule for case in group for rule in _rules(case)])
        for case in group:
            stage.start(case.flow, case.number)
        for case in group:
            _before_the_drain(stage, case)
        if any("failure_event_copies" in case.inject for case in group):
            _several_drains()
        stage.settle()
    stage.remember()
    return stage


GROUP = 11
ASKED_BY_RESULT = ("create_file", "allocate_limit")
"""Their status queries name the customer number that an earlier step was answered with."""


def _is_query_down(case: Case) -> bool:
    return case.inject.get("status_query") == "unavailable" or case.name == "notice-times-out-8s"


def _rules(case: Case) -> list[dict[str, Any]]:
    """What the simulated world does to the runs of a case; a lost answer is cut off so that nobody has to wait."""
    rule = {"tool": case.tool, "match": _run_ref(case)}  # every key carries it
    match case.inject["mode"]:
        case "rejected":
            rules: list[dict[str, Any]] = [{**rule, "mode": "refuse"}]
        case "response_lost_after_effect":
            rules = [{**rule, "mode": "cut"}]
        case "request_lost_before_effect":
            rules = [{**rule, "mode": "reset", "attempts": [1]}]
        case "unavailable_after_retries":
            rules = [{**rule, "mode": "fail_before", "status": 503}]
        case _:
            rules = []
    if _is_query_down(case):
        by = {"create_customer": case.match, "create_file": "", "allocate_limit": ""}
        match = by.get(case.tool, _run_ref(case))
        rules.append({"tool": QUERY_OF[case.tool], "match": match, "mode": "query_down"})
    if compensated := case.inject.get("compensation_of"):
        tool = COMPENSATION_OF[TOOL_OF.get(compensated, compensated)]
        for_good = case.inject["compensation_mode"] == "rejected"
        rules.append(
            {"tool": tool, "match": _run_ref(case), "mode": "refuse"}
            if for_good
            else {
                "tool": tool,
                "match": _run_ref(case),
                "mode": "fail_before",
                "status": 503,
                "attempts": [1],
            }
        )
    return rules


def _run_ref(case: Case) -> str:
    return run_ref(AGENT, f"run-{case.number}")


def _before_the_drain(stage: Stage, case: Case) -> None:
    if "kill_worker" in case.inject:
        _lose_the_worker(stage, case, COMPENSATION_OF)
    elif case.inject["mode"] == "kill_worker_after_effect_before_result_saved":
        _lose_the_worker(stage, case, {case.tool: case.tool})
    elif case.inject["mode"] == "same action taken by two workers":
        _two_workers(stage, case)


def _lose_the_worker(stage: Stage, case: Case, tools: dict[str, str]) -> None:
    """Drive the run until a call of one of the tools was answered, then die without a word: nothing is saved."""
    owner, world = workers.enrol("lost"), World(stage.simulator.systems)
    run = Run.objects.get(ref=stage.ref(case.number))
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, order = claimed
    while isinstance(order, Call | Ask):
        seen = perform(order, world)
        if isinstance(order, Call) and order.contract.tool in tools.values():
            break
        order = ledger.advance(claim, seen)
    else:
        raise AssertionError("The call that the worker should have died after was never made.")
    world.close()
    workers.sign_off(owner, "killed")
    assert workers.bury(owner) == 1


def _two_workers(stage: Stage, case: Case) -> None:
    """Two workers want the same run at the same moment; the loser reads again and goes away."""
    run = Run.objects.get(ref=stage.ref(case.number))
    barrier, won = threading.Barrier(2), list[tuple[Claim, Order]]()

    def want() -> None:
        owner = workers.enrol("rival")
        barrier.wait(60)
        if (claimed := ledger.claim_run(run.pk, owner)) is not None:
            won.append(claimed)
        connections.close_all()

    _together(want, want)
    assert len(won) == 1
    claim, order = won[0]
    world = World(stage.simulator.systems)
    while isinstance(order, Call | Ask):
        order = ledger.advance(claim, perform(order, world))
    world.close()


def _several_drains() -> None:
    """The bell rings three times at once: three drains look for work."""

    def answer_the_bell() -> None:
        drainer = Drain("bell")
        drainer.run(seconds=1.0)
        drainer.close()
        connections.close_all()

    _together(*[answer_the_bell] * 3)


def _together(*acts: Callable[[], None]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


# --- Judging ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.flow}-{case.name}")
def test_a_failure_case_of_a_source_ends_as_the_source_says(played: Stage, case: Case) -> None:
    facts = played.facts(case.number)
    judge = next(judge for part, judge in JUDGES if part in case.name)
    judge(played, case, facts)
    # Whatever happened: nothing took effect twice, and what was compensated was compensated once.
    for tool, count in net(played, facts).items():
        assert count["done"] <= 1, tool
        assert count["done"] - count["compensated"] in (0, 1), tool


def _fails_for_good(stage: Stage, case: Case, facts: RunFacts) -> None:
    expect = case.expect
    step = facts.action(case.inject["step"])
    assert step.state is ActionState.REJECTED
    for never in expect.get("never_called", []):
        assert arrived(stage, facts, TOOL_OF.get(never, never)) == []
    if expect.get("cannot_be_undone"):
        # What cannot be taken back stands before the failure: a person decides, nothing was compensated. The source
        # also names a retry; the engine has turned back by then and does not go forward again (engine.md, 11).
        assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.PIVOT)
        assert compensations(stage, facts) == []
        assert {"compensate", "mark_acceptable", "escalate"} <= set(api.next_allowed(facts))
        return
    if case.tool in ("send_notice", "send_mail"):
        # The source compensates; the definition says `on_rejected = handoff` for a step whose failure the business can
        # live with, and a step's own word goes before the workflow's (engine.md, 11: on_rejected per step).
        assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.REJECTED)
        assert api.word_for_agent(facts) == "partially_completed"
        assert compensations(stage, facts) == []
        return
    done = expect["compensations"]
    assert compensations(stage, facts) == [part["call"] for part in done]
    assert facts.state is (RunState.COMPENSATED if done else RunState.FAILED_CLEAN)
    assert facts.handoff is None


def _answer_lost(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPLETED
    assert net(stage, facts)[case.tool]["done"] == case.expect["effects_downstream"]
    assert len(arrived(stage, facts, case.tool)) == 1
    assert facts.action(case.inject["step"]).settled_by == "status query"


def _request_lost(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPLETED
    assert net(stage, facts)[case.tool]["done"] == case.expect["effects_downstream"]
    calls = arrived(stage, facts, case.tool)
    assert len(calls) == 2
    assert len({call["key"] for call in calls}) == 1


def _query_down(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.UNKNOWN_UNRESOLVED)
    assert facts.action(case.inject["step"]).state is ActionState.UNKNOWN
    assert compensations(stage, facts) == case.expect["compensations"]
    assert len(arrived(stage, facts, case.tool)) == 1


def _notice_times_out(stage: Stage, case: Case, facts: RunFacts) -> None:
    states = {action.step: action.state.value for action in facts.actions}
    assert states == case.expect["action_states"]
    assert api.word_for_agent(facts) == case.expect["workflow_state"]
    # query_notice -> query_status, mark_pending -> mark_acceptable, manual_review -> handoff
    assert {"query_status", "mark_acceptable", "handoff"} <= set(api.next_allowed(facts))
    assert "retry" not in api.next_allowed(facts)
    assert net(stage, facts)["reserve_stock"] == {"done": case.expect["stock_effects"], "compensated": 0}


def _accept_partial(stage: Stage, case: Case, facts: RunFacts) -> None:
    # A 503 of the mail relay is not said to come before processing: each try was unknown, and proved absent.
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.REJECTED)
    assert api.word_for_agent(facts) == case.expect["workflow_state"]
    assert compensations(stage, facts) == []
    assert len(arrived(stage, facts, case.tool)) == 2
    assert {"retry", "mark_acceptable"} <= set(api.next_allowed(facts))


def _fails_once(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPENSATED
    assert facts.handoff is None
    _compensated_once(stage, case, facts)


def _compensation_fails_for_good(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.COMPENSATION_FAILED)
    (pending,) = case.expect["pending_compensation_rows"]
    made_up = facts.action(pending).compensation
    assert made_up is not None
    assert made_up.state is CompensationState.FAILED
    assert compensations(stage, facts) == []
    assert {"compensate", "mark_acceptable", "escalate"} <= set(api.next_allowed(facts))
    assert facts.handoff is not None
    assert facts.handoff.ref in {row.ref for row in api.queue(QueueFilter(state="compensation_failed")).rows}


def _compensated_once(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPENSATED
    for step, count in case.expect["undo_effects"].items():
        assert net(stage, facts)[TOOL_OF.get(step, step)]["compensated"] == count


def _killed_between(stage: Stage, case: Case, facts: RunFacts) -> None:
    step = facts.action(case.inject["step"])
    names = [entry.name for entry in api.entries(facts.ref) if entry.step == step.step]
    assert names.index("tool.compensation.registered") < names.index("tool.execution.started")
    assert names.count("tool.execution.unknown") == 1
    assert (step.state, step.settled_by) == (ActionState.CONFIRMED, "status query")
    assert net(stage, facts)[case.tool]["done"] == case.expect["effects_downstream"]
    assert facts.state is RunState.COMPLETED


def _two_workers_one_action(stage: Stage, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPLETED
    assert net(stage, facts)[case.tool]["done"] == case.expect["effects_downstream"]
    assert [attempt.number for action in facts.actions for attempt in action.attempts] == [1] * len(
        facts.actions
    )


JUDGES: tuple[tuple[str, Callable[[Stage, Case, RunFacts], None]], ...] = (
    ("undo-of-reserve_stock-fails-once", _fails_once),
    ("fails-once", _fails_once),
    ("undo-of-create_customer-fails-for-good", _compensation_fails_for_good),
    ("undo-of-open_ticket-fails-for-good", _compensation_fails_for_good),
    ("undo-of-reserve_stock-fails-for-good", _compensation_fails_for_good),
    ("fails-for-good", _fails_for_good),
    ("answer-lost-but-done", _answer_lost),
    ("request-lost", _request_lost),
    ("unknown-and-query-down", _query_down),
    ("notice-times-out-8s", _notice_times_out),
    ("fails-accept-partial", _accept_partial),
    ("failure-event-delivered-twice", _compensated_once),
    ("worker-killed-while-undoing", _compensated_once),
    ("worker-killed-between-call-and-save", _killed_between),
    ("two-workers-one-action", _two_workers_one_action),
)


def reason(facts: RunFacts) -> str:
    return facts.handoff.reason if facts.handoff is not None else ""


def _keys(facts: RunFacts) -> dict[str, ActionFacts]:
    keys = {}
    for action in facts.actions:
        keys[action.key] = action
        if action.compensation is not None:
            keys[action.compensation.key] = action
    return keys


def _records(stage: Stage, facts: RunFacts, kind: str) -> list[dict[str, Any]]:
    keys = _keys(facts)
    return [record for record in stage.records if record["kind"] == kind and record["key"] in keys]


def arrived(stage: Stage, facts: RunFacts, tool: str) -> list[dict[str, Any]]:
    """The forward calls of a run's tool that reached the outside."""
    forward = {action.key for action in facts.actions}
    return [r for r in _records(stage, facts, "arrived") if r["tool"] == tool and r["key"] in forward]


def compensations(stage: Stage, facts: RunFacts) -> list[str]:
    """The compensations that took effect outside, in order."""
    made_up = {action.compensation.key for action in facts.actions if action.compensation is not None}
    return [r["tool"] for r in _records(stage, facts, "effect") if r["key"] in made_up]


def net(stage: Stage, facts: RunFacts) -> dict[str, dict[str, int]]:
    """By forward tool: how often it took effect outside, and how often that was compensated."""
    keys, found = _keys(facts), {action.tool: {"done": 0, "compensated": 0} for action in facts.actions}
    for record in _records(stage, facts, "effect"):
        action = keys[record["key"]]
        found[action.tool]["done" if record["key"] == action.key else "compensated"] += 1
    return found


def test_no_drain_finds_anything_left_to_do(played: Stage) -> None:
    before = len(played.simulator.ledger(kind="effect"))

    drain()

    assert len(played.simulator.ledger(kind="effect")) == before
