"""A compensation that times out while its worker dies (S2-12): found, tried again, told of, and done in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sagas import alarms, api
from sagas.relay import ring
from sagas.states import CompensationState, RunState
from tests.faults.conftest import (
    Processes,
    arrivals,
    at_rest,
    children_of,
    effects,
    hurry,
    is_stopped,
    wait_until,
)
from tests.integration.sagas.stage import Stage

pytestmark = [pytest.mark.timeout(600), pytest.mark.requirement("S2-12", "S2-7")]

FOUND_WITHIN_S = 300.0
"""The requirement's five minutes; measured is far less."""


@pytest.fixture(autouse=True)
def planned(stage: Stage) -> Iterator[None]:
    """The shipment is refused; two calls that release the stock are lost, the first in a long silence."""
    stage.simulator.plan(
        {"tool": "create_shipment", "mode": "refuse"},
        {"tool": "release_stock", "mode": "no_answer", "attempts": [1]},
        {"tool": "release_stock", "mode": "reset", "attempts": [1]},  # the first that the rule above lets by
    )
    yield
    stage.simulator.plan({"tool": "create_shipment", "mode": "ok"}, {"tool": "release_stock", "mode": "ok"})


def outstanding(stage: Stage, number: int) -> CompensationState | None:
    made_up = stage.facts(number).action("reserve_stock").compensation
    return made_up.state if made_up is not None else None


def told(ref: str) -> list[str]:
    return [entry.name for entry in api.entries(ref) if entry.name.startswith("tool.compensation.")]


def kill_a_worker_in_its_compensation(stage: Stage, processes: Processes, name: str, refs: list[str]) -> None:
    """It is stopped when so many calls have left, so that the last of them at least is under way when it is killed."""
    where = {"point": "call.awaiting_answer", "tool": "release_stock", "direction": "compensation"}
    plan = [{**where, "nth": min(4, len(refs)), "do": "stop"}]
    (worker,) = processes.workers(name, env={"AMENDS_FAULT_POINTS": json.dumps(plan)})
    ring()
    wait_until(lambda: any(is_stopped(pid) for pid in children_of(worker.pid)), "compensations are under way")
    processes.kill(worker)


def test_the_sweep_finds_ten_compensations_whose_worker_died_and_brings_all_of_them_to_their_end(
    stage: Stage, processes: Processes
) -> None:
    numbers = range(4_000_601, 4_000_611)
    refs = [stage.start("order_fulfilment", number) for number in numbers]
    kill_a_worker_in_its_compensation(stage, processes, "doomed", refs)
    hanging = [n for n in numbers if outstanding(stage, n) is CompensationState.SENT]
    assert hanging

    sweep = processes.sweep()
    found = wait_until(
        lambda: CompensationState.SENT not in {outstanding(stage, n) for n in hanging},
        "every compensation in flight was found",
        meanwhile=processes.all_well,
    )
    done = found + wait_until(
        lambda: at_rest(refs), "all have come to rest", meanwhile=lambda: hurry(stage, refs)
    )

    print(f"{len(hanging)} dangling of 10: found after {found:.1f} s, all done after {done:.1f} s")  # noqa: T201
    assert found < FOUND_WITHIN_S
    for number, ref in zip(numbers, refs, strict=True):
        facts = stage.facts(number)
        assert facts.state is RunState.COMPENSATED
        # Asked about, tried again under the same key, and made up for once.
        calls = arrivals(stage, ref, "release_stock")
        assert len(calls) >= 3
        assert len({call["key"] for call in calls}) == 1
        assert [r["tool"] for r in effects(stage, facts)].count("release_stock") == 1
        assert told(ref)[-1] == "tool.compensation.succeeded"
        # Every call but the last left open what it had done: two were lost, and one more was marked as sent
        # and never left where the worker died in between.
        assert (
            2
            <= told(ref).count("tool.compensation.unknown")
            == told(ref).count("tool.compensation.started") - 1
        )
    assert processes.end(sweep) == 0


def test_what_dangles_for_five_minutes_is_told_of_by_the_sweep_until_it_is_done(
    stage: Stage, processes: Processes
) -> None:
    number = 4_000_701
    ref = stage.start("order_fulfilment", number)
    kill_a_worker_in_its_compensation(stage, processes, "doomed_too", [ref])
    assert "compensation.dangling" not in {alarm.code for alarm in alarms.in_force()}

    # Nobody is there to find it: by the database's clock five minutes go by.
    stage.clock.put_forward(FOUND_WITHIN_S + 1)
    (alarm,) = [one for one in alarms.in_force() if one.code == "compensation.dangling"]
    assert alarm.count == 1
    sweep = processes.sweep()
    said = wait_until(
        lambda: "compensation.dangling" in processes.log("sweep"),
        "the sweep says so",
        meanwhile=processes.all_well,
    )
    seconds = wait_until(
        lambda: at_rest([ref]), "it was found and done", meanwhile=lambda: hurry(stage, [ref])
    )

    print(f"alarm after {said:.1f} s, done after {said + seconds:.1f} s")  # noqa: T201
    assert stage.facts(number).state is RunState.COMPENSATED
    assert [r["tool"] for r in effects(stage, stage.facts(number))].count("release_stock") == 1
    assert "compensation.dangling" not in {alarm.code for alarm in alarms.in_force()}
    processes.end(sweep)
