"""Runs go on by the versions that they pinned; what is out of reach goes to a person, and nothing is passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks

from sagas import api, executor, retirement
from sagas.errors import Retired, StillNeeded
from sagas.facts import RunFacts
from sagas.models import Run
from sagas.orders import Purpose
from sagas.states import ActionState, CompensationState, RunState
from tests.integration.sagas.conftest import AGENT, OPERATOR, ROOT, drain, effects, settle
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage
from tools.contract import Contract
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition

__all__ = ["clear_stage", "stage"]


def contract(tool: str, version: int) -> Contract:
    """The shipped contract of a tool under another version."""
    shipped = read_contract(ROOT / "tools" / "catalog" / f"{tool}.toml")
    return contract_from_document({**shipped.document, "version": version})


@pytest.fixture(scope="module")
def kept(stage: Stage) -> None:
    """A workflow that hands over what is rejected; it pins the contracts that are newest before any test."""
    document = dict(read_definition(ROOT / "examples" / "order_fulfilment.toml").document)
    document |= {"name": "kept", "on_failure": "handoff"}
    api.publish_definition(definition_from_document(document), actor=OPERATOR)


@pytest.fixture
def handed(kept: None, clear_stage: Stage) -> str:
    """An order whose notice is refused: goods and shipment stand, a person has it."""
    clear_stage.simulator.plan({"tool": "send_notice", "mode": "refuse"})
    return begin("kept", clear_stage, 8_200_001, version=1)


def begin(name: str, stage: Stage, number: int, version: int | None = None) -> str:
    given = INPUTS["order_fulfilment"](number)
    started = api.start_run(
        actor=AGENT, definition=name, version=version, input=given, start_key=f"v-{number}"
    )
    settle(started.run_ref, stage.clock)
    return started.run_ref


def order(ref: str, verb: Callable[[api.Desk], None], stage: Stage) -> RunFacts:
    facts = api.run_facts(ref)
    assert facts.handoff is not None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="because") as desk:
        verb(desk)
    return settle(ref, stage.clock)


def reason(facts: RunFacts) -> str:
    assert facts.handoff is not None
    return facts.handoff.reason


def test_a_run_goes_on_by_the_version_that_it_pinned_although_a_newer_one_is_published(
    clear_stage: Stage, handed: str
) -> None:
    document = dict(read_definition(ROOT / "examples" / "order_fulfilment.toml").document)
    document |= {"name": "kept", "version": 2, "steps": document["steps"][:2], "end_states": []}
    api.publish_contract(contract("release_stock", 9), actor=OPERATOR)
    api.publish_definition(definition_from_document(document), actor=OPERATOR)
    clear_stage.simulator.plan({"tool": "send_notice", "mode": "ok"})

    facts = order(handed, lambda desk: desk.retry("send_notice"), clear_stage)

    assert facts.state is RunState.COMPLETED
    assert facts.definition.version == 1
    made_up = facts.action("reserve_stock").compensation
    assert made_up is not None
    assert made_up.contract.version == 1
    newer = api.run_facts(begin("kept", clear_stage, 8_200_002))
    assert newer.definition.version == 2
    assert {action.step for action in newer.actions} == {"reserve_stock", "create_shipment"}


def test_a_version_that_live_runs_need_stays_in_use_until_none_does(clear_stage: Stage, handed: str) -> None:
    with pytest.raises(StillNeeded) as refused:
        api.retire_contract("release_stock", 1, actor=OPERATOR, reason="old")

    (need,) = refused.value.needs
    assert (need.run_ref, need.state, need.workflow) == (handed, "handoff", "kept")
    assert (need.steps, need.compensations) == ((), ("reserve_stock",))
    assert api.needs_of_contract("send_notice", 1)[0].steps == ("send_notice",)
    with pytest.raises(StillNeeded):
        api.retire_workflow("kept", 1, actor=OPERATOR, reason="old")
    assert api.retirements() == ()

    facts = order(handed, lambda desk: desk.stop_and_compensate(), clear_stage)
    assert facts.state is RunState.COMPENSATED
    assert api.retire_contract("release_stock", 1, actor=OPERATOR, reason="old") == ()
    assert api.retire_workflow("kept", 1, actor=OPERATOR, reason="old") == ()
    assert [(one.kind, one.name, one.withdrawn) for one in api.retirements()] == [
        ("workflow", "kept", False),
        ("contract", "release_stock", False),
    ]


def test_nothing_new_begins_with_a_version_out_of_use_and_the_refusal_says_what_to_do(
    clear_stage: Stage,
) -> None:
    given = INPUTS["order_fulfilment"](8_200_011)
    first = api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="before")
    settle(first.run_ref, clear_stage.clock)
    api.retire_contract("send_notice", 1, actor=OPERATOR, reason="the post room moved")

    with pytest.raises(Retired, match=r"Version 1 of send_notice is out of use.*names another one"):
        api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="after")

    # What was started before is answered as before.
    assert not api.start_run(
        actor=AGENT, definition="order_fulfilment", input=given, start_key="before"
    ).created
    assert Run.objects.count() == 1
    api.reinstate("contract", "send_notice", 1, actor=OPERATOR, reason="it moved back")
    api.retire_workflow("order_fulfilment", 1, actor=OPERATOR, reason="replaced")
    with pytest.raises(Retired, match="order_fulfilment is out of use: start another version"):
        api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="after")


def test_a_step_whose_tool_is_withdrawn_is_handed_over_and_never_called(
    clear_stage: Stage,
) -> None:
    clear_stage.simulator.plan({"tool": "create_shipment", "mode": "throttle"})
    ref = clear_stage.start("order_fulfilment", 8_200_021)
    drain()
    assert api.run_facts(ref).action("create_shipment").state is ActionState.PREPARED
    clear_stage.simulator.plan({"tool": "create_shipment", "mode": "ok"})

    needs = api.retire_contract(
        "create_shipment", 1, actor=OPERATOR, reason="the carrier is gone", withdraw=True
    )
    assert [need.run_ref for need in needs] == [ref]
    facts = settle(ref, clear_stage.clock)

    assert (facts.state, reason(facts)) == (RunState.HANDOFF, "tool_withdrawn")
    assert facts.handoff is not None
    assert facts.handoff.params["tool"] == "create_shipment"
    assert "the carrier is gone" in str(facts.handoff.params["detail"])
    assert effects(clear_stage.simulator, "create_shipment") == 0
    assert facts.action("reserve_stock").state is ActionState.CONFIRMED

    api.reinstate("contract", "create_shipment", 1, actor=OPERATOR, reason="a new one")
    facts = order(ref, lambda desk: desk.resume(), clear_stage)
    assert facts.state is RunState.COMPLETED
    assert effects(clear_stage.simulator, "create_shipment") == 1


def test_a_release_without_the_tool_of_a_registered_compensation_hands_it_over_and_skips_nothing(
    clear_stage: Stage, handed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stock` is missing in the new release; the shipment's compensation comes first and works."""
    systems = dict(settings.TOOL_SYSTEMS)
    monkeypatch.setattr(settings, "TOOL_SYSTEMS", {k: v for k, v in systems.items() if k != "stock"})

    missing = retirement.unknown_to_this_release()
    assert [need.run_ref for needs in missing.values() for need in needs if need.compensations] == [handed]
    found = run_checks(tags=["amends_release"], include_deployment_checks=True)
    assert {one.id for one in found} == {"sagas.E004"}
    assert all(handed in one.msg for one in found)

    facts = order(handed, lambda desk: desk.stop_and_compensate(), clear_stage)

    assert (facts.state, reason(facts)) == (RunState.HANDOFF, "tool_withdrawn")
    assert facts.handoff is not None
    assert facts.handoff.params["tool"] == "release_stock"
    assert "release_stock is not available in this release" in str(facts.handoff.params["detail"])
    assert facts.action("create_shipment").state is ActionState.COMPENSATED
    reserved = facts.action("reserve_stock")
    assert (reserved.state, reserved.compensation and reserved.compensation.state) == (
        ActionState.CONFIRMED,
        CompensationState.FAILED,
    )
    assert api.obstacle(facts, "compensate", step="reserve_stock") is None
    assert api.obstacle(facts, "mark_acceptable") is None
    assert Run.objects.get(ref=handed).deliveries < 20
    assert effects(clear_stage.simulator, "release_stock") == 0

    # Other runs are not affected; once the tool is back, ordering the compensation finishes the job.
    monkeypatch.setattr(settings, "TOOL_SYSTEMS", systems)
    assert retirement.unknown_to_this_release() == {}
    assert run_checks(tags=["amends_release"], include_deployment_checks=True) == []
    facts = order(handed, lambda desk: desk.compensate(), clear_stage)
    assert facts.state is RunState.COMPENSATED
    assert effects(clear_stage.simulator, "release_stock") == 1


def test_a_tool_that_is_withdrawn_between_the_look_and_the_call_is_not_called(
    clear_stage: Stage, handed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks before the leap are made outside any transaction: the withdrawal comes in while they are out."""
    looked = executor.perform

    def withdraw_meanwhile(order: Any, world: Any) -> Any:
        if getattr(order, "purpose", None) is Purpose.CHECK and not api.retirements():
            tool = order.contract.tool
            api.retire_contract(tool, 1, actor=OPERATOR, reason="unsafe", withdraw=True)
        return looked(order, world)

    monkeypatch.setattr(executor, "perform", withdraw_meanwhile)
    facts = order(handed, lambda desk: desk.stop_and_compensate(), clear_stage)

    (gone,) = api.retirements()
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, "tool_withdrawn")
    assert effects(clear_stage.simulator, gone.name) == 0
