"""What breaks whoever works on it is set aside, handed to a person, and holds up nobody; slow calls have slots."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from sagas import alarms, api, lanes
from sagas.executor import Drain, drive
from sagas.lanes import Lane
from sagas.ledger import advance as ledger
from sagas.ledger import quarantine, workers
from sagas.models import Entry, Handoff, Run
from sagas.reasons import Reason
from sagas.states import RunState
from tests.conftest import Clock, Simulator
from tests.faults.conftest import wait_until
from tests.integration.sagas.conftest import OPERATOR, drain
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_anti_patterns import contract_of, publish, workflow
from tests.integration.sagas.test_gates import go_on, meanwhile, one_step, order, start
from tools.world import World

__all__ = ["clear_stage", "stage"]

TOOL = "reserve_stock"


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    return clear_stage


@pytest.fixture
def clock(scene: Stage) -> Clock:
    return scene.clock


@pytest.fixture
def simulator(scene: Stage) -> Simulator:
    return scene.simulator


def row(ref: str) -> Run:
    return Run.objects.get(ref=ref)


def resume(ref: str) -> None:
    handoff = Handoff.objects.get(run__ref=ref, state="open")
    with api.transaction(), api.desk(handoff.ref, actor=OPERATOR, reason="the cause is gone") as desk:
        desk.resume()


def break_steps_of(ref: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whoever takes a step of this run fails for a reason of the run's own."""
    step, broken = ledger._step, list[str]()

    def fail(desk: Any, *rest: Any, **how: Any) -> Any:
        if desk.run.ref == ref:
            broken.append(ref)
            raise RuntimeError("this run cannot be planned")
        return step(desk, *rest, **how)

    monkeypatch.setattr(ledger, "_step", fail)
    return broken


