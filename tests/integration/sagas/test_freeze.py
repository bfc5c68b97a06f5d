"""A freeze: nothing new goes out after its commit, what makes up for things and what asks goes on."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise

import pytest
from django.db import DatabaseError, connection, connections

from sagas import api
from sagas.executor import drive, perform
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Run
from sagas.orders import Ask, Call, Done
from sagas.states import ActionState, RunState
from sagas.tx import lock_freeze_shared
from tests.integration.sagas.conftest import OPERATOR, drain, effects
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tools.world import World

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S4-1")


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    return clear_stage


def freeze(scope: str = "forward", applies_to: str = "all") -> int:
    with api.transaction():
        return api.freeze(actor=OPERATOR, scope=scope, applies_to=applies_to, reason="accounts vanish")


def unfreeze(freeze_id: int) -> None:
    with api.transaction():
        api.unfreeze(actor=OPERATOR, freeze_id=freeze_id, reason="found and mended")


def test_no_forward_call_arrives_after_the_commit_and_unfreezing_lets_the_run_go_on(scene: Stage) -> None:
    scene.start("order_fulfilment", 6_000_001)
    run, owner, world = scene.run(6_000_001), workers.enrol("test"), World(scene.simulator.systems)
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, order = claimed
    assert isinstance(order, Call)
    seen = perform(order, world)  # the first call is under way when the freeze comes

    freeze_id = freeze()
    frozen_at = datetime.now().astimezone()
    order = ledger.advance(claim, seen)
    scene.start("order_fulfilment", 6_000_002)
    drain()

    assert isinstance(order, Done)
    assert api.run_facts(run.ref).action("reserve_stock").state is ActionState.CONFIRMED
    late = [r for r in scene.simulator.ledger(kind="arrived") if datetime.fromisoformat(r["at"]) > frozen_at]
    assert late == []
    held = list(Run.objects.filter(held=True).values_list("due_at", "owner"))
    assert held == [(None, ""), (None, "")]

    unfreeze(freeze_id)
    scene.settle()
    assert {scene.facts(n).state for n in (6_000_001, 6_000_002)} == {RunState.COMPLETED}
    assert effects(scene.simulator, "reserve_stock") == 2
    world.close()


@pytest.mark.parametrize(
    ("scope", "compensates"), [("forward", True), ("writes", False), ("everything", False)]
)
def test_compensations_go_on_under_a_freeze_of_forward_calls_only(
    scene: Stage, scope: str, compensates: bool
) -> None:
    scene.simulator.plan({"tool": "create_shipment", "mode": "throttle", "retry_after_s": 30})
    scene.start("order_fulfilment", 6_000_011)
    drain()
    freeze_id = freeze(scope)
    stop(scene.ref(6_000_011))
    drain()

    assert effects(scene.simulator, "release_stock") == (1 if compensates else 0)
    state = scene.facts(6_000_011).state
    assert state is (RunState.COMPENSATED if compensates else RunState.COMPENSATING)
    unfreeze(freeze_id)
    scene.settle()
    assert scene.facts(6_000_011).state is RunState.COMPENSATED
    assert effects(scene.simulator, "release_stock") == 1


def stop(run_ref: str) -> None:
    """Stop and compensate, as the person's command does."""
    run = Run.objects.get(ref=run_ref)
    with api.transaction(), opened(run.pk) as desk:
        ledger.turn_back(desk, "stopped", OPERATOR)
        desk.run.due_at, desk.run.held = desk.now, False
        desk.close(release=False)


@pytest.mark.parametrize("scope", ["forward", "writes", "everything"])
def test_status_queries_go_on_whatever_is_frozen_and_a_repeat_does_not(scene: Stage, scope: str) -> None:
    scene.simulator.plan({"tool": "reserve_stock", "mode": "reset", "attempts": [1]})
    scene.start("order_fulfilment", 6_000_021)
    drain()
    assert scene.facts(6_000_021).action("reserve_stock").state is ActionState.UNKNOWN

    freeze_id = freeze(scope)
    scene.settle()

    asked = scene.simulator.ledger(tool="get_reservation", kind="arrived")
    assert len(asked) >= 1
    action = scene.facts(6_000_021).action("reserve_stock")
    assert action.state is ActionState.PREPARED  # proved absent, and held
    assert len(scene.simulator.ledger(tool="reserve_stock", kind="arrived")) == 1
    unfreeze(freeze_id)
    scene.settle()
    assert scene.facts(6_000_021).state is RunState.COMPLETED


