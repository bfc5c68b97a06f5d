"""Faults that others reported of their engines, played on this one; each test names the rule that keeps it away."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from sagas import api
from sagas.executor import perform
from sagas.facts import QueueFilter, RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Run
from sagas.orders import Ask, Call, Done
from sagas.published import contracts_for
from sagas.reasons import Reason
from sagas.relay import ring
from sagas.states import ActionState, CompensationState, RunState
from tests.integration.sagas.conftest import AGENT, OPERATOR, ROOT, drain, effects, settle
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage
from tools.contract import Json
from tools.lint import Waiver, check
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from tools.world import World

__all__ = ["clear_stage", "stage"]


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    return clear_stage


def variant(flow: str, name: str, **changes: Json) -> None:
    """Publish a workflow like `flow` under another name, whatever the lint thinks of it."""
    document = read_definition(ROOT / "examples" / flow).document
    definition = definition_from_document({**document, **changes, "name": name})
    contracts = {tool: contract for tool, (_, contract) in contracts_for(definition).items()}
    errors = {finding.code for finding in check(definition, contracts) if finding.severity == "error"}
    waivers = [Waiver(code=code, reason="a test of what such a workflow leads to") for code in sorted(errors)]
    api.publish_definition(definition, actor=OPERATOR, waivers=waivers)


def start(workflow: str, like: str, number: int, **changes: Json) -> str:
    given = {**INPUTS[like](number), **changes}
    return api.start_run(
        actor=AGENT, definition=workflow, input=given, start_key=f"{workflow}-{number}"
    ).run_ref


def arrivals(scene: Stage, ref: str, tool: str) -> list[dict[str, Any]]:
    return [r for r in scene.simulator.ledger(tool=tool, kind="arrived") if ref in r["key"]]


def order_by_person(facts: RunFacts, command: str, act: Callable[[Any], None]) -> None:
    assert facts.handoff is not None
    with (
        api.transaction(),
        api.desk(facts.handoff.ref, actor=OPERATOR, command_id=command, reason="looked into it") as desk,
    ):
        act(desk)


# --- Status codes ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-4", "S3-19")
@pytest.mark.parametrize(
    ("error", "first", "state", "calls"),
    [
        ("key_in_use", "cut", RunState.COMPLETED, 3),
        # A refusal of the repeat proves nothing about the first try, which did take effect.
        ("state_conflict", "cut", RunState.COMPLETED, 3),
        ("state_conflict", "", RunState.FAILED_CLEAN, 1),
    ],
)
def test_409_means_what_the_contract_says_a_first_try_still_running_is_no_refusal(
    scene: Stage, error: str, first: str, state: RunState, calls: int
) -> None:
    contract = read_contract(ROOT / "tools" / "catalog" / "reserve_stock.toml").document
    errors = {**contract["errors"], "codes": {"key_in_use": "in_flight", "state_conflict": "conflict"}}
    document = {name: value for name, value in contract.items() if name != "status_query"}
    api.publish_contract(
        contract_from_document({**document, "errors": errors, "version": 409}), actor=OPERATOR
    )
    steps = [
        {**s, "contract_version": 409} if s["tool"] == "reserve_stock" else s
        for s in read_definition(ROOT / "examples" / "order_fulfilment.toml").document["steps"]
    ]
    variant("order_fulfilment.toml", "order_409", steps=steps)
    if first:
        scene.simulator.plan({"tool": "reserve_stock", "mode": first, "attempts": [1]})
    refused = {"tool": "reserve_stock", "mode": "refuse", "status": 409, "body": {"error": error}, "times": 1}
    scene.simulator.plan({**refused, "attempts": [2 if first else 1]})

    ref = start("order_409", "order_fulfilment", 9_200_001)
    facts = settle(ref, scene.clock)

    seen = arrivals(scene, ref, "reserve_stock")
    assert (facts.state, len(seen), len({record["key"] for record in seen})) == (state, calls, 1)
    assert effects(scene.simulator, "reserve_stock") == (1 if first else 0)
    assert effects(scene.simulator, "release_stock") == 0


@pytest.mark.requirement("S0-68", "S0-72")
def test_a_404_of_a_proxy_does_not_make_a_compensation_done(scene: Stage) -> None:
    """Not the tool's own error format: unknown; the reservation still stands, so the same key goes out again."""
    scene.simulator.plan(
        {"tool": "create_shipment", "mode": "refuse"},
        {"tool": "release_stock", "mode": "garbage", "status": 404, "applied": False, "attempts": [1]},
    )
    scene.start("order_fulfilment", 9_200_011)
    scene.settle()

    facts = scene.facts(9_200_011)
    names = [entry.name for entry in api.entries(facts.ref)]
    assert facts.state is RunState.COMPENSATED
    assert "tool.compensation.unknown" in names
    assert effects(scene.simulator, "release_stock") == 1
    assert len(arrivals(scene, facts.ref, "release_stock")) == 2


