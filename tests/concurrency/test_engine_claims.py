"""Workers, drains, starts and commands of the engine at the same moment: one advances, the others read again and go."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connections

from sagas import api
from sagas.errors import ClaimLost, NotAllowed, StartKeyConflict
from sagas.executor import Drain, perform
from sagas.facts import Started
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Compensation, Entry, Run
from sagas.orders import Ask, Call, Claim, Order, Seen
from sagas.states import ActionState, RunState
from tests.integration.sagas.conftest import *  # noqa: F403 - the clock
from tests.integration.sagas.conftest import AGENT, OPERATOR, effects
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage
from tools.world import World

__all__ = ["clear_stage", "stage"]


def at_once[T](*acts: Callable[[], T]) -> list[T | Exception]:
    """Run each in a thread with its own connection, all let go together; what was raised is returned."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], T]) -> T | Exception:
        try:
            barrier.wait(60)
            return act()
        except Exception as error:  # noqa: BLE001 - judged by the test
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@pytest.mark.requirement("S3-17", "S1-6")
def test_of_six_workers_that_want_one_action_exactly_one_gets_it(clear_stage: Stage) -> None:
    for number in range(9_100_001, 9_100_006):
        clear_stage.start("order_fulfilment", number)
        run = clear_stage.run(number)
        owners = [workers.enrol("rival") for _ in range(6)]

        claims = at_once(*[partial(ledger.claim_run, run.pk, owner) for owner in owners])

        won = [claim for claim in claims if claim is not None]
        assert len(won) == 1
        assert not isinstance(won[0], Exception)
        claim, order = won[0]
        assert isinstance(order, Call)
        run.refresh_from_db()
        assert (run.owner, run.fence) == (claim.owner, 1)
        (attempt,) = api.run_facts(run.ref).action("reserve_stock").attempts
        assert attempt.number == 1


@pytest.mark.requirement("S3-17")
def test_of_two_that_bring_the_same_result_one_advances_and_the_other_lost_its_claim(
    clear_stage: Stage,
) -> None:
    """The first was buried and replaced; both come back with an answer at the same moment."""
    clear_stage.start("order_fulfilment", 9_100_011)
    run, world = clear_stage.run(9_100_011), World(clear_stage.simulator.systems)
    old = workers.enrol("old")
    claimed = ledger.claim_run(run.pk, old)
    assert claimed is not None
    old_claim, old_call = claimed
    assert isinstance(old_call, Call)
    late = perform(old_call, world)
    workers.sign_off(old)
    workers.bury(old)
    clear_stage.clock.put_forward(1)  # the query's first delay
    new = workers.enrol("new")
    again = ledger.claim_run(run.pk, new)
    assert again is not None
    new_claim, ask = again
    assert isinstance(ask, Ask)
    answer = perform(ask, world)

    results = at_once(lambda: ledger.advance(old_claim, late), lambda: ledger.advance(new_claim, answer))

    assert isinstance(results[0], ClaimLost)
    assert isinstance(results[1], Call)
    _drive(new_claim, results[1], world)
    clear_stage.settle()
    facts = clear_stage.facts(9_100_011)
    assert facts.state is RunState.COMPLETED
    assert effects(clear_stage.simulator, "reserve_stock") == 1
    assert facts.action("reserve_stock").confirm_seq == 1
    world.close()


def _drive(claim: Claim, order: Order, world: World) -> None:
    while isinstance(order, Call | Ask):
        order = ledger.advance(claim, perform(order, world))


@pytest.mark.requirement("S2-11", "S1-6")
def test_the_same_result_delivered_twice_is_recorded_once(clear_stage: Stage) -> None:
    """The same answer under the same claim: a failure event that arrives twice, compensated once."""
    clear_stage.simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    clear_stage.start("order_fulfilment", 9_100_021)
    run, world, owner = (
        clear_stage.run(9_100_021),
        World(clear_stage.simulator.systems),
        workers.enrol("test"),
    )
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, order = claimed
    seen: list[Seen] = []
    while isinstance(order, Call | Ask):
        seen.append(perform(order, world))
        order = ledger.advance(claim, seen[-1])
    before = Entry.objects.filter(run_id=run.pk).count()

    for one in seen:
        with pytest.raises(ClaimLost):
            ledger.advance(claim, one)
    clear_stage.settle()

    facts = clear_stage.facts(9_100_021)
    assert facts.state is RunState.COMPENSATED
    assert effects(clear_stage.simulator, "release_stock") == 1
    names = [entry.name for entry in api.entries(run.ref)]
    assert names.count("run.turned_back") == 1
    assert names.count("tool.compensation.succeeded") == 1
    # What came again is kept as evidence where it says something; nothing moved.
    assert set(names[before:]) <= {"tool.execution.late_answer"}
    assert facts.handoff is None
    world.close()


