"""The sweep alone: no broker, no worker, or workers that come back from the dead."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from sagas import api
from sagas.models import Evidence, Run, Worker
from sagas.states import ActionState, RunState
from tests.faults.conftest import Processes, Victims, arrivals, at_rest, effects, is_stopped, wait_until
from tests.integration.sagas.stage import Stage

pytestmark = pytest.mark.timeout(600)

NO_BROKER = "unix:///nonexistent/valkey.sock"


@pytest.mark.requirement("S4-29", "S4-16")
def test_without_a_broker_the_sweep_finds_due_work_and_drives_it_to_its_end(
    stage: Stage, processes: Processes
) -> None:
    number = 4_000_401
    stage.simulator.plan({"tool": "create_shipment", "match": f"O-{number}", "mode": "refuse"})
    before = set(Worker.objects.values_list("pk", flat=True))
    alone = processes.sweep(REDIS_URL=NO_BROKER)
    wait_until(
        lambda: Worker.objects.filter(beats__gt=0).exclude(pk__in=before).exists(),
        "the sweep is at work",
        meanwhile=processes.all_well,
    )

    ref = stage.start("order_fulfilment", number)
    seconds = wait_until(lambda: bool(arrivals(stage, ref, "reserve_stock")), "the sweep found the run")
    to_the_end = seconds + wait_until(lambda: at_rest([ref]), "the run has come to rest")

    print(f"no broker: first call after {seconds:.2f} s, at its end after {to_the_end:.2f} s")  # noqa: T201
    assert stage.facts(number).state is RunState.COMPENSATED
    # A bell that cannot be rung holds up no sweep that was told to stop.
    assert processes.end(alone) == 0


@pytest.mark.requirement("S3-17", "S1-6")
def test_a_worker_stopped_for_longer_than_its_lease_comes_back_and_changes_nothing(
    stage: Stage, processes: Processes
) -> None:
    """One is stopped with its answer in hand, the other just before its first byte. Both wake when all is done."""
    answered, at_the_door = 4_000_501, 4_000_502
    refs = {number: stage.start("order_fulfilment", number) for number in (answered, at_the_door)}
    runs = {number: Run.objects.get(ref=ref) for number, ref in refs.items()}
    victims = Victims()
    try:
        for number, point in ((answered, "call.answered"), (at_the_door, "call.before_first_byte")):
            victims.send(run_id=runs[number].pk, point=point, do="stop", tool="reserve_stock")
        victims.no_more()
        wait_until(
            lambda: all(run.pk in victims.pids and is_stopped(victims.pids[run.pk]) for run in runs.values()),
            "both are stopped",
        )
        sweep = processes.sweep()
        wait_until(lambda: at_rest(list(refs.values())), "others have finished both runs")
        done = {number: stage.facts(number) for number in refs}
        before_waking = len(stage.simulator.ledger(kind="arrived"))

        for pid in victims.pids.values():
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: victims.gone, "both zombies have gone away by themselves")
    finally:
        victims.close()
    processes.end(sweep)

    for number, before in done.items():
        facts = stage.facts(number)
        assert facts.state is RunState.COMPLETED
        assert (facts.state, [a.version for a in facts.actions]) == (
            before.state,
            [a.version for a in before.actions],
        )
        assert Counter(r["tool"] for r in effects(stage, facts)) == Counter([a.tool for a in facts.actions])
        assert set(victims.signals.values()) == {0}
    assert len(stage.simulator.ledger(kind="arrived")) == before_waking
    assert len(arrivals(stage, refs[at_the_door], "reserve_stock")) == 1
    # The answer that came too late is kept, and was not applied by the one who brought it.
    (proof,) = Evidence.objects.filter(run_id=runs[answered].pk, source="late")
    action = stage.facts(answered).action("reserve_stock")
    assert (proof.verdict, proof.reference) == ("found", action.provider_ref)
    assert (action.state, action.settled_by) == (ActionState.CONFIRMED, "status query")
    late_ones = [e for e in api.entries(refs[answered]) if e.name == "tool.execution.late_answer"]
    assert len(late_ones) == 1