@pytest.mark.requirement("S2-5", "S4-10")
def test_what_somebody_else_undid_already_is_recorded_and_not_undone_again(scene: Stage) -> None:
    scene.simulator.plan({"tool": "create_shipment", "mode": "throttle", "retry_after_s": 60})
    scene.start("order_fulfilment", 9_200_021)
    drain()
    reservation = scene.facts(9_200_021).action("reserve_stock").provider_ref
    scene.simulator.post("/third-party", {"kind": "reservation", "id": reservation, "state": "released"})
    _stop(scene.run(9_200_021).pk)
    drain()

    facts = scene.facts(9_200_021)
    made_up = facts.action("reserve_stock").compensation
    assert facts.state is RunState.COMPENSATED
    assert arrivals(scene, facts.ref, "release_stock") == []
    assert made_up is not None
    assert made_up.state is CompensationState.CONFIRMED


def _stop(run_id: int) -> None:
    with api.transaction(), opened(run_id) as desk:
        ledger.turn_back(desk, "stopped", OPERATOR)
        desk.run.due_at = desk.now
        desk.close(release=False)


# --- Compensations that do not succeed --------------------------------------------------------------------------------


@pytest.mark.requirement("S0-70", "S2-7", "S0-41")
@pytest.mark.parametrize(
    ("mode", "tries"),
    [
        (
            {"mode": "fail_before", "status": 503},
            6,
        ),  # said before anything is booked: the contract's six tries
        ({"mode": "refuse", "status": 403, "body": {"error": "credential_expired"}}, 1),
    ],
    ids=["unavailable", "forbidden"],
)
def test_a_compensation_that_cannot_succeed_is_tried_a_bounded_number_of_times_and_then_given_to_a_person(
    scene: Stage, mode: dict[str, Any], tries: int
) -> None:
    scene.simulator.plan({"tool": "allocate_limit", "mode": "refuse"}, {"tool": "withdraw_file", **mode})
    scene.start("bank_opening", 9_200_031)
    scene.settle()
    scene.clock.put_forward(3600)
    scene.settle()

    facts = scene.facts(9_200_031)
    assert len(arrivals(scene, facts.ref, "withdraw_file")) == tries
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == Reason.COMPENSATION_FAILED
    assert arrivals(scene, facts.ref, "release_customer_no") == []
    assert api.obstacle(facts, "compensate", step="file_customer") is None
    assert api.obstacle(facts, "compensate", step="create_customer") is not None
    assert facts.handoff.ref in {row.ref for row in api.queue(QueueFilter(state="compensation_failed")).rows}

    # The credential is renewed and a person says so: the rest runs on by itself, in order.
    scene.simulator.plan({"tool": "withdraw_file", "mode": "ok"})
    order_by_person(facts, "c-1", lambda desk: desk.compensate(("file_customer",)))
    scene.settle()
    facts = scene.facts(9_200_031)
    assert facts.state is RunState.COMPENSATED
    done = [r["tool"] for r in scene.simulator.ledger(kind="effect") if r["direction"] == "compensate"]
    assert done == ["withdraw_file", "release_customer_no"]


