"""The gates of tools: nobody goes faster than a tool takes, a refusal for speed is no failure, nobody starves."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from sagas import alarms, api, gates
from sagas.errors import NotFound
from sagas.executor import Drain, perform
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import ContractVersion, DefinitionVersion, Entry, Gate, Handoff, Run, Turn
from sagas.orders import Answered, Call, Queue, Queued
from sagas.reasons import Reason
from sagas.states import ActionState, RunState
from sagas.sweep import Sweep
from tests.conftest import Clock, Simulator
from tests.faults.conftest import wait_until
from tests.integration.sagas.conftest import AGENT, OPERATOR, drain
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_anti_patterns import contract_of, publish, workflow
from tools.outcome import Observation, Seen
from tools.reader import contract_from_document
from tools.world import World

__all__ = ["clear_stage", "stage"]

TOOL = "reserve_stock"


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    return clear_stage


@pytest.fixture
def simulator(scene: Stage) -> Simulator:
    return scene.simulator


@pytest.fixture
def clock(scene: Stage) -> Clock:
    return scene.clock


def one_step(name: str, *, tool: str = TOOL, total_s: float = 0.0, **rate: Any) -> str:
    """A workflow of one call, whose contract declares this rate and limit. Published once while the stage stands."""
    if not DefinitionVersion.objects.filter(name=name).exists():
        document = workflow("order_fulfilment")
        document["steps"] = [step for step in document["steps"] if step["tool"] == tool]
        document["end_states"] = []
        contract = contract_of(tool)
        if total_s:
            contract["limits"] = {**contract["limits"], "total_s": total_s}
        if rate or total_s:
            taken = ContractVersion.objects.filter(tool=contract["tool"], version__gte=100).count()
            contract |= {"version": 100 + taken, **({"rate": rate} if rate else {})}
        publish(document, name, contract)
    return name


def order(number: int) -> dict[str, Any]:
    return {
        "order": f"O-{number}",
        "customer": "C-88",
        "amount": "86.40",
        "sku": "SKU-118",
        "qty": 1,
        "address": "Harbour Street 4",
    }


def start(definition: str, *numbers: int) -> list[str]:
    return [
        api.start_run(
            actor=AGENT, definition=definition, input=order(n), start_key=f"{definition}-{n}"
        ).run_ref
        for n in numbers
    ]


def ask(scene: Stage, runs: int) -> None:
    """Let so many runs ask for their turn and be given back, whether they have one or not."""
    owner, world = workers.enrol("test"), World(scene.simulator.systems)
    for _ in range(runs):
        claimed = ledger.claim_next(owner)
        assert claimed is not None
        claim, asked = claimed
        assert isinstance(asked, Queue)
        said = perform(asked, world)
        assert isinstance(said, Queued)
        later = api.now() + timedelta(seconds=30)  # so that each of them asks once
        ledger.advance(claim, replace(said, until=max(said.until or later, later)))
    world.close()


def go_on(seconds: float = 120.0, *, until_done: int = 0) -> None:
    """Work in real time until so many runs are at their end."""
    drainer = Drain("test")
    try:
        drainer.run(seconds=seconds, linger_s=1.2)
    finally:
        drainer.close()
    if until_done:
        assert Run.objects.filter(state=RunState.COMPLETED).count() == until_done


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Have something done beside the block, in a thread of its own; it is over when the block is."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    beside = threading.Thread(target=run)
    beside.start()
    yield
    beside.join()


def used_turns() -> list[float]:
    """When the turns that were used had come, in seconds. How soon after it a call leaves is the machine's affair."""
    used = Turn.objects.exclude(used_at=None).values_list("go_at", "used_at")
    assert all(at >= go_at - gates.SOONEST for go_at, at in used if go_at and at)
    return sorted(go_at.timestamp() for go_at, _ in used if go_at)


def arrivals(simulator: Simulator, tool: str = TOOL) -> list[float]:
    """When the calls of a tool arrived outside, in seconds."""
    records = simulator.ledger(tool=tool, kind="arrived")
    return sorted(datetime.fromisoformat(record["at"]).timestamp() for record in records)


def fastest(times: list[float], within: float = 1.0) -> int:
    """The most calls within any so many seconds."""
    return max(sum(1 for at in times if first <= at < first + within) for first in times)


# --- Speed ---------------------------------------------------------------------------------------------------------


def test_two_workers_together_go_no_faster_than_the_contract_declares(scene: Stage) -> None:
    definition = one_step("paced", per_second=8.0)
    start(definition, *range(12))

    with meanwhile(go_on):
        go_on()

    assert len(arrivals(scene.simulator)) == 12
    turns = used_turns()
    assert len(turns) == 12
    assert fastest(turns) <= 9  # a second's window sees one more at its edge
    assert turns[-1] - turns[0] >= 11 / 8.0 * 0.9


