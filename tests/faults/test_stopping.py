"""SIGTERM to each process: what is in flight is waited for, nothing new is begun, nothing is left unknown."""

from __future__ import annotations

import signal
import time

import pytest

from sagas.models import Attempt, Outbox, Run, Worker
from sagas.relay import ring
from sagas.states import ActionState, RunState
from tests.faults.conftest import Processes, arrivals, at_rest, wait_until
from tests.integration.sagas.conftest import drain
from tests.integration.sagas.stage import Stage
from workbench.labs import children

pytestmark = pytest.mark.timeout(600)

LIMIT_S = 2.0
"""The longest a call of the order workflow may take (total_s of its contracts)."""
SLACK_S = 8.0
"""For the interpreter to notice and to end, on a machine that is busy."""


@pytest.mark.requirement("S2-11", "S4-8")
def test_a_worker_told_to_stop_ends_its_call_and_leaves_the_rest_to_the_next(
    stage: Stage, processes: Processes
) -> None:
    (worker,) = processes.workers("leaving")
    number = 4_000_901
    slow = {"tool": "create_shipment", "match": f"O-{number}", "mode": "late", "delay_ms": 1_200}
    stage.simulator.plan(slow)
    ref = stage.start("order_fulfilment", number)
    ring()
    wait_until(lambda: bool(arrivals(stage, ref, "create_shipment")), "the slow call is under way")

    began = time.monotonic()
    assert processes.end(worker, signal.SIGTERM) == 0, processes.log("leaving")[-3000:]
    seconds = time.monotonic() - began

    assert seconds < LIMIT_S + SLACK_S
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
    stage.simulator.plan(
        {"tool": "create_shipment", "match": f"O-{number}", "mode": "late", "delay_ms": 1_200}
    )
    ref = stage.start("order_fulfilment", number)
    wait_until(lambda: bool(arrivals(stage, ref, "create_shipment")), "the sweep drives the run")

    seconds, code = stopped(processes, sweep)

    assert (code, seconds < LIMIT_S + SLACK_S) == (0, True), processes.log("sweep")[-3000:]
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

    seconds, code = stopped(processes, relay)

    assert (code, seconds < SLACK_S) == (0, True), processes.log("relay")[-3000:]
    drain()


def stopped(processes: Processes, child: children.Child) -> tuple[float, int]:
    """End a process politely; seconds that it took, and its exit code."""
    began = time.monotonic()
    code = processes.end(child, signal.SIGTERM)
    return time.monotonic() - began, code
