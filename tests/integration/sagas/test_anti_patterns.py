"""What people get wrong with side effects (S0-72 to S0-77): each is shown to be prevented, by the check or the engine."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from structlog.testing import capture_logs

from sagas import alarms, api, reconcile
from sagas.errors import ErrorsFound
from sagas.executor import perform
from sagas.facts import RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Handoff
from sagas.orders import Ask, Call
from sagas.states import ActionState, CompensationState, RunState
from sagas.sweep import Sweep
from sagas.tx import InsideTransaction
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, OPERATOR, ROOT, effects, settle
from tests.integration.sagas.test_failures import BANK
from tools.contract import Contract
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from tools.world import World

CATALOG = ROOT / "tools" / "catalog"


def contract_of(tool: str) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(read_contract(CATALOG / f"{tool}.toml").document)
    return document


def workflow(name: str) -> dict[str, Any]:
    path = next(path for path in (ROOT / "examples").iterdir() if path.stem == name)
    document: dict[str, Any] = copy.deepcopy(read_definition(path).document)
    return document


def publish(document: dict[str, Any], name: str, *contracts: dict[str, Any]) -> str:
    """Publish a changed workflow under a name of its own, and with it changed contracts, as version 77 or later."""
    for contract in contracts:
        changed = {**contract, "version": max(contract["version"], 77)}
        api.publish_contract(contract_from_document(changed), actor=OPERATOR)
        for step in document["steps"]:
            if step["tool"] == contract["tool"]:
                step["contract_version"] = changed["version"]
    document |= {"name": name, "version": 1}
    api.publish_definition(definition_from_document(document), actor=OPERATOR)
    return name


def refused(document: dict[str, Any], *contracts: dict[str, Any]) -> set[str]:
    """The codes of the errors that keep a workflow from being published."""
    with pytest.raises(ErrorsFound) as found:
        publish(document, "never_published", *contracts)
    return set(re.findall(r"\bW\d{3}\b", str(found.value)))


@contextmanager
def on_the_desk(facts: RunFacts) -> Iterator[api.Desk]:
    assert facts.handoff is not None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="it is right so") as desk:
        yield desk


def arrivals(simulator: Simulator, tool: str) -> list[dict[str, Any]]:
    return simulator.ledger(tool=tool, kind="arrived")


# --- S0-72: nothing but retries --------------------------------------------------------------------------------


@pytest.mark.requirement("S0-72", "S0-33")
@pytest.mark.usefixtures("published")
def test_a_chain_that_can_only_be_retried_is_not_published() -> None:
    only_retried = contract_of("reserve_stock")
    del only_retried["compensation"]
    only_retried |= {"recovery_class": "retryable"}
    assert refused(workflow("order_fulfilment"), only_retried) == {"W102"}

    one_rule = contract_of("reserve_stock")
    blanket = {"max_attempts": 5, "first_delay_s": 1.0, "factor": 2.0}
    one_rule["retry"] = {
        error: dict(blanket) for error in ("temporary", "not_sent", "throttled", "no_answer", "server")
    }
    assert "W106" in refused(workflow("order_fulfilment"), {**one_rule, "version": 78})


@pytest.mark.requirement("S0-72", "S2-6")
def test_what_is_refused_is_not_tried_again_but_made_up_for(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})

    facts = drained("order_fulfilment", order)

    assert len(arrivals(simulator, "create_shipment")) == 1
    assert facts.state is RunState.COMPENSATED


# --- S0-73: a side effect without a record ---------------------------------------------------------------------


@pytest.mark.requirement("S0-73", "S3-5")
def test_no_call_leaves_before_its_record_is_committed(
    simulator: Simulator,
    drained: Callable[..., RunFacts],
    fresh_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulator.plan({"tool": "send_sms", "mode": "refuse"})
    on_record: list[tuple[str, list[str]]] = []
    call = World.call

    def looked_up(world: World, contract: Contract, *, key: str, **given: Any) -> Any:
        if contract.has_effect:
            with psycopg.connect(fresh_database) as other:
                rows = other.execute(
                    "SELECT state FROM sagas_action WHERE key = %(key)s UNION ALL "
                    "SELECT state FROM sagas_compensation WHERE key = %(key)s",
                    {"key": key},
                ).fetchall()
            on_record.append((contract.tool, [state for (state,) in rows]))
        return call(world, contract, key=key, **given)

    monkeypatch.setattr(World, "call", looked_up)
    facts = drained("bank_opening", BANK)

    assert facts.state is RunState.COMPENSATED
    # Four calls and three compensations: another session saw each of them marked as sent before its first byte.
    assert len(on_record) == 7
    assert [tool for tool, states in on_record if states != ["sent"]] == []


@pytest.mark.requirement("S0-73", "S3-18")
def test_no_call_is_made_inside_a_transaction(
    published: None, simulator: Simulator, order: dict[str, Any]
) -> None:
    started = api.start_run(actor=AGENT, definition="order_fulfilment", input=order, start_key="inside")
    claimed = ledger.claim_run(api.run_facts(started.run_ref).id, workers.enrol("inside"))
    assert claimed is not None
    assert isinstance(claimed[1], Call)
    world = World(simulator.systems)

    with pytest.raises(InsideTransaction), transaction.atomic():
        perform(claimed[1], world)

    world.close()
    assert simulator.ledger() == []


@pytest.mark.requirement("S0-73", "S4-28")
def test_a_state_that_is_written_without_an_entry_is_refused_by_the_database(
    published: None, simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    facts = drained("order_fulfilment", order)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_action SET state = 'compensated', version = version + 1 WHERE id = %s",
            [facts.actions[0].id],
        )

    assert api.run_facts(facts.ref).actions[0].state is ActionState.CONFIRMED


# --- S0-74: compensating blindly -------------------------------------------------------------------------------


@pytest.mark.requirement("S0-74", "S0-38")
def test_before_a_compensation_is_called_the_effect_is_looked_at(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})

    drained("order_fulfilment", order)

    seen = [r["tool"] for r in simulator.ledger(kind="arrived")]
    assert seen == [
        "reserve_stock",
        "create_shipment",
        "get_reservation",  # is it done already?
        "get_reservation",  # is it still so that it may be done?
        "release_stock",
        "get_reservation",  # is it done now?
    ]


@pytest.mark.requirement("S0-74", "S0-38", "S0-42")
@pytest.mark.parametrize(
    ("state", "ends"), [("picked", RunState.HANDOFF), ("released", RunState.COMPENSATED)]
)
def test_what_is_not_so_any_more_is_not_compensated_over(
    simulator: Simulator,
    drained: Callable[..., RunFacts],
    clock: Clock,
    order: dict[str, Any],
    state: str,
    ends: RunState,
) -> None:
    """Somebody else has used the reservation up: a person decides. Somebody else has released it: it is done."""
    simulator.plan(
        {"tool": "get_reservation", "mode": "query_down"}, {"tool": "create_shipment", "mode": "refuse"}
    )
    started = api.start_run(actor=AGENT, definition="order_fulfilment", input=order, start_key="once")
    drive_until_the_look(started.run_ref, simulator)
    reservation = api.run_facts(started.run_ref).action("reserve_stock").provider_ref
    simulator.post("/third-party", {"kind": "reservation", "id": reservation, "state": state})
    simulator.plan({"tool": "get_reservation", "mode": "ok"})

    facts = settle(started.run_ref, clock)

    assert facts.state is ends
    assert arrivals(simulator, "release_stock") == []
    made_up = facts.action("reserve_stock").compensation
    assert made_up is not None
    assert (
        made_up.state
        is {
            RunState.HANDOFF: CompensationState.FAILED,
            RunState.COMPENSATED: CompensationState.CONFIRMED,
        }[ends]
    )


def drive_until_the_look(ref: str, simulator: Simulator) -> None:
    """Drive a run in small steps until it wants to look at the effect that it is about to compensate."""
    claimed = ledger.claim_run(api.run_facts(ref).id, workers.enrol("stepwise"))
    assert claimed is not None
    claim, order = claimed
    world = World(simulator.systems)
    while isinstance(order, Call):
        order = ledger.advance(claim, perform(order, world))
    assert isinstance(order, Ask)
    ledger.advance(claim, perform(order, world), last=True)
    world.close()


# --- S0-75: a compensation that takes effect twice ---------------------------------------------------------------


@pytest.mark.requirement("S0-75", "S0-38")
@pytest.mark.usefixtures("published")
def test_a_compensation_that_may_take_effect_twice_is_not_published() -> None:
    keyless = contract_of("release_stock")
    keyless |= {"tool": "release_stock_twice", "version": 1}
    keyless["idempotency"] = {"support": "none"}
    api.publish_contract(contract_from_document(keyless), actor=OPERATOR)
    reserve = contract_of("reserve_stock")
    reserve["compensation"]["tool"] = "release_stock_twice"
    del reserve["compensation"]["already_done"]

    assert refused(workflow("order_fulfilment"), reserve) == {"W103"}


@pytest.mark.requirement("S0-75", "S0-38", "S2-5", "S2-15")
@pytest.mark.parametrize(
    "trouble",
    [{"mode": "reset", "applied": True}, {"mode": "reset"}, {"mode": "fail_before"}],
    ids=["applied, no answer", "no answer", "an error"],
)
def test_a_compensation_is_repeated_under_a_key_of_its_own_and_takes_effect_once(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], trouble: dict[str, Any]
) -> None:
    simulator.plan(
        {"tool": "create_shipment", "mode": "refuse"},
        {"tool": "release_stock", "attempts": [1], **trouble},
    )

    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.COMPENSATED
    assert effects(simulator, "release_stock") == 1
    keys = {record["key"] for record in arrivals(simulator, "release_stock")}
    action = facts.action("reserve_stock")
    assert action.compensation is not None
    assert keys == {action.compensation.key}
    assert action.key not in keys


# --- S0-76: irreversible, and no way to a person -------------------------------------------------------------------


@pytest.mark.requirement("S0-76", "S4-23")
@pytest.mark.usefixtures("published")
def test_an_irreversible_step_in_the_middle_or_without_a_query_is_not_published() -> None:
    early = workflow("bank_opening")
    early["steps"].insert(0, early["steps"].pop(3))
    early["steps"][0]["args"]["customer_no"] = "100001"
    early["steps"][0]["on_rejected"] = "handoff"
    assert "W101" in refused(early)

    mute = contract_of("send_notice")
    del mute["status_query"]
    for unanswered in ("no_answer", "server", "garbage"):
        mute["retry"].pop(unanswered, None)
    assert "W104" in refused(workflow("order_fulfilment"), mute)


@pytest.mark.requirement("S0-76", "S0-44", "S0-82", "S2-3")
def test_a_failure_behind_a_pivot_goes_to_a_person_with_what_the_contract_says(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    simulator.plan({"tool": "debit_fee", "mode": "refuse"})

    facts = drained("bank_opening", BANK)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.PIVOT
    assert facts.handoff.params["step"] == "send_opening_sms"
    assert facts.action("send_opening_sms").contract.escalation.to
    assert {"compensate", "mark_acceptable", "escalate"} <= set(api.next_allowed(facts))
    context = Handoff.objects.get(ref=facts.handoff.ref).context
    assert "send_opening_sms" in str(context)
    assert "charge_card_fee" in str(context)


# --- S0-77: nobody looks ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-77", "S2-16", "S2-20")
def test_the_sweep_says_which_alarms_are_in_force(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"}, {"tool": "release_stock", "mode": "refuse"})
    drained("order_fulfilment", order)
    clock.put_forward(10 * 60)
    sweep = Sweep()

    with capture_logs() as said:
        sweep.tick()
        sweep.tick()

    alarm = [line for line in said if line["event"] == "alarm"]
    assert ("compensation.dangling", "error", 1) in {(a["code"], a["log_level"], a["count"]) for a in alarm}
    # Once a minute, not at every look.
    assert len(alarm) == len({line["code"] for line in alarm})
    assert {one.code for one in alarms.in_force()} >= {line["code"] for line in alarm}


@pytest.mark.requirement("S0-77", "S2-16")
def test_a_comparison_is_due_every_hour_and_missed_when_none_comes_for_two(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, order: dict[str, Any]
) -> None:
    drained("order_fulfilment", order)
    world = World(simulator.systems)

    assert reconcile.due()
    reconcile.reconcile(world)
    assert not reconcile.due()
    clock.put_forward(59 * 60)
    assert not reconcile.due()
    clock.put_forward(61)
    assert reconcile.due()
    assert "reconciliation.overdue" not in {one.code for one in alarms.in_force()}
    clock.put_forward(3600)
    assert "reconciliation.overdue" in {one.code for one in alarms.in_force()}
    world.close()


@pytest.mark.requirement("S0-77", "S2-6")
def test_a_run_that_nobody_drives_is_told_of(
    published: None, clock: Clock, simulator: Simulator, order: dict[str, Any]
) -> None:
    api.start_run(actor=AGENT, definition="order_fulfilment", input=order, start_key="idle")
    assert "run.not_moving" not in {one.code for one in alarms.in_force()}

    clock.put_forward(31)

    assert "run.not_moving" in {one.code for one in alarms.in_force()}