def test_no_more_calls_are_under_way_than_the_contract_allows(scene: Stage) -> None:
    definition = one_step("two_at_once", total_s=30.0, at_once=2)
    scene.simulator.plan({"tool": TOOL, "mode": "ok", "gate": "door"})
    start(definition, *range(6))
    held: list[int] = []

    def look() -> None:
        """Two are held outside; once all the others have asked and were told to wait, they may go on."""
        wait_until(lambda: Turn.objects.count() == 6, "all have asked")
        wait_until(lambda: scene.simulator.held_at("door") == 2, "two are under way")
        held.append(gates._under_way(TOOL))
        scene.simulator.let_pass("door")

    with meanwhile(look):
        go_on(until_done=6)

    assert held == [2]
    assert len(arrivals(scene.simulator)) == 6


def test_a_tool_that_nobody_bounded_costs_no_gate(scene: Stage) -> None:
    start(one_step("unbounded"), 1)
    go_on(until_done=1)
    assert not Gate.objects.exists()


# --- 429 -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-5")
@pytest.mark.parametrize(
    ("told", "closed_for"),
    [
        ({"retry_after_s": 300}, 300.0),
        ({"retry_after_s": "9999999999"}, 3600.0),
        ({"status": 503, "retry_after_s": 200}, 200.0),
    ],
    ids=["seconds", "absurd", "unavailable with a time"],
)
def test_a_refusal_for_speed_closes_the_gate_for_everybody_and_uses_up_no_try(
    scene: Stage, clock: Clock, told: dict[str, Any], closed_for: float
) -> None:
    scene.simulator.plan({"tool": TOOL, "mode": "throttle", "per": "rule", "attempts": [1], **told})
    definition = one_step("unbounded")
    first, *_ = start(definition, 1)
    drain()
    start(definition, 2, 3)
    drain()

    gate = Gate.objects.get()
    assert gate.not_before is not None
    left = (gate.not_before - api.now()).total_seconds()
    assert closed_for - 60 < left <= closed_for
    assert len(arrivals(scene.simulator)) == 1  # the others were not even tried
    action = api.run_facts(first).action(TOOL)
    assert (action.state, action.attempts_used) == (ActionState.PREPARED, 0)
    assert not Handoff.objects.exists()
    (entry,) = Entry.objects.filter(name="tool.gate.closed")
    assert entry.after is not None
    assert entry.after["tool"] == TOOL

    clock.put_forward(left + 0.1)
    go_on(until_done=3)
    assert api.run_facts(first).action(TOOL).attempts_used == 1


@pytest.mark.requirement("S4-5")
def test_the_herd_comes_back_paced_the_oldest_first(scene: Stage, clock: Clock) -> None:
    scene.simulator.plan(
        {"tool": TOOL, "mode": "throttle", "per": "rule", "attempts": [1], "retry_after_s": 30},
        {"tool": TOOL, "mode": "ok", "gate_of_answer": "door"},
    )
    definition = one_step("herded", total_s=30.0)
    refs = start(definition, *range(14))

    def answer_the_others() -> None:
        wait_until(lambda: Gate.objects.exclude(not_before=None).exists(), "the first answer has come")
        scene.simulator.let_pass("door")

    with meanwhile(answer_the_others):
        drain()
    before = len(arrivals(scene.simulator))
    assert before <= 8  # what was in flight already when the first answer came

    gate = Gate.objects.get()
    assert gate.not_before is not None
    due = [at for at in Run.objects.values_list("due_at", flat=True) if at is not None]
    assert len(set(due)) == len(due)  # no two of them wait equally long
    assert all(at >= gate.not_before - timedelta(seconds=0.01) for at in due)
    clock.put_forward((gate.not_before - api.now()).total_seconds())
    go_on(until_done=14)

    turns = used_turns()
    assert len(turns) == 14 - before + 1
    assert fastest(turns) <= 13
    calls = [r["key"] for r in scene.simulator.ledger(tool=TOOL, kind="effect")]
    order_of_runs = [next(n for n, ref in enumerate(refs) if key.startswith(f"{ref}.")) for key in calls]
    # Roughly in the order of their waiting: whoever is claimed a moment late is passed by its neighbours.
    assert sum(order_of_runs[:6]) < sum(order_of_runs[-6:])


