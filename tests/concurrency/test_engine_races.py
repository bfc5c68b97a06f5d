"""Two actors at the same rows at the same moment, each with a connection of its own: burial, answers, late answers,
commands. Whoever comes second finds what the first left.
"""

from __future__ import annotations

from functools import partial

import pytest

from sagas import api
from sagas.errors import ClaimLost, NotAllowed
from sagas.executor import perform
from sagas.facts import Actor, ActorKind
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Entry, Evidence
from sagas.orders import Answered, Ask, Call, Claim, Order
from sagas.states import CompensationState
from sagas.tx import durable
from tests.concurrency.test_engine_claims import at_once
from tests.integration.sagas.conftest import OPERATOR, effects
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tools.world import World

__all__ = ["clear_stage", "stage"]

LEAD = Actor(kind=ActorKind.HUMAN, id="user:3", name="Lin", role="lead")


def claimed(stage: Stage, number: int, owner: str) -> tuple[Claim, Order]:
    found = ledger.claim_run(stage.run(number).pk, owner)
    assert found is not None
    return found


def called(stage: Stage, number: int, owner: str, tool: str, world: World) -> tuple[Claim, Answered]:
    """A worker that has called a tool and not yet told."""
    claim, order = claimed(stage, number, owner)
    while isinstance(order, Call | Ask):
        seen = perform(order, world)
        if isinstance(seen, Answered) and order.contract.tool == tool:
            return claim, seen
        order = ledger.advance(claim, seen)
    raise AssertionError(f"{tool} was never called")


@pytest.mark.requirement("S3-17", "S1-6")
def test_an_answer_that_meets_the_burial_of_its_worker_is_taken_once_or_kept_as_evidence(
    clear_stage: Stage,
) -> None:
    world = World(clear_stage.simulator.systems)
    for number in range(9_200_001, 9_200_007):
        clear_stage.start("order_fulfilment", number)
        owner = workers.enrol("slow")
        claim, seen = called(clear_stage, number, owner, "reserve_stock", world)
        clear_stage.clock.put_forward(workers.LEASE_S + 1)

        told, buried = at_once(partial(ledger.advance, claim, seen), partial(workers.bury, owner))

        assert not isinstance(buried, Exception)
        if isinstance(told, Call | Ask):
            # It came first: the burial freed the run with the next call marked as sent, which is unknown now.
            assert clear_stage.facts(number).action("reserve_stock").state.value == "confirmed"
        else:
            assert isinstance(told, ClaimLost)
            assert Evidence.objects.filter(run_id=clear_stage.run(number).pk, source="late").count() == 1
    clear_stage.settle()
    for number in range(9_200_001, 9_200_007):
        assert clear_stage.facts(number).state.value == "completed"
    assert effects(clear_stage.simulator, "reserve_stock") == 6
    assert effects(clear_stage.simulator, "send_notice") == 6
    world.close()


@pytest.mark.requirement("S3-17")
def test_of_two_sweeps_that_bury_the_same_worker_each_run_is_freed_by_one(clear_stage: Stage) -> None:
    owner = workers.enrol("dead")
    for number in range(9_200_011, 9_200_016):
        clear_stage.start("order_fulfilment", number)
        claimed(clear_stage, number, owner)
    clear_stage.clock.put_forward(workers.LEASE_S + 1)

    freed = at_once(*[partial(workers.bury, owner)] * 3)

    assert not any(isinstance(one, Exception) for one in freed)
    assert sum(one for one in freed if isinstance(one, int)) == 5
    lost = Entry.objects.filter(name="tool.execution.unknown", step="reserve_stock")
    assert lost.count() == 5
    clear_stage.settle()
    assert effects(clear_stage.simulator, "reserve_stock") == 5


@pytest.mark.requirement("S3-17")
def test_a_beat_that_meets_the_burial_does_not_bring_the_dead_back(clear_stage: Stage) -> None:
    for _ in range(6):
        owner = workers.enrol("late")
        clear_stage.clock.put_forward(workers.LEASE_S + 1)

        beats, _ = at_once(partial(workers.beat, owner), partial(workers.bury, owner))

        assert beats is False


