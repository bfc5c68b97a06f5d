"""The example definitions: clean, true to their sources, and their end states can be read in the world."""

import json
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.catalog.test_catalog import CONTRACTS, NEWEST, UNCONFIRMED, VERSIONS, Caller, caller
from tools import lint
from tools.bindings import bind
from tools.contract import Condition, Contract, ErrorClass, RecoveryClass, Who
from tools.definition import Definition, OnFailure, Step, StepIs
from tools.outcome import OutcomeKind, classify
from tools.reader import read_definition

__all__ = ["caller"]

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCES = {
    "order_fulfilment.toml": "seed-003-order-fulfilment.json",
    "ticket_crm_notice.json": "seed-000-ticket-crm-notify.json",
    "bank_opening.toml": "seed-002-bank-account-opening.json",
    "bank_opening_signed.toml": "seed-002-bank-account-opening.json",
    "bank_opening_outbox.toml": "seed-002-bank-account-opening-outbox.json",
    "travel_booking.toml": "seed-004-travel.json",
    "order_checkout.toml": "conductor-checkout.json",
    "trip_package.toml": "camunda-trip.json",
}
# What a tool of a source is called here; all others keep their names.
RENAMED = {
    **{"charge": "charge_card", "refund": "refund_payment", "find_charge": "find_payment"},
    **{"reserve_inventory": "reserve_stock", "release_inventory": "release_stock"},
    **{"charge_payment": "charge_card", "book_shipment": "create_shipment", "reserve_car": "book_car"},
    **{"get_car": "get_booking", "get_hotel": "get_booking", "get_flight": "get_booking"},
}
SIGNED = ("bank_opening_signed.toml", "travel_booking.toml", "order_checkout.toml", "trip_package.toml")
FILES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in {".toml", ".json"})
DEFINITIONS = {name: read_definition(EXAMPLES / name) for name in FILES}
BANK = {
    **{"application": "A-7", "name": "R. Example", "id_no": "AB123456"},
    **{"limit": "5000.00", "phone": "+49 30 000000", "fee": "25.00"},
}
MAIL = {"customer_mail": "someone@example.invalid", "text": "We are on it."}
ORDER = {"order": "O-7", "sku": "SKU-118", "qty": 2}
APPROVAL = {"customer": "C-7", "kind": "credit", "text": "Raise the limit to 500."}
INPUTS: dict[str, dict[str, Any]] = {
    "approval_crm.toml": {**APPROVAL, "fields": {"limit": "pending"}},
    "bank_opening.toml": BANK,
    "bank_opening_outbox.toml": BANK,
    "bank_opening_signed.toml": BANK,
    "batch_relabel.toml": {"batch": "B-7", "label": "sale", "items": [{"id": "ART-7"}]},
    "device_rollout.toml": {
        "change": "CHG-7",
        "config": {"vlan": 20, "mtu": 9000},
        "devices": [f"sw-fra2-{n:02d}" for n in range(1, 13)],
    },
    "line_activation.toml": {"customer": "C-7", "product": "voice", "delay_ms": 60, **MAIL},
    "note_and_approval.toml": {**APPROVAL, "note": "A higher limit is being decided."},
    "order_checkout.toml": {**ORDER, "amount": "86.40", "address": "Dock 4"},
    "order_fulfilment.toml": {**ORDER, "address": "Dock 4"},
    "order_intake.toml": {**ORDER, "text": "Your order is placed."},
    "quota_record.toml": {"customer": "C-7", "units": 5, "subject": "usage/7"},
    "refund_crm.toml": {
        **{"order": "O-7", "customer": "C-7", "payment": "PAID-7"},
        **{"amount": "86.40", "reason": "Parcel lost"},
    },
    "ticket_change_notice.toml": {
        **{"ticket_id": "T-7", "customer": "C-7", **MAIL},
        "fields": {"queue": "second line", "priority": "high"},
    },
    "ticket_crm_notice.json": {"customer_id": "C-7", "subject": "Late", "fields": {"tier": "gold"}, **MAIL},
    "travel_booking.toml": {"trip": "TR-7", "flight": "AB-400", "hotel": "HARBOUR-12", "amount": "640.00"},
    "trip_package.toml": {"trip": "TR-7", "car": "COMPACT", "hotel": "HARBOUR-12", "flight": "AB-400"},
}
# Beside W205 for external effects: an irreversible send in a short flow, and a write that follows one on purpose.
WARNED = {
    **{
        name: {"W204"} for name in ("order_fulfilment.toml", "ticket_crm_notice.json", "line_activation.toml")
    },
    **{name: {"W204"} for name in ("order_intake.toml", "ticket_change_notice.toml")},
    **{name: {"W201"} for name in ("bank_opening.toml", "bank_opening_signed.toml")},
    "refund_crm.toml": {"W201", "W204"},
}
WHOLE = {"all_confirmed", "all_compensated", "not_refunded"}
PARTLY = sorted(
    name
    for name in FILES
    if name != "ticket_crm_notice.json"
    and any(state.id not in WHOLE for state in DEFINITIONS[name].end_states)
)


