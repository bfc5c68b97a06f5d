"""What happens to a run while several of its calls are out: stops, freezes, lost workers, answers in one moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from sagas import api
from sagas.errors import ClaimLost
from sagas.executor import Drain, drive, perform
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Attempt, Run
from sagas.orders import Call, Claim, Done, Together, Waiting
from sagas.states import ActionState, RunState
from tests.integration.sagas.conftest import drain
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_freeze import freeze, stop, unfreeze
from tests.integration.sagas.trips import GROUP, names, publish, records, start, states
from tools.world import World

__all__ = ["clear_stage", "stage"]


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    publish()
    return clear_stage


@pytest.fixture
def hand(scene: Stage) -> Iterator[Callable[[int], tuple[Claim, dict[str, Call]]]]:
    """Takes a run to where the calls of its group are marked as sent, and nothing has left."""
    world = World(scene.simulator.systems)

    def take(number: int) -> tuple[Claim, dict[str, Call]]:
        start(scene, number)
        claimed = ledger.claim_run(scene.run(number).pk, workers.enrol("test"))
        assert claimed is not None
        claim, order = claimed
        assert isinstance(order, Call)
        group = ledger.advance(claim, perform(order, world))
        assert isinstance(group, Together)
        calls = [one for one in group.orders if isinstance(one, Call)]
        return claim, {call.key.split(".")[1]: call for call in calls}

    yield take
    world.close()


def go_on(scene: Stage, claim: Claim, calls: dict[str, Call], *steps: str, **how: Any) -> list[Any]:
    """Make these calls and report them one by one, as one worker does; returns what was ordered after each."""
    world, left = World(scene.simulator.systems), dict(calls)
    orders = []
    for step in steps:
        seen = perform(left.pop(step), world)
        out = frozenset(call.action_id for call in left.values())
        orders.append(ledger.advance(claim, seen, out=out, **how))
    world.close()
    return orders


def test_a_run_is_given_back_only_when_nothing_of_it_is_out(
    scene: Stage, hand: Callable[[int], tuple[Claim, dict[str, Call]]]
) -> None:
    claim, calls = hand(7_200_101)

    orders = go_on(scene, claim, calls, "flight", "car", "hotel", last=True)

    assert [type(one) for one in orders] == [Waiting, Waiting, Done]
    assert scene.run(7_200_101).owner == ""
    scene.settle()
    assert scene.facts(7_200_101).state is RunState.COMPLETED


def test_two_answers_in_the_same_moment_have_one_winner_of_the_last_step(
    scene: Stage, hand: Callable[[int], tuple[Claim, dict[str, Call]]]
) -> None:
    """Whoever records last sees what the other has recorded: no join is lost, and none is made twice."""
    claim, calls = hand(7_200_111)
    world = World(scene.simulator.systems)
    go_on(scene, claim, calls, "car")
    seen = {step: perform(calls[step], world) for step in ("hotel", "flight")}
    barrier, orders = threading.Barrier(2), list[Any]()

    def report(step: str, other: str) -> None:
        barrier.wait(60)
        orders.append(ledger.advance(claim, seen[step], out=frozenset({calls[other].action_id})))
        connections.close_all()

    pairs = (("hotel", "flight"), ("flight", "hotel"))
    threads = [threading.Thread(target=report, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(type(one).__name__ for one in orders) == ["Call", "Waiting"]
    (last,) = [one for one in orders if isinstance(one, Call)]
    assert last.key.split(".")[1] == "last"
    assert [a.state for a in scene.facts(7_200_111).actions[:4]] == [ActionState.CONFIRMED] * 4
    world.close()


def test_a_stop_in_the_middle_of_a_group_waits_for_what_is_in_flight(
    scene: Stage, hand: Callable[[int], tuple[Claim, dict[str, Call]]]
) -> None:
    claim, calls = hand(7_200_121)
    go_on(scene, claim, calls, "car")

    stop(scene.ref(7_200_121))
    assert scene.facts(7_200_121).state is RunState.COMPENSATING
    left = {step: calls[step] for step in ("hotel", "flight")}
    orders = go_on(scene, claim, left, "flight")
    assert orders == [Waiting()]  # nothing is made up for while the hotel is out
    world = World(scene.simulator.systems)
    drive(claim, calls["hotel"], world)
    world.close()
    scene.settle()

    facts = scene.facts(7_200_121)
    assert facts.state is RunState.COMPENSATED
    made_up = [e.step for e in api.entries(facts.ref) if e.name == "tool.compensation.succeeded"]
    assert made_up == ["hotel", "flight", "car", "eve"]


@pytest.mark.requirement("S4-1")
def test_a_freeze_in_the_middle_of_a_group_holds_what_is_not_out_yet(scene: Stage) -> None:
    freeze_id = freeze(applies_to="tool:book_flight")
    start(scene, 7_200_131)
    drain()

    facts = scene.facts(7_200_131)
    assert states(facts) | {"eve": ""} == {
        "eve": "",
        "car": "confirmed",
        "hotel": "confirmed",
        "flight": "not_started",
        "last": "not_started",
    }
    assert scene.run(7_200_131).held
    unfreeze(freeze_id)
    scene.settle()
    assert scene.facts(7_200_131).state is RunState.COMPLETED


@pytest.mark.requirement("S4-8", "S3-6")
def test_a_worker_lost_with_several_calls_in_flight_leaves_all_of_them_unknown_and_they_are_asked_about(
    scene: Stage, hand: Callable[[int], tuple[Claim, dict[str, Call]]]
) -> None:
    """One call had taken effect, one never left, one was answered but not recorded."""
    claim, calls = hand(7_200_141)
    world = World(scene.simulator.systems)
    perform(calls["car"], world)
    answered = perform(calls["hotel"], world)

    workers.sign_off(claim.owner, "killed")
    assert workers.bury(claim.owner) == 1
    facts = scene.facts(7_200_141)
    assert {states(facts)[step] for step in GROUP} == {"unknown"}
    assert not Attempt.objects.filter(run_id=facts.id, finished_at=None).exists()
    with pytest.raises(ClaimLost):
        ledger.advance(claim, answered)  # kept as evidence, and nothing else

    scene.settle()
    scene.remember()
    assert scene.facts(7_200_141).state is RunState.COMPLETED
    for step in GROUP:
        assert len(records(scene, 7_200_141, "effect", of=step)) == 1, step
    world.close()


def test_what_comes_in_after_the_claim_is_lost_is_kept_and_not_applied(
    scene: Stage, hand: Callable[[int], tuple[Claim, dict[str, Call]]]
) -> None:
    """The one who drives has three calls out when its claim goes; what they answer becomes evidence."""
    claim, calls = hand(7_200_151)
    run_id = scene.run(7_200_151).pk
    Run.objects.filter(pk=run_id).update(fence=claim.fence + 1, owner="another")
    world = World(scene.simulator.systems)

    drive(claim, Together(orders=tuple(calls.values())), world)

    facts = scene.facts(7_200_151)
    assert {states(facts)[step] for step in GROUP} == {"sent"}
    assert names(facts).count("tool.execution.late_answer") == 3
    world.close()


def test_a_drain_drives_several_runs_with_groups_side_by_side(scene: Stage) -> None:
    for number in range(7_200_161, 7_200_165):
        start(scene, number)

    drainer = Drain("test", in_flight=2)
    driven = drainer.run(seconds=60)
    if driven < 4:
        # On a machine that stood still for a lease the drain ends its round, and the next one goes on.
        driven += drainer.run(seconds=60)
    drainer.close()
    assert driven >= 4

    assert {scene.facts(number).state for number in range(7_200_161, 7_200_165)} == {RunState.COMPLETED}
