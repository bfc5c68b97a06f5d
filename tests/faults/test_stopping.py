"""SIGTERM to each process: what is in flight is waited for, nothing new is begun, nothing is left unknown."""

from __future__ import annotations

import signal

import pytest

from sagas.models import Attempt, Outbox, Run, Worker
from sagas.relay import ring
from sagas.states import ActionState, RunState
from tests.faults.conftest import Processes, arrivals, at_rest, patient_orders, wait_until
from tests.integration.sagas.conftest import drain
from tests.integration.sagas.stage import Stage
from workbench.labs import children

pytestmark = pytest.mark.timeout(600)


@pytest.mark.requirement("S2-11", "S4-8")
def test_a_worker_told_to_stop_ends_its_call_and_leaves_the_rest_to_the_next(
    stage: Stage, processes: Processes
) -> None:
    (worker,) = processes.workers("leaving")
    number = 4_000_901
    ref = start_held(stage, number)
    ring()
    wait_until(lambda: held(stage, number), "the call is under way")

    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: "Warm shutdown" in processes.log("leaving"), "the worker has heard it")
    goes_on(worker, "worker")
    stage.simulator.let_pass(f"O-{number}")
    assert processes.end(worker) == 0, processes.log("leaving")[-3000:]

    facts, run = stage.facts(number), Run.objects.get(ref=ref)
    assert facts.action("create_shipment").state is ActionState.CONFIRMED
    assert facts.action("send_notice").state is ActionState.NOT_STARTED, "something new was begun"
    assert (run.owner, run.due_at is not None) == ("", True), "the run was not given back"
    assert not Attempt.objects.filter(run=run, finished_at=None).exists()
    assert not Worker.objects.filter(kind="worker", ended_at=None).exists()

    drain()

    assert stage.facts(number).state is RunState.COMPLETED
    made = [len(arrivals(stage, ref, tool)) for tool in ("reserve_stock", "create_shipment", "send_notice")]
    assert made == [1, 1, 1]


def test_a_sweep_told_to_stop_ends_its_call_and_gives_the_run_back(
    stage: Stage, processes: Processes
) -> None:
    sweep = processes.sweep()
    number = 4_000_902
    ref = start_held(stage, number)
    wait_until(lambda: held(stage, number), "the sweep drives the run")

    sweep.send_signal(signal.SIGTERM)
    goes_on(sweep, "sweep")
    stage.simulator.let_pass(f"O-{number}")
    assert processes.end(sweep) == 0, processes.log("sweep")[-3000:]

    run = Run.objects.get(ref=ref)
    assert stage.facts(number).action("create_shipment").state is ActionState.CONFIRMED
    assert (run.owner, run.due_at is not None) == ("", True)
    assert not Worker.objects.filter(kind="sweep", ended_at=None).exists()
    drain()
    assert at_rest([ref])


def test_a_relay_told_to_stop_ends_at_once(stage: Stage, processes: Processes) -> None:
    relay = processes.relay()
    stage.start("order_fulfilment", 4_000_903)
    wait_until(
        lambda: not Outbox.objects.filter(published_at=None).exists(),
        "the relay is at work",
        meanwhile=processes.all_well,
    )

    assert processes.end(relay) == 0, processes.log("relay")[-3000:]
    drain()


def start_held(stage: Stage, number: int) -> str:
    """Start an order whose shipment is on its way until it is let pass."""
    gate = f"O-{number}"
    stage.simulator.plan({"tool": "create_shipment", "match": gate, "mode": "ok", "gate_of_answer": gate})
    return stage.start(patient_orders("create_shipment"), number)


def held(stage: Stage, number: int) -> bool:
    return stage.simulator.held_at(f"O-{number}") == 1


def goes_on(process: children.Child, kind: str) -> None:
    """Wait until a process that was told to stop has renewed its lease a few times: between two of them it looks many
    times at whether it was told. It has to be there still, because of its call.
    """

    def beats() -> int:
        return sum(Worker.objects.filter(kind=kind, ended_at=None).values_list("beats", flat=True))

    before = beats()
    wait_until(
        lambda: process.poll() is not None or beats() >= before + 4, f"the {kind} goes on with its call"
    )
    assert process.poll() is None, "the call was not waited for"
