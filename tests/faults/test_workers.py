"""Real workers, a real broker and the real sweep: what is lost, killed or doubled, and what comes of it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from sagas import api
from sagas.relay import broker, ring
from sagas.states import RunState
from tests.faults.conftest import Processes, arrivals, at_rest, effects, wait_until
from tests.integration.sagas.stage import Stage
from workbench.labs import children

pytestmark = pytest.mark.timeout(600)

LIFO = ["reclaim_limit", "withdraw_file", "release_customer_no"]


@pytest.fixture(scope="module")
def workers(processes: Processes) -> list[children.Child]:
    """Two workers that hear the bell, with the sweep behind them. One may be killed."""
    processes.sweep()
    return processes.workers("one", "two")


@pytest.mark.requirement("S2-10", "S0-36", "S0-68")
def test_twenty_runs_that_meet_a_500_at_step_4_are_all_compensated_3_2_1(
    stage: Stage, processes: Processes, workers: list[children.Child]
) -> None:
    numbers = range(4_000_001, 4_000_021)
    stage.simulator.plan({"tool": "send_sms", "mode": "fail_before"})

    refs = [stage.start("bank_opening", number) for number in numbers]
    ring()
    seconds = wait_until(lambda: at_rest(refs), "all twenty have come to rest", meanwhile=processes.all_well)

    cases = [stage.facts(number) for number in numbers]
    undone = [[r["tool"] for r in effects(stage, facts) if r["direction"] == "compensate"] for facts in cases]
    triggered = sum(bool(tools) for tools in undone)
    in_order = sum(tools == LIFO for tools in undone)
    succeeded = sum(facts.state is RunState.COMPENSATED for facts in cases)
    print(f"20 runs: triggered {triggered}, LIFO {in_order}, compensated {succeeded}, in {seconds:.1f} s")  # noqa: T201
    assert (triggered, in_order, succeeded) == (20, 20, 20)
    assert all(max(Counter(r["key"] for r in effects(stage, facts)).values()) == 1 for facts in cases)
    for facts in cases:
        started = [e.step for e in api.entries(facts.ref) if e.name == "tool.compensation.started"]
        assert started == ["grant_credit_line", "file_customer", "create_customer"]
    stage.simulator.plan({"tool": "send_sms", "mode": "ok"})


@pytest.mark.requirement("S4-29", "S1-6")
def test_a_killed_worker_is_replaced_by_the_other_in_the_middle_of_ten_compensations(
    stage: Stage, processes: Processes, workers: list[children.Child]
) -> None:
    numbers = range(4_000_101, 4_000_111)
    stage.simulator.plan(
        {"tool": "debit_fee", "mode": "refuse"},  # behind the message: a person decides
        {"tool": "send_sms", "mode": "refuse"},
        {"tool": "withdraw_file", "mode": "slow", "delay_ms": 400},
    )
    refs = [stage.start("bank_opening", number) for number in numbers]
    ring()
    wait_until(
        lambda: any(
            r["tool"] == "withdraw_file"
            for r in stage.simulator.ledger(kind="arrived")
            if any(ref in r["key"] for ref in refs)
        ),
        "a compensation is under way",
    )
    processes.kill(workers.pop())

    seconds = wait_until(lambda: at_rest(refs), "the other worker has finished")

    print(f"10 compensations, one of two workers killed: at rest after {seconds:.1f} s")  # noqa: T201
    for number in numbers:
        facts = stage.facts(number)
        assert facts.state is RunState.COMPENSATED
        assert [r["tool"] for r in effects(stage, facts) if r["direction"] == "compensate"] == LIFO
    stage.simulator.plan(
        *[{"tool": tool, "mode": "ok"} for tool in ("debit_fee", "send_sms", "withdraw_file")]
    )


@pytest.mark.requirement("S1-6", "S2-11")
def test_bells_without_number_and_bells_for_nothing_do_nothing_twice(
    stage: Stage, workers: list[children.Child]
) -> None:
    numbers = range(4_000_201, 4_000_205)
    refs = [stage.start("order_fulfilment", number) for number in numbers]

    for _ in range(25):
        ring()
    wait_until(lambda: at_rest(refs), "all have come to rest")
    for _ in range(5):
        ring("run_that_never_was")

    for number in numbers:
        facts = stage.facts(number)
        assert facts.state is RunState.COMPLETED
        assert Counter(r["tool"] for r in effects(stage, facts)) == Counter([a.tool for a in facts.actions])


@pytest.mark.requirement("S4-16")
def test_an_emptied_broker_costs_no_run_and_no_retry_comes_early(
    stage: Stage, workers: list[children.Child]
) -> None:
    first = 4_000_301
    stage.simulator.plan(
        {
            "tool": "create_shipment",
            "match": f"O-{first}",
            "mode": "throttle",
            "retry_after_s": 3,
            "attempts": [1],
        }
    )
    waiting = stage.start("order_fulfilment", first)
    ring()
    wait_until(lambda: bool(arrivals(stage, waiting, "create_shipment")), "the throttled call was made")
    broker().flushall()
    ready = stage.start("order_fulfilment", first + 1)
    broker().flushall()

    seconds = wait_until(
        lambda: bool(arrivals(stage, ready, "reserve_stock")), "work without a message is found"
    )
    wait_until(lambda: at_rest([waiting, ready]), "both have come to rest")

    print(f"broker emptied: the run without a message moved after {seconds:.2f} s")  # noqa: T201
    assert {stage.facts(first).state, stage.facts(first + 1).state} == {RunState.COMPLETED}
    one, two, *_ = (datetime.fromisoformat(r["at"]) for r in arrivals(stage, waiting, "create_shipment"))
    assert two - one >= timedelta(seconds=3)
