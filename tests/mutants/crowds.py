"""Scenes in which several act at once, each with a connection of its own."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import psycopg
from django.db import connections

from sagas import api, faultpoints, gates
from sagas.errors import ClaimLost
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Action, Gate, Outbox, Run, Turn
from sagas.tx import durable
from tests.mutants.scene import AGENT, REASON, Scene


def rivals(scene: Scene) -> None:
    """Two people and a worker at one run at the same moment: one after another, nobody is thrown out."""
    refs = [
        scene.start("order_fulfilment", number, {"tool": "send_notice", "mode": "refuse"})
        for number in range(7_000_061, 7_000_064)
    ]
    scene.settle()
    before = _deadlocks(scene.owner_url)
    broken: list[str] = []

    def comment(ref: str, number: int) -> None:
        try:
            with durable(), opened(scene.run_id(ref)) as desk:
                action = desk.actions[-1]
                time.sleep(0.05)
                desk.set(action, due_at=None, queries=action.queries + 1)
                desk.say("human.handoff.commented", aside=True, reason=str(number))
                desk.close(release=False)
        except Exception as error:  # noqa: BLE001  whatever it is, somebody was thrown out
            broken.append(repr(error)[:200])
        finally:
            connections.close_all()

    def touch(ref: str) -> None:
        """Somebody who holds the run's lock and then changes an action, in the one order of locks."""
        with psycopg.connect(scene.owner_url) as other, suppress(psycopg.Error):
            other.execute("SELECT id FROM sagas_run WHERE ref = %s FOR NO KEY UPDATE", [ref])
            time.sleep(0.4)
            other.execute(
                "SELECT id FROM sagas_action WHERE run_id = %s FOR NO KEY UPDATE", [scene.run_id(ref)]
            )

    for ref in refs:
        threads = [threading.Thread(target=touch, args=(ref,))]
        threads += [threading.Thread(target=comment, args=(ref, number)) for number in range(4)]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join(30)
    scene.must(not broken, f"thrown out: {broken[:1]}")
    time.sleep(1.1)  # the server tells of deadlocks with a delay
    scene.must(_deadlocks(scene.owner_url) == before, "two that wanted the same rows deadlocked")


def _deadlocks(owner_url: str) -> int:
    with psycopg.connect(owner_url) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def frozen(scene: Scene) -> None:
    """A freeze: it waits for a commit of `sent` that is open, and nothing leaves after it."""
    ref = scene.start("order_fulfilment", 7_000_091)
    other = scene.start("order_fulfilment", 7_000_092)
    at_commit, go_on, frozen_at = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        at_commit.set()
        go_on.wait(10)

    faultpoints.plan(faultpoints.Plan(point="sent.before_commit", tool="reserve_stock", run=ref, call=hold))

    def work() -> None:
        claimed = scene.claim(ref, workers.enrol("worker"))
        if claimed is not None:
            with suppress(ClaimLost):
                scene.drive(*claimed)
        connections.close_all()

    def freeze() -> None:
        with api.transaction():
            api.freeze(actor=AGENT, reason=REASON)
        frozen_at.set()
        connections.close_all()

    threads = [threading.Thread(target=work), threading.Thread(target=freeze)]
    threads[0].start()
    at_commit.wait(10)
    threads[1].start()
    scene.must(not frozen_at.wait(0.5), "a freeze did not wait for a call that was about to leave")
    go_on.set()
    for thread in threads:
        thread.join(20)
    faultpoints.plan()
    scene.drain()
    scene.must(
        scene.facts(other).action("reserve_stock").sent_at is None, "a call left while everything was frozen"
    )
    with api.transaction():
        for one in api.freezes():
            api.unfreeze(actor=AGENT, freeze_id=one.id, reason=REASON)
    scene.settle()


def relay(scene: Scene) -> None:
    """Events of two runs whose transactions commit in the other order than they took their numbers."""
    slow = scene.start("order_fulfilment", 7_000_191, {"tool": "send_notice", "mode": "refuse"})
    fast = scene.start("order_fulfilment", 7_000_192, {"tool": "send_notice", "mode": "refuse"})
    scene.settle()
    scene.publish()
    written, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with durable(), opened(scene.run_id(slow)) as desk:
            desk.say("human.handoff.commented", aside=True, reason="slow")
            desk.close(release=False)
            written.set()
            go_on.wait(10)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    written.wait(10)
    for number in range(3):
        with durable(), opened(scene.run_id(fast)) as desk:
            desk.say("human.handoff.commented", aside=True, reason=str(number))
            desk.close(release=False)
    scene.publish()
    go_on.set()
    thread.join(10)
    scene.publish()
    scene.must(not Outbox.objects.filter(published_at=None).exists(), "an event was skipped")


def herd(scene: Scene) -> None:
    """Two calls of a run wait at one gate, in the order of their turns and in the other: it is due for the first."""
    Gate.objects.create(tool="reserve_stock")
    for number, apart in ((7_000_201, [5.0, 0.0]), (7_000_202, [0.0, 5.0])):
        ref = scene.start("order_fulfilment", number)
        run = Run.objects.filter(pk=scene.run_id(ref))
        run.update(due_at=api.now() + timedelta(minutes=1))
        for action in Action.objects.filter(run_id=scene.run_id(ref)).order_by("pk")[:2]:
            Turn.objects.create(run=action.run, action=action, tool="reserve_stock", flow="one")
        with patch("sagas.gates.random.uniform", side_effect=apart):
            gates.hand_out("reserve_stock")
        turns = Turn.objects.filter(run_id=scene.run_id(ref)).values_list("go_at", flat=True)
        first = min(at for at in turns if at is not None)
        scene.must(
            run.get().due_at == first, f"the first turn comes at {first}, its run at {run.get().due_at}"
        )
    scene.settle()