def source_of(name: str) -> Any:
    return json.loads((EXAMPLES / "sources" / SOURCES[name]).read_text())


def contracts_of(name: str) -> dict[str, Contract]:
    """The contracts that a definition pins: the versions its steps name, of everything else the newest."""
    named = {(step.tool, step.contract_version) for step in DEFINITIONS[name].steps}
    return NEWEST | {one.tool: one for one in VERSIONS if (one.tool, one.version) in named}


def in_order(definition: Definition) -> list[Step]:
    return sorted(definition.steps, key=lambda step: step.held)


def run_through(caller: Caller, definition: Definition, given: Any, *, last: int | None = None) -> Any:
    """Make the steps' calls one after another; returns the scope that conditions are bound in."""
    scope: dict[str, Any] = {"input": given, "run": {"ref": "run_7", "business_ref": "7"}}
    for step in in_order(definition)[:last]:
        args = bind(step.args, scope)
        scope[f"steps.{step.id}.args"] = args
        scope[f"steps.{step.id}.prior"], headers = caller.prior_of(step.tool, args)
        key = f"{definition.name}/{step.id}"
        scope[f"steps.{step.id}.result"] = caller.do(step.tool, args, key, **headers)
    return scope


def reads_of(definition: Definition, state_id: str) -> list[Condition]:
    """The conditions of an end state that are about the world."""
    state = next(state for state in definition.end_states if state.id == state_id)
    return [condition for condition in state.conditions if isinstance(condition, Condition)]


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_publishable(name: str) -> None:
    findings = lint.check(DEFINITIONS[name], contracts_of(name))
    assert not lint.blocks(findings), findings
    assert {finding.code for finding in findings} - {UNCONFIRMED} == WARNED.get(name, set())
    assert (EXAMPLES / name).stem == DEFINITIONS[name].name


@pytest.mark.parametrize("name", FILES)
def test_an_example_has_a_chinese_title_deadlines_and_ends_that_tell_it_apart(name: str) -> None:
    definition = DEFINITIONS[name]
    assert definition.titles["zh-hans"]
    assert {"default", "unknown_unresolved", "compensation_failed"} <= definition.deadlines.keys()
    assert {"all_confirmed"} < {state.id for state in definition.end_states}
    assert definition.business.reference


@pytest.mark.requirement("S0-34", "S0-36")
@pytest.mark.parametrize("name", SOURCES)
def test_an_example_keeps_steps_tools_compensations_and_queries_of_its_source(name: str) -> None:
    def ours(tool: str) -> str:
        return RENAMED.get(tool, tool)

    for step, origin in zip(DEFINITIONS[name].steps, source_of(name)["steps"], strict=True):
        contract = contracts_of(name)[step.tool]
        assert (step.id, step.tool) == (origin["step"], ours(origin["tool"]))
        compensation = contract.compensation
        wanted = origin["compensation"]
        assert (compensation.tool if compensation else None) == (ours(wanted["tool"]) if wanted else None)
        assert contract.status_query is not None
        assert contract.status_query.tool == ours(origin["status_query"]["tool"])
        irreversible = contract.recovery_class is RecoveryClass.IRREVERSIBLE
        assert irreversible == (origin["action_class"] == "irreversible")
        if name in SIGNED:
            signed = compensation is not None and compensation.who is Who.APPROVAL
            assert signed == origin["compensation_needs_approval"], step.id


@pytest.mark.requirement("S2-9")
def test_a_stored_message_goes_out_last_and_only_after_everything_else() -> None:
    for name in ("bank_opening_outbox.toml", "order_intake.toml"):
        steps = DEFINITIONS[name].steps
        assert [step.held for step in steps] == [False] * (len(steps) - 1) + [True]
        assert steps[-2].tool == "queue_message"
        last = CONTRACTS[steps[-1].tool]
        assert last.recovery_class is RecoveryClass.IRREVERSIBLE


def test_the_bank_flow_has_two_end_states_and_needs_no_signature() -> None:
    definition = DEFINITIONS["bank_opening.toml"]
    assert [state.id for state in definition.end_states] == ["all_confirmed", "all_compensated"]
    assert definition.on_failure is OnFailure.COMPENSATE
    for step in definition.steps:
        contract = CONTRACTS[step.tool]
        assert not contract.require_confirmation
        assert contract.compensation is None or contract.compensation.who == "automatic"