@pytest.mark.requirement("S2-11", "S3-8")
def test_the_answer_to_a_compensation_that_meets_its_late_copy_makes_up_once(clear_stage: Stage) -> None:
    """The first worker's answer arrives late while the second one brings what its query found."""
    number = 9_200_021
    clear_stage.simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    clear_stage.start("order_fulfilment", number)
    world, old = World(clear_stage.simulator.systems), workers.enrol("old")
    old_claim, late = called(clear_stage, number, old, "release_stock", world)
    clear_stage.clock.put_forward(workers.LEASE_S + 1)
    workers.bury(old)
    clear_stage.clock.put_forward(1)
    new_claim, ask = claimed(clear_stage, number, workers.enrol("new"))
    assert isinstance(ask, Ask)
    found = perform(ask, world)

    at_once(partial(ledger.advance, old_claim, late), partial(ledger.advance, new_claim, found))

    clear_stage.settle()
    facts = clear_stage.facts(number)
    assert facts.state.value == "compensated"
    made_up = facts.action("reserve_stock").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.CONFIRMED
    done = Entry.objects.filter(name="tool.compensation.succeeded", run_ref=facts.ref)
    assert done.count() == 1
    assert effects(clear_stage.simulator, "release_stock") == 1
    world.close()


@pytest.mark.requirement("S1-6", "S2-5")
def test_of_an_edit_and_a_stop_at_once_exactly_one_is_carried_out(clear_stage: Stage) -> None:
    clear_stage.simulator.plan({"tool": "send_notice", "mode": "refuse"})
    numbers = range(9_200_041, 9_200_045)
    for number in numbers:
        clear_stage.start("order_fulfilment", number)
    clear_stage.settle()
    clear_stage.simulator.plan({"tool": "send_notice", "mode": "ok"})
    for number in numbers:
        facts = clear_stage.facts(number)
        assert facts.handoff is not None
        handoff = facts.handoff.ref
        edited = {"order": f"O-{number}", "text": "Another text."}

        def edit(handoff: str = handoff, edited: dict[str, str] = edited) -> str:
            with api.transaction(), api.desk(handoff, actor=LEAD, reason="Another text will do.") as desk:
                desk.edit_and_retry("send_notice", args=edited)
            return "edited"

        def stop(handoff: str = handoff) -> str:
            with api.transaction(), api.desk(handoff, actor=OPERATOR, reason="It is too late.") as desk:
                desk.stop_and_compensate()
            return "stopped"

        came = at_once(edit, stop)

        carried_out = [one for one in came if isinstance(one, str)]
        assert "stopped" in carried_out or isinstance(came[1], NotAllowed), came
        assert "edited" in carried_out or isinstance(came[0], NotAllowed), came
        clear_stage.settle()
        state = clear_stage.facts(number).state.value
        sent = len(clear_stage.simulator.ledger(tool="send_notice", kind="effect", business=f"O-{number}"))
        if carried_out == ["edited"]:
            assert (state, sent) == ("completed", 1)
        else:
            assert sent == 0
            assert state == "compensated"


@pytest.mark.requirement("S3-17")
def test_a_claim_that_meets_a_command_takes_the_run_before_it_or_as_the_command_left_it(
    clear_stage: Stage,
) -> None:
    clear_stage.simulator.plan({"tool": "send_notice", "mode": "refuse"})
    numbers = range(9_200_051, 9_200_055)
    for number in numbers:
        clear_stage.start("order_fulfilment", number)
    clear_stage.settle()
    for number in numbers:
        run = clear_stage.run(number)
        facts = clear_stage.facts(number)
        assert facts.handoff is not None
        handoff, owner = facts.handoff.ref, workers.enrol("worker")

        def stop(handoff: str = handoff) -> None:
            with api.transaction(), api.desk(handoff, actor=OPERATOR, reason="It is too late.") as desk:
                desk.stop_and_compensate()

        stopped, claim = at_once(stop, partial(ledger.claim_run, run.pk, owner))

        assert stopped is None
        assert not isinstance(claim, Exception)
        with durable(), opened(run.pk) as desk:
            assert desk.run.direction == "undo"
            desk.close(release=False)
        workers.sign_off(owner)
        workers.bury(owner)
    clear_stage.settle()
    for number in numbers:
        assert clear_stage.facts(number).state.value == "compensated"