def test_another_refusal_makes_it_slower_and_silence_about_the_time_longer(
    scene: Stage, clock: Clock
) -> None:
    contract = contract_from_document(contract_of(TOOL))
    throttled = Observation(seen=Seen.ANSWER, status=429, body={"error": "throttled"})
    for wait_s in (1, 2, 4):
        before = api.now()
        assert gates.heard([(contract, throttled)]).slowed
        gate = Gate.objects.get()
        assert gate.not_before is not None
        assert before <= gate.not_before - timedelta(seconds=wait_s) <= api.now()
        clock.put_forward(wait_s + 0.1)
    assert gate.pace is not None
    assert gate.pace < 5


def test_a_call_that_waits_too_long_goes_to_a_person_and_waits_anew_when_he_lets_it(
    scene: Stage, clock: Clock
) -> None:
    definition = one_step("impatient", per_second=5.0, longest_wait_s=60)
    scene.simulator.plan({"tool": TOOL, "mode": "throttle", "retry_after_s": 40})
    (ref,) = start(definition, 1)
    for _ in range(6):
        drain()
        clock.put_forward(_next_due())
    facts = api.run_facts(ref)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == Reason.THROTTLED
    assert facts.action(TOOL).attempts_used == 0
    assert len(arrivals(scene.simulator)) == 2  # at 0 and 40 s; at 60 s the patience was over

    assert api.obstacle(facts, "resume") is None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="we have the time") as desk:
        desk.resume()
    clock.put_forward(60)
    scene.simulator.plan({"tool": TOOL, "mode": "ok"})
    drain()
    go_on(until_done=1)


def _next_due() -> float:
    due = Run.objects.exclude(due_at=None).order_by("due_at").values_list("due_at", flat=True).first()
    return max((due - api.now()).total_seconds(), 0.0) + 0.2 if due else 0.0


# --- Fair ----------------------------------------------------------------------------------------------------------


def test_a_flood_of_one_workflow_makes_another_wait_for_its_turn_and_no_longer(
    scene: Stage, clock: Clock
) -> None:
    flood, quiet = one_step("slow_tool", per_second=0.05), one_step("slow_tool_too", per_second=0.05)
    start(flood, *range(8))
    ask(scene, 8)
    start(quiet, 1, 2)
    ask(scene, 2)
    order_of_turns = []
    for _ in range(5):
        clock.put_forward(20.0)
        before = set(Turn.objects.exclude(go_at=None).values_list("pk", flat=True))
        gates.hand_out(TOOL)
        (turn,) = Turn.objects.exclude(go_at=None).exclude(pk__in=before)
        order_of_turns.append(turn.flow.partition("/")[2])

    assert Counter(order_of_turns[:4]) == {"slow_tool": 2, "slow_tool_too": 2}
    assert order_of_turns[4] == "slow_tool"


def test_turns_that_nobody_used_are_forfeited_and_asked_for_again(scene: Stage, clock: Clock) -> None:
    start(one_step("leisurely", per_second=2.0), *range(4))
    ask(scene, 4)  # and nobody is there when the turns come
    clock.put_forward(30)

    go_on(until_done=3)  # the first one's turn came at once: it is held by the worker that is not there

    assert fastest(used_turns(), within=0.25) <= 2


def test_the_sweep_hands_out_turns_when_nobody_asks(scene: Stage, clock: Clock) -> None:
    start(one_step("slow_tool", per_second=0.05), *range(4))
    ask(scene, 4)
    waiting = Turn.objects.filter(go_at=None, used_at=None)
    assert waiting.count() == 3
    clock.put_forward(20.0)

    Sweep().tick()

    assert waiting.count() == 2


def test_two_that_hand_out_at_the_same_time_give_no_turn_twice(scene: Stage, clock: Clock) -> None:
    start(one_step("slow_tool", per_second=0.05), *range(5))
    ask(scene, 5)
    clock.put_forward(20.0)
    handed: list[int] = []
    meet = threading.Barrier(2)

    def hand_out() -> None:
        meet.wait(60)
        handed.append(gates.hand_out(TOOL))

    with meanwhile(hand_out):
        hand_out()

    assert sorted(handed) == [0, 1]


def test_handing_out_never_waits_for_a_run_that_somebody_works_on(scene: Stage, clock: Clock) -> None:
    """Gates come before runs in the order of locks, and a run that is locked is passed over."""
    start(one_step("slow_tool", per_second=0.05), *range(3))
    ask(scene, 3)
    clock.put_forward(100.0)
    waiting = Turn.objects.filter(go_at=None, used_at=None).order_by("waiting_since", "id")
    pk = waiting.values_list("run", flat=True)[0]
    inside, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with api.transaction():
            Run.objects.select_for_update(no_key=True).get(pk=pk)
            inside.set()
            assert may_end.wait(60)

    with meanwhile(hold):
        assert inside.wait(60)
        first = gates.hand_out(TOOL)
        may_end.set()

    assert first == 0
    assert gates.hand_out(TOOL) == 1
    assert Turn.objects.get(run=pk).go_at is not None