@pytest.mark.requirement("S0-36", "S2-10")
def test_a_slow_compensation_is_waited_for_before_the_next_is_sent(scene: Stage) -> None:
    scene.simulator.plan(
        {"tool": "send_sms", "mode": "refuse"}, {"tool": "reclaim_limit", "mode": "slow", "delay_ms": 700}
    )
    scene.start("bank_opening", 9_200_041)
    scene.settle()

    tools = ("reclaim_limit", "withdraw_file", "release_customer_no")
    moments = {
        (record["tool"], record["kind"]): datetime.fromisoformat(record["at"])
        for record in scene.simulator.ledger()
        if record["tool"] in tools
    }
    assert scene.facts(9_200_041).state is RunState.COMPENSATED
    assert moments["reclaim_limit", "replied"] - moments["reclaim_limit", "arrived"] >= timedelta(seconds=0.6)
    assert moments["reclaim_limit", "replied"] < moments["withdraw_file", "arrived"]
    assert moments["withdraw_file", "replied"] < moments["release_customer_no", "arrived"]
    assert all(len(arrivals(scene, scene.ref(9_200_041), tool)) == 1 for tool in tools)


@pytest.mark.requirement("S0-69", "S3-22")
def test_what_cannot_be_undone_is_never_reported_as_compensated(scene: Stage) -> None:
    """The irreversible step comes first: the rest is undone, then a person says that the effect may stay."""
    document = read_definition(ROOT / "examples" / "order_fulfilment.toml").document
    first, second, third = document["steps"]
    end = {
        "id": "told_anyway",
        "title": "The customer was told, nothing else stands",
        "conditions": [{"step": "reserve_stock", "states": ["compensated"], "text": "no stock is held"}],
    }
    variant("order_fulfilment.toml", "notice_first", steps=[third, first, second], end_states=[end])
    scene.simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    ref = start("notice_first", "order_fulfilment", 9_200_051)

    facts = settle(ref, scene.clock)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == Reason.PIVOT
    assert effects(scene.simulator, "release_stock") == 1
    assert facts.effects_left == ("send_notice",)
    assert api.obstacle(facts, "compensate", step="send_notice") is not None
    looked = api.look(facts, "mark_acceptable")
    order_by_person(facts, "c-1", lambda desk: desk.mark_acceptable(end_state="told_anyway", looked=looked))
    facts = api.run_facts(ref)
    assert facts.state is RunState.CLOSED_ACCEPTED
    assert facts.effects_left == ("send_notice",)
    assert "run.compensated" not in [entry.name for entry in api.entries(ref)]


# --- What comes late ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-17", "S3-11")
@pytest.mark.parametrize("claimed", [False, True], ids=["nobody-has-it", "somebody-has-it"])
def test_a_late_answer_settles_an_unclaimed_handoff_and_shows_itself_in_a_claimed_one(
    scene: Stage, claimed: bool
) -> None:
    scene.simulator.plan({"tool": "get_reservation", "mode": "query_down"})
    scene.start("order_fulfilment", 9_200_061)
    run, owner, world = scene.run(9_200_061), workers.enrol("slow"), World(scene.simulator.systems)
    got = ledger.claim_run(run.pk, owner)
    assert got is not None
    claim, call = got
    assert isinstance(call, Call)
    late = perform(call, world)
    scene.clock.put_forward(workers.LEASE_S + 1)
    workers.bury(owner)
    scene.settle()
    facts = scene.facts(9_200_061)
    assert (facts.state, facts.action("reserve_stock").state) == (RunState.HANDOFF, ActionState.UNKNOWN)
    if claimed:
        order_by_person(facts, "c-1", lambda desk: desk.claim())

    with pytest.raises(Exception, match="evidence"):
        ledger.advance(claim, late)
    drain()
    scene.settle()

    facts = scene.facts(9_200_061)
    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by) == (ActionState.CONFIRMED, "late answer")
    assert len(arrivals(scene, facts.ref, "reserve_stock")) == 1
    if claimed:
        assert facts.state is RunState.HANDOFF
        assert effects(scene.simulator, "create_shipment") == 0
        order_by_person(facts, "c-2", lambda desk: desk.resume())
        scene.settle()
    facts = scene.facts(9_200_061)
    assert facts.state is RunState.COMPLETED
    names = [entry.name for entry in api.entries(facts.ref)]
    assert names.count("human.handoff.resolved") == 1
    world.close()