@pytest.mark.parametrize(
    ("applies_to", "stopped"),
    [
        ("tool:create_shipment", True),
        ("tool:send_mail", False),
        ("workflow:order_fulfilment", True),
        ("workflow:bank_opening", False),
        ("team:fulfilment", True),
        ("team:accounts", False),
    ],
)
def test_a_freeze_stops_what_it_names_and_nothing_else(scene: Stage, applies_to: str, stopped: bool) -> None:
    freeze(applies_to=applies_to)
    scene.start("order_fulfilment", 6_000_031)
    drain()

    facts = scene.facts(6_000_031)
    assert facts.state is (RunState.RUNNING if stopped else RunState.COMPLETED)
    assert effects(scene.simulator, "create_shipment") == (0 if stopped else 1)


def test_what_was_held_comes_back_paced(scene: Stage) -> None:
    freeze_id = freeze()
    for number in range(6_000_041, 6_000_047):
        scene.start("order_fulfilment", number)
    drain()

    unfreeze(freeze_id)

    due = sorted(due for due in Run.objects.values_list("due_at", flat=True) if due is not None)
    gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(due)]
    assert all(0.015 <= gap <= 0.05 for gap in gaps), gaps


def test_lifting_a_freeze_moves_what_it_held_and_leaves_what_another_holds(scene: Stage) -> None:
    orders = freeze(applies_to="workflow:order_fulfilment")
    accounts = freeze(applies_to="workflow:bank_opening")
    scene.start("order_fulfilment", 6_000_071)
    scene.start("bank_opening", 6_000_072)
    drain()
    assert Run.objects.filter(held=True).count() == 2

    unfreeze(orders)

    assert scene.run(6_000_071).due_at is not None
    assert (scene.run(6_000_072).due_at, scene.run(6_000_072).held) == (None, True)
    assert scene.run(6_000_072).held_by == accounts
    unfreeze(accounts)
    scene.settle()
    assert scene.facts(6_000_072).state is RunState.COMPLETED


def test_what_two_freezes_hold_is_held_by_the_second_when_the_first_is_lifted(scene: Stage) -> None:
    first, second = freeze(), freeze(applies_to="tool:reserve_stock")
    scene.start("order_fulfilment", 6_000_081)
    drain()

    unfreeze(first)
    scene.clock.put_forward(60)  # what was held comes back paced
    drain()

    run = scene.run(6_000_081)
    assert (run.held, run.held_by) == (True, second)
    assert effects(scene.simulator, "reserve_stock") == 0


def test_a_freeze_between_the_look_and_the_leap_stops_the_compensation(scene: Stage) -> None:
    scene.simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    scene.start("order_fulfilment", 6_000_051)
    run, owner, world = scene.run(6_000_051), workers.enrol("test"), World(scene.simulator.systems)
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, order = claimed
    while not isinstance(order, Ask):
        assert isinstance(order, Call)
        order = ledger.advance(claim, perform(order, world))
    looked = perform(order, world)

    freeze_id = freeze("everything")

    assert isinstance(ledger.advance(claim, looked), Done)
    assert effects(scene.simulator, "release_stock") == 0
    unfreeze(freeze_id)
    scene.settle()
    assert scene.facts(6_000_051).state is RunState.COMPENSATED
    world.close()


# --- The lock itself --------------------------------------------------------------------------------------------


