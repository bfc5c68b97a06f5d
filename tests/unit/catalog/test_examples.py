"""The example definitions: clean, true to their sources, and their end states can be read in the world."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.catalog.test_catalog import CONTRACTS, Caller, caller
from tools import lint
from tools.bindings import bind
from tools.contract import Condition, RecoveryClass
from tools.definition import Definition, OnFailure, StepIs
from tools.reader import read_definition

__all__ = ["caller"]

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCES = {
    "order_fulfilment.toml": "seed-003-order-fulfilment.json",
    "ticket_crm_notice.json": "seed-000-ticket-crm-notify.json",
    "bank_opening.toml": "seed-002-bank-account-opening.json",
}
DEFINITIONS = {name: read_definition(EXAMPLES / name) for name in SOURCES}
INPUTS: dict[str, dict[str, Any]] = {
    "order_fulfilment.toml": {"order": "O-7", "sku": "SKU-118", "qty": 2, "address": "Dock 4"},
    "ticket_crm_notice.json": {
        "customer_id": "C-7",
        "subject": "Late",
        "fields": {"tier": "gold"},
        "customer_mail": "someone@example.invalid",
        "text": "We are on it.",
    },
    "bank_opening.toml": {
        "application": "A-7",
        "name": "R. Example",
        "id_no": "AB123456",
        "limit": "5000.00",
        "phone": "+49 30 000000",
        "fee": "25.00",
    },
}

WARNED = {
    "order_fulfilment.toml": {("W204", ""), ("W205", "create_shipment"), ("W205", "send_notice")},
    "ticket_crm_notice.json": {("W204", ""), ("W205", "notify_customer")},
    "bank_opening.toml": {
        ("W201", "send_opening_sms"),
        ("W205", "send_opening_sms"),
        ("W205", "charge_card_fee"),
    },
}


def source_of(name: str) -> Any:
    return json.loads((EXAMPLES / "sources" / SOURCES[name]).read_text())


def run_through(caller: Caller, definition: Definition, given: Any, *, last: int | None = None) -> Any:
    """Make the steps' calls one after another; returns the scope that conditions are bound in."""
    scope: dict[str, Any] = {"input": given}
    for step in definition.steps[:last]:
        args = bind(step.args, scope)
        scope[f"steps.{step.id}.args"] = args
        scope[f"steps.{step.id}.result"] = caller.do(step.tool, args, f"{definition.name}/{step.id}")
    return scope


@pytest.mark.parametrize("name", SOURCES)
def test_an_example_is_publishable(name: str) -> None:
    findings = lint.check(DEFINITIONS[name], CONTRACTS)
    assert not lint.blocks(findings), findings
    said = {(finding.code, finding.step) for finding in findings}
    assert said == WARNED[name]


@pytest.mark.requirement("S0-34", "S0-36")
@pytest.mark.parametrize("name", SOURCES)
def test_an_example_keeps_steps_tools_compensations_and_queries_of_its_source(name: str) -> None:
    for step, origin in zip(DEFINITIONS[name].steps, source_of(name)["steps"], strict=True):
        contract = CONTRACTS[step.tool]
        assert (step.id, step.tool) == (origin["step"], origin["tool"])
        compensation = contract.compensation
        wanted = origin["compensation"]
        assert (compensation.tool if compensation else None) == (wanted["tool"] if wanted else None)
        assert contract.status_query is not None
        assert contract.status_query.tool == origin["status_query"]["tool"]
        irreversible = contract.recovery_class is RecoveryClass.IRREVERSIBLE
        assert irreversible == (origin["action_class"] == "irreversible")


def test_the_bank_flow_has_two_end_states_and_needs_no_signature() -> None:
    definition = DEFINITIONS["bank_opening.toml"]
    assert [state.id for state in definition.end_states] == ["all_confirmed", "all_compensated"]
    assert definition.on_failure is OnFailure.COMPENSATE
    for step in definition.steps:
        contract = CONTRACTS[step.tool]
        assert not contract.require_confirmation
        assert contract.compensation is None or contract.compensation.who == "automatic"


@pytest.mark.requirement("S0-23", "S0-25", "S0-43")
def test_a_refused_message_at_the_end_goes_to_a_person() -> None:
    for name in ("order_fulfilment.toml", "ticket_crm_notice.json"):
        assert DEFINITIONS[name].steps[-1].on_rejected is OnFailure.HANDOFF


@pytest.mark.parametrize("name", SOURCES)
def test_an_example_runs_through_in_the_world(caller: Caller, name: str) -> None:
    definition = DEFINITIONS[name]
    scope = run_through(caller, definition, INPUTS[name])
    assert {step.tool: caller.net(step.tool) for step in definition.steps} == dict.fromkeys(
        (step.tool for step in definition.steps), 1
    )
    business = str(bind(definition.business.reference, scope))
    assert caller.outside.effects(business).keys() == {step.tool for step in definition.steps}


@pytest.mark.requirement("S3-11")
def test_fulfilled_with_an_open_notice_is_read_from_stock_and_carrier(caller: Caller) -> None:
    definition = DEFINITIONS["order_fulfilment.toml"]
    state = next(state for state in definition.end_states if state.id == "notice_to_be_confirmed")
    scope = run_through(caller, definition, INPUTS["order_fulfilment.toml"], last=2)
    reads = [condition for condition in state.conditions if isinstance(condition, Condition)]
    assert [caller.holds(condition, scope) for condition in reads] == [True, True]
    shipment = scope["steps.create_shipment.result"]["shipment"]
    caller.do("cancel_shipment", {"shipment": shipment}, "by hand")
    assert [caller.holds(condition, scope) for condition in reads] == [True, False]
    allowed = [condition for condition in state.conditions if isinstance(condition, StepIs)]
    assert allowed[0].step == "send_notice"
    assert {"unknown", "rejected"} <= set(allowed[0].states)


@pytest.mark.requirement("S0-23", "S0-50")
def test_a_ticket_kept_for_a_notice_by_hand_has_to_carry_the_label(caller: Caller) -> None:
    definition = DEFINITIONS["ticket_crm_notice.json"]
    state = next(state for state in definition.end_states if state.id == "notice_by_hand")
    scope = run_through(caller, definition, INPUTS["ticket_crm_notice.json"], last=2)
    reads = [condition for condition in state.conditions if isinstance(condition, Condition)]
    assert [caller.holds(condition, scope) for condition in reads] == [True, False, True]
    ticket = scope["steps.open_ticket.result"]["ticket_id"]
    caller.do("label_ticket", {"ticket_id": ticket, "label": "notice-by-hand"}, "by hand")
    assert all(caller.holds(condition, scope) for condition in reads)
