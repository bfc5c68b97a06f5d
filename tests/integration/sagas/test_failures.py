"""What a failing step leads to, judged by the simulator's ledger."""

from collections.abc import Callable
from typing import Any

import pytest

from sagas import api
from sagas.facts import QueueFilter, RunFacts
from sagas.states import ActionState, RunState
from tests.conftest import Simulator
from tests.integration.sagas.conftest import effects

BANK = {
    "application": "A-1",
    "name": "Ada Example",
    "id_no": "ID770001",
    "limit": "500.00",
    "fee": "20.00",
    "phone": "+4900000",
}


def states(facts: RunFacts) -> list[ActionState]:
    return [action.state for action in facts.actions]


@pytest.mark.requirement("S2-10", "S0-36", "S4-7", "S0-68", "S0-69")
def test_a_500_at_step_4_compensates_3_2_1_and_nothing_else(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    simulator.plan({"tool": "send_sms", "mode": "fail_before"})

    facts = drained("bank_opening", BANK)

    assert facts.state is RunState.COMPENSATED
    done = [
        record["tool"]
        for record in simulator.ledger(kind="effect")
        if record["tool"] in ("reclaim_limit", "withdraw_file", "release_customer_no")
    ]
    assert done == ["reclaim_limit", "withdraw_file", "release_customer_no"]
    assert effects(simulator, "debit_fee") == 0
    assert effects(simulator, "send_sms") == 0


@pytest.mark.requirement("S3-8", "S0-10", "S1-17")
@pytest.mark.parametrize("tool", ["reserve_stock", "create_shipment", "send_notice"])
def test_a_lost_answer_is_found_by_the_query_and_the_effect_stays_one(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], tool: str
) -> None:
    simulator.plan({"tool": tool, "mode": "reset", "applied": True, "attempts": [1]})

    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, tool) == 1


@pytest.mark.requirement("S3-6", "S3-19")
@pytest.mark.parametrize("tool", ["reserve_stock", "create_shipment", "send_notice"])
def test_a_lost_request_is_proved_absent_and_sent_again_under_the_same_key(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], tool: str
) -> None:
    simulator.plan({"tool": tool, "mode": "reset", "attempts": [1]})

    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, tool) == 1
    keys = {record["key"] for record in simulator.ledger(tool=tool, kind="arrived")}
    assert len(keys) == 1


@pytest.mark.requirement("S2-6", "S0-41")
def test_a_rejected_step_compensates_what_came_before(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})

    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.COMPENSATED
    assert states(facts) == [ActionState.COMPENSATED, ActionState.REJECTED, ActionState.SKIPPED]
    assert effects(simulator, "release_stock") == 1


@pytest.mark.requirement("S0-70", "S0-42", "S2-7")
def test_a_refused_compensation_holds_the_earlier_ones_and_opens_a_handoff(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    simulator.plan(
        {"tool": "allocate_limit", "mode": "refuse"},
        {"tool": "withdraw_file", "mode": "refuse"},
    )

    facts = drained("bank_opening", BANK)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.COMPENSATION_FAILED
    assert states(facts)[:3] == [ActionState.CONFIRMED, ActionState.CONFIRMED, ActionState.REJECTED]
    assert effects(simulator, "release_customer_no") == 0
    page = api.queue(QueueFilter(state="compensation_failed"))
    assert [row.ref for row in page.rows] == [facts.handoff.ref]
    assert page.rows[0].counts.failed == 2


@pytest.mark.requirement("S3-11", "S0-43")
def test_an_unknown_that_no_query_settles_is_handed_over_after_the_recovery_deadline(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan(
        {"tool": "send_notice", "mode": "reset", "applied": True},
        {"tool": "query_notice", "mode": "query_down"},
    )

    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.UNKNOWN_UNRESOLVED
    assert states(facts)[2] is ActionState.UNKNOWN
    assert api.word_for_agent(facts) == "partially_completed"
    assert "retry" not in api.next_allowed(facts)