def test_freezing_waits_for_a_commit_of_sent_under_way_and_holds_off_the_next(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections: whoever marks a call as sent has the lock shared until its COMMIT."""
    monkeypatch.setattr("sagas.tx.SILENT_FOR", "60s")  # as long as it takes here until somebody waits
    moments: dict[str, float] = {}
    inside, may_commit = threading.Event(), threading.Event()

    def mark_as_sent() -> None:
        with api.transaction():
            lock_freeze_shared()
            inside.set()
            assert may_commit.wait(60)
            moments["about to commit"] = time.monotonic()

    def freeze_now() -> None:
        freeze()
        moments["frozen"] = time.monotonic()

    sender = _thread(mark_as_sent)
    assert inside.wait(60)
    freezer = _thread(freeze_now)
    assert _somebody_waits_for_the_lock()
    assert "frozen" not in moments
    may_commit.set()
    for thread in (sender, freezer):
        thread.join(60)

    assert moments["about to commit"] <= moments["frozen"]


def test_a_call_is_not_marked_while_a_freeze_is_being_made(scene: Stage) -> None:
    """The freeze is not committed yet; the claim waits for it and then sees it. No byte leaves."""
    scene.start("order_fulfilment", 6_000_061)
    run, owner = scene.run(6_000_061), workers.enrol("test")
    frozen, may_commit = threading.Event(), threading.Event()
    ordered: list[object] = []

    def freeze_slowly() -> None:
        with api.transaction():
            api.freeze(actor=OPERATOR, reason="accounts vanish")
            frozen.set()
            assert may_commit.wait(60)

    def claim() -> None:
        claimed = ledger.claim_run(run.pk, owner)
        ordered.append(claimed[1] if claimed else None)

    freezer = _thread(freeze_slowly)
    assert frozen.wait(60)
    claimer = _thread(claim)
    assert _somebody_waits_for_the_lock()
    assert ordered == []
    may_commit.set()
    for thread in (freezer, claimer):
        thread.join(60)

    (order,) = ordered
    assert isinstance(order, Done)
    assert api.run_facts(run.ref).action("reserve_stock").state is not ActionState.SENT


@pytest.mark.requirement("S4-1")
def test_of_many_calls_racing_a_freeze_none_is_marked_after_its_commit(scene: Stage) -> None:
    """Three workers go on with ever new runs: nothing but the freeze ends them."""
    numbers = itertools.count(6_001_001)
    stopped: list[RunState] = []

    def claim_all() -> None:
        owner, world, state = workers.enrol("racer"), World(scene.simulator.systems), RunState.COMPLETED
        while state is RunState.COMPLETED:
            number = next(numbers)
            scene.start("order_fulfilment", number)
            claimed = ledger.claim_run(scene.run(number).pk, owner)
            assert claimed is not None
            drive(*claimed, world)
            state = scene.facts(number).state
        world.close()
        stopped.append(state)

    racers = [_thread(claim_all) for _ in range(3)]
    while len(scene.simulator.ledger(kind="arrived")) < 10:
        assert any(racer.is_alive() for racer in racers)
        time.sleep(0.005)
    freeze()
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_()")
        (frozen_at,) = cursor.fetchone()
    for racer in racers:
        racer.join(60)

    with connection.cursor() as cursor:
        cursor.execute("SELECT max(sent_at) FROM sagas_attempt")
        (last,) = cursor.fetchone()
    assert last <= frozen_at
    assert stopped == [RunState.RUNNING] * 3


def test_a_process_that_stopped_with_the_lock_keeps_nobody_from_freezing(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagas.tx.SILENT_FOR", "200ms")
    stopped, over = threading.Event(), threading.Event()

    def stop_in_the_middle() -> None:
        with contextlib.suppress(DatabaseError), api.transaction():
            lock_freeze_shared()
            stopped.set()
            over.wait(60)

    thread = _thread(stop_in_the_middle)
    assert stopped.wait(60)

    assert freeze()

    over.set()
    thread.join(60)
    assert not thread.is_alive()


def _thread(act: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _somebody_waits_for_the_lock() -> bool:
    """Whether a session waits for an advisory lock; looked at for up to a minute."""
    for _ in range(1200):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            if cursor.fetchone()[0]:
                return True
        time.sleep(0.05)
    return False