@pytest.mark.requirement("S0-23", "S0-25", "S0-43")
@pytest.mark.parametrize("name", PARTLY)
def test_a_refusal_at_the_end_that_the_business_can_live_with_goes_to_a_person(name: str) -> None:
    definition = DEFINITIONS[name]
    refused = in_order(definition)[-1].on_rejected
    assert (
        name in {"order_checkout.toml", "trip_package.toml"}
        or (refused or definition.on_failure) is OnFailure.HANDOFF
    )


@pytest.mark.requirement("S0-90", "S1-26")
@pytest.mark.parametrize("name", FILES)
def test_an_example_runs_through_in_the_world(caller: Caller, name: str) -> None:
    definition = DEFINITIONS[name]
    scope = run_through(caller, definition, INPUTS[name])
    used = Counter(step.tool for step in definition.steps)
    assert {tool: caller.net(tool) for tool in used} == used
    business = definition.business
    cases = {bind(business.reference, scope), scope["input"].get("customer", "")}
    assert {tool for case in cases if case for tool in caller.outside.effects(str(case))} == used.keys()
    assert all(caller.holds(condition, scope) for condition in reads_of(definition, "all_confirmed"))
    assert caller.outside.balanced()


@pytest.mark.requirement("S2-10", "S0-39")
@pytest.mark.parametrize("name", FILES)
def test_what_comes_before_the_irreversible_step_can_be_compensated_in_reverse(
    caller: Caller, name: str
) -> None:
    definition = DEFINITIONS[name]
    steps = list(takewhile(lambda step: CONTRACTS[step.tool].compensation is not None, in_order(definition)))
    scope = run_through(caller, definition, INPUTS[name], last=len(steps))
    for step in reversed(steps):
        compensation = CONTRACTS[step.tool].compensation
        assert compensation is not None
        forward = f"{definition.name}/{step.id}"
        own = {part: scope[f"steps.{step.id}.{part}"] for part in ("args", "result", "prior")}
        own |= {"key": f"{forward}/c", "forward_key": forward}
        assert all(caller.holds(condition, own) for condition in compensation.preconditions), step.id
        back = caller.see(compensation.tool, bind(compensation.args, own), f"{forward}/c")
        assert classify(CONTRACTS[compensation.tool], back).kind is OutcomeKind.CONFIRMED
        assert caller.holds(compensation.verify, own), step.id
    assert [step.tool for step in steps if caller.net(step.tool)] == []
    if name in {"order_checkout.toml", "travel_booking.toml"}:
        assert all(caller.holds(condition, scope) for condition in reads_of(definition, "all_compensated"))
    assert caller.outside.balanced()


@pytest.mark.requirement("S0-23", "S0-25")
@pytest.mark.parametrize("name", PARTLY)
def test_what_the_business_can_live_with_is_read_from_the_world_and_its_follow_ups_can_be_called(
    caller: Caller, name: str
) -> None:
    definition = DEFINITIONS[name]
    scope = run_through(caller, definition, INPUTS[name], last=len(definition.steps) - 1)
    for state in definition.end_states:
        if state.id in WHOLE:
            continue
        assert all(caller.holds(condition, scope) for condition in reads_of(definition, state.id))
        for follow_up in state.follow_ups:
            contract = next(
                one
                for one in VERSIONS
                if (one.tool, one.version) == (follow_up.tool, follow_up.contract_version)
            )
            assert contract.recovery_class is not RecoveryClass.IRREVERSIBLE
            caller.do(follow_up.tool, bind(follow_up.args, scope), f"{state.id}/{follow_up.id}")


@pytest.mark.requirement("S0-24")
def test_a_refund_that_the_record_does_not_show_leaves_a_task_and_keeps_tickets_open(caller: Caller) -> None:
    definition = DEFINITIONS["refund_crm.toml"]
    scope = run_through(caller, definition, INPUTS["refund_crm.toml"], last=3)
    state = next(state for state in definition.end_states if state.id == "refund_kept_record_open")
    for follow_up in state.follow_ups:
        caller.do(follow_up.tool, bind(follow_up.args, scope), follow_up.id)
    assert caller.see("get_task", {"kind": "crm_repair", "about": "C-7"}).body["state"] == "open"
    closing = classify(CONTRACTS["close_ticket"], caller.see("close_ticket", {"ticket_id": "T-7"}, "k"))
    assert (closing.kind, closing.error_class) == (OutcomeKind.REJECTED, ErrorClass.CONFLICT)
    caller.do("lift_closing_block", {"account": "C-7"}, "k-lift")
    caller.do("close_ticket", {"ticket_id": "T-7"}, "k")


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