# --- A refused credential -------------------------------------------------------------------------------------------


REVOKED = {"tool": TOOL, "mode": "refuse", "status": 401, "body": {"error": "token_revoked"}}


@pytest.fixture
def revoked(scene: Stage) -> list[str]:
    """Twelve runs in the middle of it when the credential is revoked."""
    scene.simulator.plan(REVOKED)
    refs = start(one_step("unbounded"), 1)
    drain()
    refs += start(one_step("unbounded"), *range(2, 13))
    drain()
    return refs


def test_a_refused_credential_pauses_the_tool_and_opens_one_case(scene: Stage, revoked: list[str]) -> None:
    assert len(arrivals(scene.simulator)) == 1
    (handoff,) = Handoff.objects.all()
    assert handoff.reason == Reason.TOOL_PAUSED
    assert "reserve_stock" in handoff.params["detail"]
    assert [(a.code, a.count) for a in alarms.in_force() if a.code == "gate.paused"] == [("gate.paused", 1)]
    for ref in revoked:
        action = api.run_facts(ref).action(TOOL)
        assert (action.state, action.attempts_used) == (ActionState.PREPARED, 0)
    (fact,) = gates.gates()
    assert fact.paused_at is not None
    assert fact.waiting == 11
    assert Entry.objects.filter(name="tool.gate.paused").count() == 1


def test_an_opened_tool_is_called_again_by_everybody_who_waited(scene: Stage, revoked: list[str]) -> None:
    scene.simulator.plan({"tool": TOOL, "mode": "ok"})
    with api.transaction():
        gates.open_gate(actor=OPERATOR, tool=TOOL, reason="the credential is renewed")
    go_on()

    (handoff,) = Handoff.objects.all()
    with api.transaction(), api.desk(handoff.ref, actor=OPERATOR, reason="renewed") as desk:
        desk.resume()
    go_on(until_done=len(revoked))
    assert fastest(used_turns()) <= 13
    assert not gates.gates()[0].paused_at


def test_nobody_is_forgotten_who_came_to_the_gate_while_it_was_opened(
    scene: Stage, clock: Clock, revoked: list[str]
) -> None:
    """It is opened between the gate's word and the release of the run that asked: then nobody wakes that run."""
    (ref,) = start(one_step("unbounded"), 99)
    owner, world = workers.enrol("test"), World(scene.simulator.systems)
    pk = Run.objects.get(ref=ref).pk
    claimed = ledger.claim_run(pk, owner)
    assert claimed is not None
    claim, asked = claimed
    said = perform(asked, world)  # type: ignore[arg-type]
    assert isinstance(said, Queued)
    with api.transaction():
        gates.open_gate(actor=OPERATOR, tool=TOOL, reason="the credential is renewed")
    ledger.advance(claim, said)
    world.close()

    for _ in range(3):
        gates.hand_out(TOOL)
        clock.put_forward(1.0)

    due = Run.objects.get(pk=pk).due_at
    assert due is not None
    assert (due - api.now()).total_seconds() < 2


def test_a_refusal_in_flight_of_a_paused_tool_opens_no_second_case(scene: Stage) -> None:
    """Two workers have a call under way when the credential is revoked: one case, both calls come back."""
    scene.simulator.plan(REVOKED)
    first, second = start(one_step("unbounded"), 1, 2)
    owner, world = workers.enrol("test"), World(scene.simulator.systems)
    claims = [ledger.claim_next(owner), ledger.claim_next(owner)]
    seen = []
    for claimed in claims:
        assert claimed is not None
        assert isinstance(claimed[1], Call)
        answered = perform(claimed[1], world)
        assert isinstance(answered, Answered)
        seen.append((claimed[0], answered))
    for claim, answered in seen:
        ledger.advance(claim, answered)
    world.close()

    assert Handoff.objects.count() == 1
    assert {api.run_facts(ref).action(TOOL).state for ref in (first, second)} == {ActionState.PREPARED}


def test_a_paused_tool_is_opened_once(scene: Stage, revoked: list[str]) -> None:
    with api.transaction():
        gates.open_gate(actor=OPERATOR, tool=TOOL, reason="the credential is renewed")
    with pytest.raises(NotFound), api.transaction():
        gates.open_gate(actor=OPERATOR, tool=TOOL, reason="again")
