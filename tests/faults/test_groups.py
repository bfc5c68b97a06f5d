"""A worker dies by SIGKILL with several calls of a run in flight; the sweep takes over."""

from __future__ import annotations

import signal

import pytest

from sagas import api
from sagas.ledger.start import run_ref
from sagas.states import RunState
from tests.faults.conftest import Processes, Victims, at_rest, effects, hurry, wait_until
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import Stage
from tests.integration.sagas.trips import GROUP, publish, start

NUMBER = 3_700_001


@pytest.mark.timeout(600)
@pytest.mark.requirement("S4-8", "S4-9", "S3-6")
def test_what_was_in_flight_with_the_dead_worker_took_effect_once_and_the_run_goes_on(
    stage: Stage, processes: Processes
) -> None:
    """It dies while it records the first answer; the others are on their way to the world."""
    ref = run_ref(AGENT, f"run-{NUMBER}")
    held = {"mode": "ok", "gate": "until it is dead"}
    stage.simulator.plan(*({"tool": f"book_{one}", "match": f"{ref}.{one}", **held} for one in GROUP[1:]))
    publish()
    start(stage, NUMBER)
    run_id = stage.run(NUMBER).pk
    victims = Victims()
    try:
        victims.send(run_id=run_id, point="confirm.before_commit", tool="book_car", direction="forward")
        victims.no_more()
        wait_until(lambda: victims.gone, "the worker is dead")
    finally:
        victims.close()
    assert victims.signals[victims.pids[run_id]] == signal.SIGKILL
    stage.simulator.let_pass("until it is dead")

    sweep = processes.sweep()
    wait_until(
        lambda: at_rest([ref]), "the sweep has recovered the run", meanwhile=lambda: hurry(stage, [ref])
    )
    assert processes.end(sweep) == 0, processes.log("sweep")[-3000:]

    facts = stage.facts(NUMBER)
    assert facts.state is RunState.COMPLETED
    lost = [entry.step for entry in api.entries(ref) if entry.name == "tool.execution.unknown"]
    assert set(GROUP) == set(lost)
    done = [record["key"].split(".")[1] for record in effects(stage, facts)]
    assert sorted(done) == sorted(["eve", *GROUP, "last"])
