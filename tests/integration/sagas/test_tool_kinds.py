"""Each kind of tool is handled in its own way (S0-51 to S0-55), and what is held goes last (S2-9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, CompensationState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import effects, settle
from tests.integration.sagas.test_anti_patterns import arrivals, on_the_desk, publish, workflow
from tests.integration.sagas.test_failures import BANK

APPROVAL = {
    "customer": "C-12",
    "kind": "limit-raise",
    "text": "Raise it",
    "fields": {"note": "being decided"},
}
BACK = ["drop_message", "reverse_fee", "reclaim_limit", "withdraw_file", "release_customer_no"]


def with_a_look(*, on_rejected: str) -> str:
    """The order workflow with a read in the middle that it can do without."""
    document = workflow("order_fulfilment")
    look = {
        "id": "look_at_customer",
        "tool": "get_account",
        "contract_version": 1,
        "on_rejected": on_rejected,
        "args": {"account": {"from": "input", "pointer": "/customer"}},
    }
    document["steps"].insert(1, look)
    return publish(document, f"order_with_a_look_{on_rejected}")


# --- S0-51: reads ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-51")
@pytest.mark.parametrize("mode", ["fail_before", "reset"])
def test_a_read_is_simply_read_again(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], mode: str
) -> None:
    simulator.plan({"tool": "get_account", "mode": mode, "attempts": [1]})

    facts = drained(with_a_look(on_rejected="continue"), {**order, "customer": "C-88"})

    assert facts.state is RunState.COMPLETED
    assert facts.action("look_at_customer").state is ActionState.CONFIRMED
    assert len(arrivals(simulator, "get_account")) == 2


@pytest.mark.requirement("S0-51")
def test_the_run_goes_on_without_a_read_that_fails_and_never_makes_up_for_one(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "get_account", "mode": "fail_before"})
    name = with_a_look(on_rejected="continue")

    degraded = drained(name, order)
    assert degraded.state is RunState.COMPLETED
    assert degraded.action("look_at_customer").state is ActionState.REJECTED

    simulator.plan({"tool": "get_account", "mode": "ok"}, {"tool": "create_shipment", "mode": "refuse"})
    back = drained(name, {**order, "order": "O-20932"}, key="k2")
    assert back.state is RunState.COMPENSATED
    look = back.action("look_at_customer")
    assert (look.state, look.compensation) == (ActionState.CONFIRMED, None)
    assert [r["tool"] for r in simulator.ledger(kind="effect") if r["direction"] == "compensate"] == [
        "release_stock"
    ]


# --- S0-52: writes that may be repeated --------------------------------------------------------------------------


@pytest.mark.requirement("S0-52", "S0-14")
@pytest.mark.parametrize(
    ("silence", "calls", "settled_by"),
    [
        ({"mode": "reset", "applied": True}, 1, "status query"),
        ({"mode": "reset"}, 2, "answer"),
        ({"mode": "fail_after"}, 1, "status query"),
    ],
    ids=["applied, no answer", "no answer", "applied, an error"],
)
def test_a_write_with_a_key_is_asked_about_and_repeated_only_when_it_is_not_there(
    simulator: Simulator,
    drained: Callable[..., RunFacts],
    silence: dict[str, Any],
    calls: int,
    settled_by: str,
) -> None:
    simulator.plan({"tool": "queue_message", "attempts": [1], **silence})

    facts = drained("bank_opening_outbox", BANK)

    assert facts.state is RunState.COMPLETED
    step = facts.action("store_message")
    assert (step.state, step.settled_by) == (ActionState.CONFIRMED, settled_by)
    assert len(arrivals(simulator, "queue_message")) == calls
    assert {r["key"] for r in arrivals(simulator, "queue_message")} == {step.key}
    assert effects(simulator, "queue_message") == 1


# --- S0-53: writes that can be made up for -----------------------------------------------------------------------


@pytest.mark.requirement("S0-53", "S0-36", "S2-9")
def test_reversible_writes_are_made_up_for_in_the_reverse_of_their_order(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    simulator.plan({"tool": "send_sms", "mode": "refuse"})

    facts = drained("bank_opening_outbox", BANK)

    assert facts.state is RunState.COMPENSATED
    assert [r["tool"] for r in simulator.ledger(kind="effect") if r["direction"] == "compensate"] == BACK
    made_up = [a.compensation for a in facts.actions if a.compensation is not None]
    assert {one.state for one in made_up} == {CompensationState.CONFIRMED}


# --- S0-54: what cannot be taken back ----------------------------------------------------------------------------


@pytest.mark.requirement("S0-54", "S0-76")
def test_what_cannot_be_taken_back_is_left_marked_and_handed_over(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan({"tool": "debit_fee", "mode": "refuse"})

    facts = drained("bank_opening", BANK)

    assert facts.handoff is not None
    assert (facts.state, facts.handoff.reason) == (RunState.HANDOFF, api.Reason.PIVOT)
    assert "send_opening_sms" in facts.effects_left
    (row,) = api.queue().rows
    assert row.irreversible_confirmed
    assert [r for r in simulator.ledger(kind="effect") if r["direction"] == "compensate"] == []
    # A person may make up for the rest; the message stays, and the run never says that all is compensated.
    with on_the_desk(facts) as desk:
        desk.compensate()
    after = settle(facts.ref, clock)
    assert [r["tool"] for r in simulator.ledger(kind="effect") if r["direction"] == "compensate"] == BACK[2:]
    assert after.effects_left == ("send_opening_sms",)
    assert after.state is RunState.HANDOFF
    assert effects(simulator, "send_sms") == 1


# --- S0-55: requests for approval --------------------------------------------------------------------------------


@pytest.mark.requirement("S0-55")
def test_a_request_for_approval_is_withdrawn_once_while_nobody_has_decided(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan(
        {"tool": "update_account", "mode": "refuse"},
        {"tool": "withdraw_request", "mode": "reset", "applied": True, "attempts": [1]},
    )
    facts = drained("approval_crm", APPROVAL)

    with on_the_desk(facts) as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.COMPENSATED
    assert effects(simulator, "withdraw_request") == 1


@pytest.mark.requirement("S0-55", "S0-38")
def test_a_request_that_somebody_has_granted_is_not_withdrawn_but_goes_to_whom_the_contract_names(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan({"tool": "update_account", "mode": "refuse"})
    facts = drained("approval_crm", APPROVAL)
    request = facts.action("submit_approval").provider_ref
    simulator.post("/third-party", {"kind": "request", "id": request, "state": "granted"})

    with on_the_desk(facts) as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)

    assert facts.handoff is not None
    assert (facts.state, facts.handoff.reason) == (RunState.HANDOFF, api.Reason.COMPENSATION_FAILED)
    made_up = facts.action("submit_approval").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.FAILED
    assert "nobody has decided yet" in made_up.error_detail
    assert facts.action("submit_approval").contract.escalation.to == "Approvals office"
    assert arrivals(simulator, "withdraw_request") == []


# --- S2-9: held until the rest has succeeded ---------------------------------------------------------------------


@pytest.mark.requirement("S2-9", "S2-13")
@pytest.mark.parametrize("written_first", [False, True])
def test_what_is_held_goes_out_last_wherever_it_is_written(
    simulator: Simulator, drained: Callable[..., RunFacts], written_first: bool
) -> None:
    document = workflow("bank_opening_outbox")
    if written_first:
        document["steps"].insert(1, document["steps"].pop())

    facts = drained(publish(document, f"held_{written_first}".lower()), BANK)

    assert facts.state is RunState.COMPLETED
    sent = [r["tool"] for r in simulator.ledger(kind="effect")]
    assert sent[-1] == "send_sms"
    assert sorted(sent[:-1]) == sorted(a.tool for a in facts.actions if a.tool != "send_sms")


@pytest.mark.requirement("S2-9", "S2-5")
@pytest.mark.parametrize("tool", ["create_file", "allocate_limit", "debit_fee", "queue_message"])
def test_what_is_held_is_never_sent_when_anything_else_fails(
    simulator: Simulator, drained: Callable[..., RunFacts], tool: str
) -> None:
    simulator.plan({"tool": tool, "mode": "refuse"})

    facts = drained("bank_opening_outbox", BANK)

    assert facts.state is RunState.COMPENSATED
    assert arrivals(simulator, "send_sms") == []
    assert facts.action("send_opening_sms").state is ActionState.SKIPPED
    made_up = [r["tool"] for r in simulator.ledger(kind="effect") if r["direction"] == "compensate"]
    assert made_up == BACK[len(BACK) - len(made_up) :]