@pytest.mark.requirement("S3-8", "S3-4")
def test_a_refusal_learned_by_query_has_the_consequences_of_a_refusal(scene: Stage) -> None:
    """No answer, then no answer to the query, then "it belongs to somebody else": rejected, and what stood is undone."""
    document = read_definition(ROOT / "examples" / "bank_opening.toml").document
    reserve = read_definition(ROOT / "examples" / "order_fulfilment.toml").document["steps"][0]
    stock = {**reserve, "args": {"order": "O-9200071", "sku": "SKU-118", "qty": 1}}
    variant("bank_opening.toml", "stock_then_bank", steps=[stock, *document["steps"]], end_states=[])
    start("bank_opening", "bank_opening", 9_200_071)
    drain()  # somebody else has the identity number by now
    second = start("stock_then_bank", "bank_opening", 9_200_071, application="A-9999999")
    scene.simulator.plan(
        {"tool": "create_customer", "match": second, "mode": "reset"},
        {"tool": "find_customer", "mode": "query_down", "times": 1},
    )

    facts = settle(second, scene.clock)

    assert facts.action("create_customer").state is ActionState.REJECTED
    assert len(arrivals(scene, second, "create_customer")) == 1
    assert facts.state is RunState.COMPENSATED
    assert [r["tool"] for r in scene.simulator.ledger(kind="effect") if second in r["key"]] == [
        "reserve_stock",
        "release_stock",
    ]
    names = [entry.name for entry in api.entries(second)]
    assert names.index("tool.execution.resolved") < names.index("tool.compensation.due")


# --- Commands and messages ------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-21", "S4-16")
def test_a_stop_outlives_every_worker_and_the_delayed_call_never_goes_out(scene: Stage) -> None:
    scene.simulator.plan(
        {"tool": "create_shipment", "mode": "throttle", "retry_after_s": 600, "attempts": [1]}
    )
    scene.start("order_fulfilment", 9_200_081)
    drain()
    ref = scene.ref(9_200_081)
    assert len(arrivals(scene, ref, "create_shipment")) == 1

    _stop(scene.run(9_200_081).pk)
    drain()  # other workers than those that were told before
    scene.clock.put_forward(700)
    ring(ref)
    drain()

    facts = scene.facts(9_200_081)
    assert facts.state is RunState.COMPENSATED
    assert facts.action("create_shipment").state is ActionState.SKIPPED
    assert len(arrivals(scene, ref, "create_shipment")) == 1
    assert effects(scene.simulator, "release_stock") == 1


@pytest.mark.requirement("S4-19")
def test_a_command_whose_transaction_fails_leaves_nothing_behind_that_a_bell_could_find(scene: Stage) -> None:
    scene.simulator.plan({"tool": "send_notice", "mode": "refuse"})
    scene.start("order_fulfilment", 9_200_091)
    scene.settle()
    facts = scene.facts(9_200_091)
    assert facts.handoff is not None
    before = json.dumps([entry.name for entry in api.entries(facts.ref)])

    def fail(desk: Any) -> None:
        desk.retry("send_notice")
        raise RuntimeError("the last insert failed")

    with pytest.raises(RuntimeError, match="last insert"):
        order_by_person(facts, "c-1", fail)
    ring(facts.ref)
    drain()

    assert json.dumps([entry.name for entry in api.entries(facts.ref)]) == before
    assert scene.facts(9_200_091).state is RunState.HANDOFF
    assert len(arrivals(scene, facts.ref, "send_notice")) == 1


@pytest.mark.requirement("S3-17", "S1-6")
def test_a_second_copy_of_the_message_finds_a_live_lease_and_leaves(scene: Stage) -> None:
    """The first worker is slow, not dead: whoever is rung meanwhile finds nothing to do, and does not wait for it."""
    scene.start("order_fulfilment", 9_200_101)
    run, owner, world = scene.run(9_200_101), workers.enrol("slow"), World(scene.simulator.systems)
    got = ledger.claim_run(run.pk, owner)
    assert got is not None
    claim, order = got

    for _ in range(3):
        assert workers.beat(owner)
        drain()
        assert Run.objects.get(pk=run.pk).fence == claim.fence
    assert scene.simulator.ledger(kind="arrived") == []
    while not isinstance(order, Done):
        assert isinstance(order, Call | Ask)
        order = ledger.advance(claim, perform(order, world))

    facts = scene.facts(9_200_101)
    assert facts.state is RunState.COMPLETED
    assert all(len(action.attempts) == 1 for action in facts.actions)
    world.close()