@pytest.mark.requirement("S2-11", "S1-6")
def test_four_drains_on_twenty_runs_do_nothing_twice(clear_stage: Stage) -> None:
    numbers = range(9_100_031, 9_100_051)
    clear_stage.simulator.plan({"tool": "create_shipment", "mode": "refuse", "share": 0.5, "seed": 1})
    for number in numbers:
        clear_stage.start("order_fulfilment", number)

    def answer_the_bell() -> int:
        drain = Drain("bell")
        try:
            return drain.run(seconds=120.0, linger_s=0.3)
        finally:
            drain.close()

    driven = at_once(*[answer_the_bell] * 4)

    assert sum(count for count in driven if isinstance(count, int)) == 20, driven
    by_key = Counter(r["key"] for r in clear_stage.simulator.ledger(kind="effect"))
    assert set(by_key.values()) == {1}
    states = Counter(clear_stage.facts(number).state for number in numbers)
    assert set(states) == {RunState.COMPLETED, RunState.COMPENSATED}
    assert effects(clear_stage.simulator, "release_stock") == states[RunState.COMPENSATED]
    assert Compensation.objects.count() == 2 * 20  # one for each compensable step, never a second
    assert set(Run.objects.values_list("deliveries", flat=True)) == {1}


@pytest.mark.requirement("S2-11", "S1-9", "S1-6")
def test_a_start_that_arrives_eight_times_starts_one_run_and_answers_all(clear_stage: Stage) -> None:
    given = INPUTS["order_fulfilment"](9_100_061)

    def begin() -> Started:
        return api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="once")

    results = at_once(*[begin] * 8)

    started = [result for result in results if isinstance(result, Started)]
    assert len(started) == 8, results
    assert len({result.run_ref for result in started}) == 1
    assert sum(result.created for result in started) == 1
    assert Run.objects.count() == 1
    assert [e.name for e in api.entries(started[0].run_ref)] == ["run.started"]


@pytest.mark.requirement("S1-9")
def test_of_two_starts_under_one_key_with_other_content_one_starts(clear_stage: Stage) -> None:
    def begin(number: int) -> Started:
        given = INPUTS["order_fulfilment"](number)
        return api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="twice")

    results = at_once(lambda: begin(9_100_071), lambda: begin(9_100_072))

    assert sum(isinstance(result, Started) for result in results) == 1
    assert sum(isinstance(result, StartKeyConflict) for result in results) == 1
    assert Run.objects.count() == 1


@pytest.mark.requirement("S2-11", "S3-17")
@pytest.mark.parametrize("turn", range(3))
def test_a_stop_ordered_while_the_answer_arrives_compensates_exactly_what_took_effect(
    clear_stage: Stage, turn: int
) -> None:
    """The stop and the confirmation race for the run: whichever comes first, stock ends as it was."""
    number = 9_100_081 + turn
    clear_stage.start("order_fulfilment", number)
    run, world, owner = clear_stage.run(number), World(clear_stage.simulator.systems), workers.enrol("test")
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, call = claimed
    assert isinstance(call, Call)
    answered = perform(call, world)

    results = at_once(lambda: ledger.advance(claim, answered), lambda: _stop(run.pk))

    order = results[0]
    assert order is not None
    assert not isinstance(order, Exception), order
    assert results[1] is None
    _drive(claim, order, world)
    clear_stage.settle()
    facts = clear_stage.facts(number)
    assert facts.state is RunState.COMPENSATED
    assert (
        effects(clear_stage.simulator, "reserve_stock")
        == effects(clear_stage.simulator, "release_stock")
        == 1
    )
    assert effects(clear_stage.simulator, "send_notice") == 0
    assert [e.name for e in api.entries(facts.ref)].count("run.turned_back") == 1
    world.close()


def _stop(run_id: int) -> None:
    with api.transaction(), opened(run_id) as desk:
        ledger.turn_back(desk, "stopped", OPERATOR)
        desk.close(release=False)


@pytest.mark.requirement("S3-17", "S1-6")
@pytest.mark.parametrize("first", ["evidence", "verdict", "whoever"])
def test_a_wrong_verdict_that_meets_the_evidence_leaves_no_effect_unknown(
    clear_stage: Stage, first: str
) -> None:
    """A worker's query finds the reservation while a person says that it was never made."""
    clear_stage.simulator.plan(
        {"tool": "reserve_stock", "mode": "cut"}, {"tool": "get_reservation", "mode": "query_down"}
    )
    clear_stage.start("order_fulfilment", 9_100_091)
    clear_stage.settle()
    facts = clear_stage.facts(9_100_091)
    assert facts.handoff is not None
    assert facts.state is RunState.HANDOFF
    clear_stage.simulator.plan({"tool": "get_reservation", "mode": "ok"})
    clear_stage.clock.put_forward(120)
    ref, run, owner = facts.handoff.ref, clear_stage.run(9_100_091), workers.enrol("test")
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, ask = claimed
    assert isinstance(ask, Ask)
    world = World(clear_stage.simulator.systems)
    found = perform(ask, world)

    def bring() -> None:
        _drive(claim, ledger.advance(claim, found), world)

    def judge() -> None:
        with api.transaction(), api.desk(ref, actor=OPERATOR, command_id="c-1", reason="looked") as desk:
            desk.resolve_not_happened("reserve_stock")

    match first:
        case "evidence":
            bring()
            with pytest.raises(NotAllowed):
                judge()
        case "verdict":
            judge()
            bring()
        case _:
            results = at_once(bring, judge)
            assert results[0] is None, results
            assert results[1] is None or isinstance(results[1], NotAllowed), results

    action = clear_stage.facts(9_100_091).action("reserve_stock")
    assert action.state is ActionState.CONFIRMED
    assert action.provider_ref
    assert action.compensation is not None
    assert action.compensation.args == {"reservation": action.provider_ref}
    world.close()