# --- A run that cannot be stepped -------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-29")
def test_a_run_that_cannot_be_stepped_is_set_aside_after_five_deliveries_and_its_neighbours_complete(
    scene: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison, *healthy = start(one_step("unbounded"), *range(4))
    with monkeypatch.context() as patch:
        broken = break_steps_of(poison, patch)
        for _ in range(8):
            drain()
            clock.put_forward(60)

        assert len(broken) == quarantine.BREAKS
    assert {row(ref).state for ref in healthy} == {RunState.COMPLETED}
    facts = api.run_facts(poison)
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == Reason.QUARANTINED
    assert "this run cannot be planned" in str(facts.handoff.params["detail"])
    assert row(poison).due_at is None
    assert ("run.quarantined", 1) in {(alarm.code, alarm.count) for alarm in alarms.in_force()}

    # The cause is gone: a person lets it go on, with a new budget.
    assert api.obstacle(facts, "resume") is None
    resume(poison)
    assert (row(poison).breaks, row(poison).quarantined_at) == (0, None)
    drain()
    assert row(poison).state == RunState.COMPLETED


def test_what_breaks_again_after_it_was_let_go_on_has_a_whole_budget_again(scene: Stage) -> None:
    (poison,) = start(one_step("unbounded"), 1)
    for _ in range(quarantine.BREAKS):
        quarantine.put_off(row(poison).pk, "it breaks")
    assert row(poison).state == RunState.HANDOFF

    resume(poison)
    for _ in range(quarantine.BREAKS - 1):
        quarantine.put_off(row(poison).pk, "it breaks")

    assert row(poison).breaks == quarantine.BREAKS - 1
    assert row(poison).state != RunState.HANDOFF


def test_breaks_are_counted_at_one_place_and_a_run_that_gets_on_starts_from_nothing() -> None:
    run = Run(
        breaks=4, deaths=2, stuck_at="forward:1:1", direction="forward", confirmations=2, effects_left=["a"]
    )

    assert quarantine.count_break(run) == 1
    assert (run.breaks, run.deaths) == (1, 0)
    assert quarantine.count_break(run) == 2


def test_a_run_that_cannot_even_be_handed_over_gets_no_more_deliveries_and_its_case_later(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (poison,) = start(one_step("unbounded"), 1)
    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "set_aside", _cannot)
        for _ in range(quarantine.BREAKS):
            quarantine.put_off(row(poison).pk, "it breaks")
    assert row(poison).due_at is None
    assert Entry.objects.filter(name="run.quarantined").count() == 1
    assert not Handoff.objects.exists()

    quarantine.hand_over_rest()

    assert Handoff.objects.get().reason == Reason.QUARANTINED
    assert quarantine.hand_over_rest() == 0


def _cannot(desk: Any, why: str) -> None:
    raise ValueError("its facts cannot be read")


# --- A run that kills ------------------------------------------------------------------------------------------------


def die_over(ref: str, clock: Clock) -> None:
    """A worker claims the run and dies; two sweeps find it, each more than once."""
    run, owner = row(ref), workers.enrol("doomed")
    if run.due_at is not None:
        # Past the first status query as well: a claim that finds nothing to do is given back, and nobody dies over it.
        clock.put_forward(max((run.due_at - api.now()).total_seconds(), 0.0) + 1.0)
    assert ledger.claim_run(run.pk, owner) is not None
    clock.put_forward(workers.LEASE_S + 1)
    finders = [threading.Thread(target=_bury_twice, args=(owner,)) for _ in range(2)]
    for one in finders:
        one.start()
    for one in finders:
        one.join()


def _bury_twice(owner: str) -> None:
    workers.bury(owner)
    workers.bury(owner)
    connection.close()


@pytest.mark.requirement("S4-29")
def test_a_run_that_kills_its_worker_three_times_at_one_place_is_set_aside(
    scene: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        workers, "LEASE_S", 3.5
    )  # three deaths fit into the time in which an unknown call is given up
    (poison,) = start(one_step("unbounded"), 1)

    counted = []
    for _ in range(quarantine.DEATHS):
        die_over(poison, clock)
        counted.append(row(poison).deaths)

    assert counted == [1, 2, 3]  # a death that is found four times counts once
    facts = api.run_facts(poison)
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == Reason.QUARANTINED
    assert row(poison).due_at is None


def test_after_two_deaths_a_suspect_is_worked_on_beside_no_other_suspect(scene: Stage, clock: Clock) -> None:
    """The innocent who were beside it would else die with it again and again."""
    suspects = start(one_step("unbounded"), 1, 2)
    for ref in suspects:
        for _ in range(2):
            die_over(ref, clock)
        assert row(ref).lane == Lane.ALONE

    drainer = Drain("test")
    try:
        assert drainer._slots.alone == 1
        clock.put_forward(5)
        owner = workers.enrol("test")
        first = ledger.claim_next(owner, lanes=lanes.order(0))
        assert first is not None
        assert first[0].lane is Lane.ALONE
        assert ledger.claim_next(owner, lanes=lanes.order(0, alone=False)) is None
    finally:
        drainer.close()


# --- Lanes ----------------------------------------------------------------------------------------------------------


def test_each_run_stands_in_the_lane_of_what_it_is_due_for(scene: Stage, clock: Clock) -> None:
    scene.simulator.plan({"tool": TOOL, "mode": "throttle", "retry_after_s": 300})
    fresh, throttled = start(one_step("unbounded"), 1, 2)
    claimed = ledger.claim_run(row(throttled).pk, workers.enrol("test"))
    assert claimed is not None
    world = World(scene.simulator.systems)
    drive(*claimed, world)
    world.close()

    assert row(fresh).lane == Lane.NEW
    assert row(throttled).lane == Lane.AGAIN
    quarantine.quarantine(row(throttled).pk, "for a person to decide")
    resume(throttled)
    assert row(throttled).lane == Lane.COMMAND


# --- Slow tools --------------------------------------------------------------------------------------------------------


def slow_workflow() -> str:
    """A workflow of one call that may take longer than half a minute."""
    document = workflow("order_fulfilment")
    document["steps"] = [step for step in document["steps"] if step["tool"] == TOOL]
    document["end_states"] = []
    contract = contract_of(TOOL)
    contract |= {"version": 900, "limits": {**contract["limits"], "total_s": 45}}
    return publish(document, "slow_orders", contract)


def test_slow_calls_do_not_fill_the_slots_of_fast_ones(scene: Stage) -> None:
    """Eight calls that do not come back lie before the fast ones; two at most are under way, the rest is given back."""
    slow = slow_workflow()
    scene.simulator.plan({"tool": TOOL, "match": "O-7", "mode": "ok", "gate": "door"})
    slow_ones = [
        api.start_run(actor=OPERATOR, definition=slow, input=order(700 + n), start_key=f"s{n}").run_ref
        for n in range(8)
    ]
    fast_ones = start(one_step("unbounded"), *range(1, 5))

    under_way, ended = list[int](), list[str]()

    def look() -> None:
        wait_until(lambda: all(row(ref).finished_at for ref in fast_ones), "the fast ones are through")
        under_way.append(scene.simulator.held_at("door"))
        ended.extend(ref for ref in slow_ones if row(ref).finished_at)
        scene.simulator.let_pass("door")

    with meanwhile(look):
        go_on(until_done=12)

    assert under_way in ([1], [2])
    assert ended == []
    assert len(scene.simulator.ledger(tool=TOOL, kind="effect")) == 12
