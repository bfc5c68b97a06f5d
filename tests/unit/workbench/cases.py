"""Pictures of cases built from the shipped contracts and the order workflow, without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sagas.facts import (
    ActionFacts,
    Actor,
    ActorKind,
    CompensationFacts,
    FreezeFacts,
    HandoffFacts,
    RunFacts,
)
from sagas.states import ActionState, CompensationState, Direction, HandoffState, RunState
from tools.contract import Contract
from tools.reader import read_contract, read_definition

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
ORDER = read_definition(ROOT / "examples" / "order_fulfilment.toml")


def contract(tool: str) -> Contract:
    return read_contract(ROOT / "tools" / "catalog" / f"{tool}.toml")


def person(name: str, role: str = "operator") -> Actor:
    return Actor(kind=ActorKind.HUMAN, id=name, name=name.title(), role=role)


AGENT = Actor(kind=ActorKind.AGENT, id="agent:maya/triage", name="triage", role="agent")


def action(position: int, tool: str, state: str, **changes: Any) -> ActionFacts:
    """One action of the order workflow; a confirmed one carries its registered compensation."""
    rules = contract(tool)
    facts = ActionFacts(
        id=position,
        step=tool,
        position=position,
        item="",
        generation=1,
        tool=tool,
        contract=rules,
        state=ActionState(state),
        version=3,
        key=f"run_1/{tool}/1",
        args={"order": "O-1"},
        result={"ok": True} if state == "confirmed" else None,
        provider_ref="",
        attempts_used=1,
        confirm_seq=position if state == "confirmed" else None,
        prior_state=None,
        prior_version="",
        prior_read_at=None,
        sent_at=NOW - timedelta(minutes=9),
        settled_at=None,
        settled_by="",
        due_at=None,
        not_found_counts_at=NOW - timedelta(minutes=5),
        unknown_since=None,
        queries=0,
        error_class="",
        error_detail="",
    )
    if rules.compensation is not None and state in ("confirmed", "unknown", "compensated"):
        facts = replace(facts, compensation=compensation(facts))
    return replace(facts, **changes)


def compensation(of: ActionFacts, state: str = "registered") -> CompensationFacts:
    rules = of.contract.compensation
    assert rules is not None
    return CompensationFacts(
        id=of.id,
        action_id=of.id,
        key=f"{of.key}/c",
        tool=rules.tool,
        contract=contract(rules.tool),
        kind=rules.kind,
        who=rules.who,
        state=CompensationState(state),
        version=1,
        args={"order": "O-1"},
        attempts_used=0,
        registered_at=NOW,
        sent_at=None,
        settled_at=None,
        due_at=None,
        error_class="",
        error_detail="",
        result=None,
        provider_ref="",
        queries=0,
        ordered_by="",
    )


def handoff(**changes: Any) -> HandoffFacts:
    facts = HandoffFacts(
        id=1,
        ref="HF-2001",
        state=HandoffState.OPEN,
        reason="unknown_unresolved",
        params={},
        opened_at=NOW - timedelta(minutes=8),
        due_at=NOW + timedelta(minutes=30),
        escalation=0,
        claimed_by="",
        claimed_by_name="",
        claimed_at=None,
        claim_until=None,
        resolved_at=None,
        resolution="",
        linked=False,
    )
    return replace(facts, **changes)


def claimed(by: str, *, minutes_left: int = 10) -> HandoffFacts:
    return handoff(
        state=HandoffState.CLAIMED,
        claimed_by=by,
        claimed_by_name=by.title(),
        claimed_at=NOW - timedelta(minutes=3),
        claim_until=NOW + timedelta(minutes=minutes_left),
    )


def frozen(scope: str, applies_to: str = "all") -> FreezeFacts:
    return FreezeFacts(id=7, scope=scope, applies_to=applies_to, reason="the CRM moves", by="Ada", at=NOW)


def case(third: str = "unknown", **changes: Any) -> RunFacts:
    """An order in handoff: stock and shipment confirmed, the notice in the given state."""
    facts = RunFacts(
        id=1,
        ref="run_1",
        state=RunState.HANDOFF,
        direction=Direction.FORWARD,
        version=8,
        fence=1,
        owner="",
        definition=ORDER,
        definition_digest=ORDER.digest,
        definition_id=1,
        input={"order": "O-1"},
        intent="",
        business_ref="O-1",
        title="Order O-1",
        customer="",
        amount="129.00",
        currency="EUR",
        team=ORDER.team,
        started_at=NOW - timedelta(minutes=10),
        started_by="agent:maya/triage",
        changed_at=NOW - timedelta(minutes=8),
        finished_at=None,
        effects_left=("reserve_stock", "create_shipment"),
        actions=(
            action(1, "reserve_stock", "confirmed"),
            action(2, "create_shipment", "confirmed"),
            action(3, "send_notice", third),
        ),
        handoff=handoff(),
        freezes=(),
        now=NOW,
    )
    return replace(facts, **changes)
