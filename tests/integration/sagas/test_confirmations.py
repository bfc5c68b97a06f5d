"""A forward call whose contract wants it confirmed: asked, signed, refused, left out, expired, and never without."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sagas import api
from sagas.errors import NotAllowed
from sagas.facts import Actor, ActorKind, PermitFacts, RunFacts
from sagas.models import Action
from sagas.states import ActionState, CompensationState, PermitState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, OPERATOR, drain, effects, settle
from tests.integration.sagas.test_failures import BANK
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from workbench.api import documents

ROOT = Path(__file__).resolve().parents[3]
PRIYA = Actor(kind=ActorKind.HUMAN, id="user:2", name="Priya", role="approver")
MOVE = {
    "customer_id": "C-7719",
    "subject": "Change of address",
    "fields": {"city": "Kiel"},
    "customer_mail": "customer@example.org",
    "text": "We have changed your address.",
}


def publish(workflow: str, example: str, tool: str, **of_the_step: Any) -> None:
    """An example whose `tool` wants every call confirmed."""
    contract = copy.deepcopy(read_contract(ROOT / "tools" / "catalog" / f"{tool}.toml").document)
    contract |= {"version": 91, "require_confirmation": True}
    api.publish_contract(contract_from_document(contract), actor=OPERATOR)
    definition = copy.deepcopy(read_definition(ROOT / "examples" / example).document)
    definition |= {"name": workflow, "version": 1}
    step = next(step for step in definition["steps"] if step["tool"] == tool)
    step |= {"contract_version": 91, **of_the_step}
    api.publish_definition(definition_from_document(definition), actor=OPERATOR)


@pytest.fixture
def asked(published: None, simulator: Simulator, clock: Clock) -> RunFacts:
    """A run of the bank flow that waits for a signature before it grants the credit line."""
    publish("bank_confirmed", "bank_opening.toml", "allocate_limit")
    return begin("bank_confirmed", BANK)


def begin(workflow: str, given: dict[str, Any]) -> RunFacts:
    started = api.start_run(actor=AGENT, definition=workflow, input=given, start_key=workflow)
    drain()
    return api.run_facts(started.run_ref)


def permit_of(facts: RunFacts, step: str = "grant_credit_line") -> PermitFacts:
    permit = facts.action(step).permit
    assert permit is not None
    return permit


def sign(permit: PermitFacts) -> None:
    by: dict[str, Any] = {"actor": PRIYA, "command_id": f"sign-{permit.ref}", "reason": "I have seen it"}
    with api.transaction(), api.signoff_desk(permit.ref, **by) as desk:
        desk.sign(permit.ref)


def refuse(permit: PermitFacts) -> None:
    by: dict[str, Any] = {
        "actor": PRIYA,
        "command_id": f"refuse-{permit.ref}",
        "reason": "the limit is too high",
    }
    with api.transaction(), api.signoff_desk(permit.ref, **by) as desk:
        desk.reject(permit.ref)


@pytest.mark.requirement("S1-4", "S4-25", "S0-7")
def test_the_call_waits_for_a_signature_and_nothing_is_sent(simulator: Simulator, asked: RunFacts) -> None:
    assert asked.state is RunState.AWAITING_APPROVAL
    assert asked.action("grant_credit_line").state is ActionState.PREPARED
    assert effects(simulator, "allocate_limit") == 0
    (row,) = api.signoffs().rows
    assert (row.ref, row.forward, row.tool) == (permit_of(asked).ref, True, "allocate_limit")
    assert ("agent:shop", "Shop agent") in row.requesters
    told = next(one for one in documents.run(asked)["actions"] if one["name"] == "grant_credit_line")
    assert told["approval"]["state"] == "requested"


@pytest.mark.requirement("S1-4")
def test_a_signature_lets_the_call_go_out_once_and_is_used_up(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    sign(permit_of(asked))
    facts = settle(asked.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, "allocate_limit") == 1
    assert permit_of(facts).state is PermitState.CONSUMED
    with (
        pytest.raises(NotAllowed),
        api.transaction(),
        api.signoff_desk(permit_of(facts).ref, actor=PRIYA) as desk,
    ):
        desk.sign(permit_of(facts).ref)


def test_a_call_that_is_tried_again_under_its_key_needs_no_second_signature_while_the_first_is_fresh(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    simulator.plan({"tool": "allocate_limit", "mode": "refuse", "status": 503, "attempts": [1]})
    sign(permit_of(asked))
    facts = settle(asked.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, "allocate_limit") == 1
    assert facts.action("grant_credit_line").attempts_used == 2
    assert permit_of(facts).ref == permit_of(asked).ref


@pytest.mark.requirement("S1-18")
def test_a_refusal_is_a_definite_failure_and_what_came_before_is_compensated(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    refuse(permit_of(asked))
    facts = settle(asked.ref, clock)

    assert facts.state is RunState.COMPENSATED
    action = facts.action("grant_credit_line")
    assert action.state is ActionState.REJECTED
    assert action.error_detail == "Priya did not sign: the limit is too high"
    assert action.compensation is not None
    assert action.compensation.state is CompensationState.VOIDED
    assert effects(simulator, "allocate_limit") == 0
    assert [record["tool"] for record in simulator.ledger(kind="effect")][-2:] == [
        "withdraw_file",
        "release_customer_no",
    ]


@pytest.mark.requirement("S1-18", "S3-13")
def test_a_step_that_may_be_left_out_is_left_out_and_the_agent_is_told_why(
    published: None, simulator: Simulator, clock: Clock
) -> None:
    publish("bank_optional", "bank_opening.toml", "debit_fee", if_not_approved="skip")
    asked = begin("bank_optional", BANK)
    refuse(permit_of(asked, "charge_card_fee"))
    facts = settle(asked.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert facts.action("charge_card_fee").state is ActionState.SKIPPED
    assert effects(simulator, "debit_fee") == 0
    told = next(one for one in documents.run(facts)["actions"] if one["name"] == "charge_card_fee")
    assert told["state"] == "skipped"
    assert told["approval"]["state"] == "rejected"
    assert told["approval"]["reason"] == "the limit is too high"


def test_silence_is_not_a_signature_and_a_person_may_ask_again(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    clock.put_forward(16 * 60)
    facts = settle(asked.ref, clock)
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.APPROVAL_EXPIRED
    assert effects(simulator, "allocate_limit") == 0
    assert api.targets(facts, "retry") == ("grant_credit_line",)

    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="ask once more") as desk:
        desk.retry("grant_credit_line")
    drain()
    again = api.run_facts(asked.ref)
    assert again.state is RunState.AWAITING_APPROVAL
    assert permit_of(again).ref != permit_of(asked).ref
    assert ("user:1", "Maya") in permit_of(again).requesters

    sign(permit_of(again))
    assert settle(asked.ref, clock).state is RunState.COMPLETED
    assert effects(simulator, "allocate_limit") == 1


def test_a_signature_that_was_not_used_in_time_is_asked_for_again(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    with api.transaction():
        freeze = api.freeze(actor=OPERATOR, reason="stop for a moment")
    sign(permit_of(asked))
    drain()
    assert effects(simulator, "allocate_limit") == 0
    clock.put_forward(16 * 60)
    with api.transaction():
        api.unfreeze(actor=PRIYA, freeze_id=freeze, reason="go on")
    clock.put_forward(1)
    drain()

    again = api.run_facts(asked.ref)
    assert again.state is RunState.AWAITING_APPROVAL
    assert permit_of(again).ref != permit_of(asked).ref
    assert effects(simulator, "allocate_limit") == 0


@pytest.mark.requirement("S1-12")
def test_who_said_no_to_an_earlier_request_has_not_worked_on_the_next_one(
    published: None, simulator: Simulator, clock: Clock
) -> None:
    publish("bank_to_a_person", "bank_opening.toml", "allocate_limit")
    definition = read_definition(ROOT / "examples" / "bank_opening.toml").document
    definition = copy.deepcopy(definition) | {
        "name": "bank_to_a_person",
        "on_failure": "handoff",
        "version": 2,
    }
    step = next(step for step in definition["steps"] if step["tool"] == "allocate_limit")
    step["contract_version"] = 91
    api.publish_definition(definition_from_document(definition), actor=OPERATOR)
    asked = begin("bank_to_a_person", BANK)
    refuse(permit_of(asked))
    drain()
    handoff = api.run_facts(asked.ref).handoff
    assert handoff is not None
    other = {**dict(asked.action("grant_credit_line").args or {}), "amount": "400.00"}
    with api.transaction(), api.desk(handoff.ref, actor=OPERATOR, reason="a lower limit") as desk:
        desk.edit_and_retry("grant_credit_line", args=other)
    drain()

    again = permit_of(api.run_facts(asked.ref))
    assert ("user:1", "Maya") in again.requesters
    assert PRIYA.id not in {who for who, _name in again.requesters}


@pytest.mark.requirement("S1-10", "S1-12")
def test_what_changed_while_it_was_thought_over_voids_the_signature(
    published: None, simulator: Simulator, clock: Clock
) -> None:
    publish("address_confirmed", "ticket_crm_notice.json", "update_account")
    asked = begin("address_confirmed", MOVE)
    first = permit_of(asked, "update_crm")
    sign(first)
    simulator.post("/third-party", {"kind": "account", "id": "C-7719", "fields": {"city": "Bremen"}})
    drain()

    facts = api.run_facts(asked.ref)
    second = permit_of(facts, "update_crm")
    assert facts.state is RunState.AWAITING_APPROVAL
    assert second.ref != first.ref
    assert second.digest != first.digest
    assert effects(simulator, "update_account") == 0
    names = [(entry.name, entry.target) for entry in api.entries(asked.ref)]
    assert ("approval.lapsed", "withdrawn") in names

    sign(second)
    assert settle(asked.ref, clock).state is RunState.COMPLETED
    assert effects(simulator, "update_account") == 1


def test_a_signature_for_other_arguments_does_not_count(
    simulator: Simulator, asked: RunFacts, clock: Clock
) -> None:
    sign(permit_of(asked))
    action = Action.objects.get(run__ref=asked.ref, tool="allocate_limit")
    Action.objects.filter(pk=action.pk).update(args={"amount": "999999.00"})
    drain()

    assert effects(simulator, "allocate_limit") == 0
    again = api.run_facts(asked.ref)
    assert again.state is RunState.AWAITING_APPROVAL
    assert permit_of(again).ref != permit_of(asked).ref


@pytest.mark.requirement("S4-21")
def test_a_run_that_is_stopped_while_it_waits_takes_its_request_back(
    simulator: Simulator, asked: RunFacts, clock: Clock, drained: Callable[..., RunFacts]
) -> None:
    clock.put_forward(16 * 60)
    facts = settle(asked.ref, clock)
    assert facts.handoff is not None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="ask once more") as desk:
        desk.retry("grant_credit_line")
    drain()
    waiting = api.run_facts(asked.ref)
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="no longer wanted") as desk:
        desk.stop_and_compensate()
    done = settle(asked.ref, clock)

    assert done.state is RunState.COMPENSATED
    assert permit_of(done).ref == permit_of(waiting).ref
    assert permit_of(done).state is PermitState.WITHDRAWN
    with (
        pytest.raises(NotAllowed),
        api.transaction(),
        api.signoff_desk(permit_of(done).ref, actor=PRIYA) as desk,
    ):
        desk.sign(permit_of(done).ref)
