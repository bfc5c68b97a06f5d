"""Facts made by hand for tests of what is shown: the shipped contracts, any state, no database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sagas.facts import (
    ActionFacts,
    CompensationFacts,
    Counts,
    EntryFacts,
    EvidenceFacts,
    HandoffFacts,
    QueueRow,
    RunFacts,
    StripMark,
)
from sagas.states import ActionState, CompensationState, Direction, HandoffState, RunState
from tools.contract import Contract
from tools.definition import Definition
from tools.reader import read_contract, read_definition
from workbench.web.presenters.clock import Clock

ROOT = Path(__file__).resolve().parent.parent
NOW = datetime(2026, 3, 14, 10, 42, tzinfo=UTC)


@cache
def contract(tool: str) -> Contract:
    """A shipped contract."""
    return read_contract(ROOT / "tools" / "catalog" / f"{tool}.toml")


@cache
def definition() -> Definition:
    """The shipped order workflow."""
    return read_definition(ROOT / "examples" / "order_fulfilment.toml")


def action(step: str, position: int, state: ActionState, **given: Any) -> ActionFacts:
    """One step of the order workflow in a state."""
    facts = ActionFacts(
        id=position,
        step=step,
        position=position,
        item="",
        generation=1,
        tool=step,
        contract=contract(step),
        state=state,
        version=1,
        key=f"run_1.{step}.1",
        args={"order": "O-1", "sku": "SKU-1", "qty": 2, "address": "1 Quay"},
        result=None,
        provider_ref="",
        attempts_used=0 if state is ActionState.NOT_STARTED else 1,
        confirm_seq=None,
        prior_state=None,
        prior_version="",
        prior_read_at=None,
        sent_at=None if state is ActionState.NOT_STARTED else NOW - timedelta(minutes=10),
        settled_at=None,
        settled_by="",
        due_at=None,
        not_found_counts_at=None,
        unknown_since=None,
        queries=0,
        error_class="",
        error_detail="",
    )
    return replace(facts, **given)


def compensation(of: ActionFacts, state: CompensationState, **given: Any) -> CompensationFacts:
    """The registered compensation of a step in a state."""
    tool = of.contract.compensation.tool if of.contract.compensation else "release_stock"
    facts = CompensationFacts(
        id=of.id,
        action_id=of.id,
        key=f"{of.key}:compensate",
        tool=tool,
        contract=contract(tool),
        kind="restores",
        who="automatic",
        ordered_by="",
        state=state,
        version=1,
        args=None,
        attempts_used=1,
        registered_at=NOW - timedelta(minutes=11),
        sent_at=None,
        settled_at=None,
        due_at=None,
        error_class="",
        error_detail="",
        result=None,
        provider_ref="",
        queries=0,
    )
    return replace(facts, **given)


def handoff(reason: str = "unknown_unresolved", **given: Any) -> HandoffFacts:
    """An open, unclaimed handoff that is due in half an hour."""
    facts = HandoffFacts(
        id=1,
        ref="HF-2001",
        state=HandoffState.OPEN,
        reason=reason,
        params={"tool": "send_notice"},
        opened_at=NOW - timedelta(minutes=5),
        due_at=NOW + timedelta(minutes=31),
        escalation=0,
        claimed_by="",
        claimed_by_name="",
        claimed_at=None,
        claim_until=None,
        resolved_at=None,
        resolution="",
        linked=False,
    )
    return replace(facts, **given)


def run(*actions: ActionFacts, **given: Any) -> RunFacts:
    """A run in handoff with these steps; the order flow with an unknown notice when none is given."""
    made = actions or (
        action("reserve_stock", 1, ActionState.CONFIRMED, provider_ref="R-1"),
        action("create_shipment", 2, ActionState.CONFIRMED, provider_ref="SH-1"),
        action("send_notice", 3, ActionState.UNKNOWN, queries=2),
    )
    opened = given.pop("handoff", handoff())
    facts = RunFacts(
        id=1,
        ref="run_1",
        state=RunState.HANDOFF,
        direction=Direction.FORWARD,
        version=7,
        fence=1,
        owner="",
        definition=definition(),
        definition_digest="d" * 64,
        input={"order": "O-1"},
        intent="",
        business_ref="O-1",
        title="",
        customer="C-1",
        amount="86.40",
        currency="EUR",
        team="fulfilment",
        started_at=NOW - timedelta(minutes=11),
        started_by="orders",
        changed_at=NOW,
        finished_at=None,
        effects_left=(),
        actions=made,
        handoff=opened,
        freezes=(),
        now=NOW,
        handoffs=(opened,),
    )
    return replace(facts, **given)


def row(*states: str, **given: Any) -> QueueRow:
    """A row of the queue whose strip has these states; every step is compensable unless a class is given."""
    kept = given.pop("classes", ("compensable",) * len(states))
    marks = tuple(
        StripMark(position=number, step=f"s{number}", tool=f"tool_{number}", state=state, recovery_class=kind)
        for number, (state, kind) in enumerate(zip(states, kept, strict=True), 1)
    )
    facts = QueueRow(
        id=1,
        ref="HF-2001",
        run_ref="run_1",
        version=7,
        state="open",
        title="Order shipped, notice unconfirmed",
        business_ref="O-1",
        customer="C-1",
        amount="86.40",
        currency="EUR",
        workflow="orders",
        workflow_version=1,
        reason="unknown_unresolved",
        params={},
        level="medium",
        irreversible_confirmed=False,
        strip=marks,
        counts=Counts(ok=0, failed=0, unknown=0, irreversible=0, compensable=0),
        due_at=NOW + timedelta(minutes=31),
        escalation=0,
        claimed_by="",
        claimed_by_name="",
        claim_until=None,
    )
    return replace(facts, **given)


def entry(name: str, **given: Any) -> EntryFacts:
    """An entry by the engine unless an actor is given."""
    facts = EntryFacts(
        id=1,
        seq=1,
        name=name,
        at=NOW,
        actor_kind="system",
        actor_id="engine",
        actor_name="Amends",
        role="executor",
        reason="",
        step="send_notice",
        machine="",
        source="",
        target="",
        before=None,
        after=None,
        command_id="",
        saw_version=None,
    )
    return replace(facts, **given)


def evidence(**given: Any) -> EvidenceFacts:
    """A status query without an answer."""
    facts = EvidenceFacts(
        source="query", verdict="no_answer", reference="", detail="status 503", body=None, at=NOW, by="engine"
    )
    return replace(facts, **given)


def clock() -> Clock:
    """Ten forty-two UTC, read in Berlin."""
    return Clock(now=NOW, zone=ZoneInfo("Europe/Berlin"))
