"""The outbox leaves at least once, in order within a run, and nothing is skipped; one bad event is one run's trouble."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from redis import Redis
from redis.exceptions import ConnectionError as BrokerGone
from redis.exceptions import RedisError, ResponseError

from sagas import api, relay
from sagas.errors import NotFound
from sagas.ledger.desk import opened
from sagas.models import Entry, Outbox, Run
from sagas.relay import Event, broker, relay_once, to_stream
from tests.integration.sagas.conftest import OPERATOR
from tests.integration.sagas.stage import Stage, clear_stage, stage

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S4-19")


@pytest.fixture
def scene(clear_stage: Stage) -> Stage:
    return clear_stage


@pytest.fixture
def stream(scene: Stage) -> Iterator[Redis]:
    client = broker()
    client.delete(relay.STREAM)
    yield client
    client.delete(relay.STREAM)
    client.close()


class Log:
    """A publisher that writes down what it was given, and may be told to fail."""

    def __init__(self, fail: Callable[[Event], None] = lambda event: None) -> None:
        self.events: list[Event] = []
        self._fail = fail

    def __call__(self, event: Event) -> None:
        self._fail(event)
        self.events.append(event)

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events]


def everything() -> list[str]:
    return [f"{e.run_ref}:{e.seq}" for e in Entry.objects.exclude(seq=None).order_by("run_id", "seq")]


def say(run_ref: str, *names: str) -> None:
    """One more commit of a run: entries and their outbox row."""
    run = Run.objects.get(ref=run_ref)
    with api.transaction(), opened(run.pk) as desk:
        for name in names:
            desk.say(name, actor=OPERATOR)
        desk.close(release=False)


def test_every_entry_of_a_run_leaves_once_and_in_order(scene: Stage, stream: Redis) -> None:
    for number in (7_000_001, 7_000_002):
        scene.start("order_fulfilment", number)
    scene.settle()

    while relay_once(to_stream(stream)):
        pass

    messages: Any = stream.xrange(relay.STREAM)
    sent = [fields for _, fields in messages]
    assert sorted(fields["id"] for fields in sent) == sorted(everything())
    for number in (7_000_001, 7_000_002):
        numbers = [json.loads(f["data"])["seq"] for f in sent if f["subject"] == scene.ref(number)]
        assert numbers == list(range(1, len(numbers) + 1))
    first = sent[0]
    assert (first["source"], first["specversion"]) == ("amends", "1.0")
    assert first["type"] == "org.amends.run.started.v1"
    assert relay_once(to_stream(stream)) == 0


def test_a_crash_between_publish_and_mark_sends_the_same_ids_again(scene: Stage) -> None:
    scene.start("order_fulfilment", 7_000_011)
    scene.settle()
    first, second = Log(), Log()

    class Crash(BaseException):
        """The process is gone; no handler of the relay sees it."""

    with pytest.raises(Crash):
        _relay_and_crash(first, Crash)
    connections.close_all()
    relay_once(second)

    assert first.ids == everything()
    assert second.ids == first.ids


def _relay_and_crash(publish: Log, crash: type[BaseException]) -> None:
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(relay, "durable", transaction.atomic)
        relay_once(publish)
        raise crash


def test_a_relay_whose_session_was_ended_while_it_stalled_marks_nothing_of_what_another_took_over(
    scene: Stage,
) -> None:
    """A stalled relay loses its session to the server's limit; when it goes on it may repeat, never overwrite."""
    ref = scene.start("order_fulfilment", 7_000_015)
    for _ in range(3):
        say(ref, "human.handoff.commented")
    taken_over = Log()

    def stall(event: Event) -> None:
        if event.id != f"{ref}:2":
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (backend,) = cursor.fetchone()

        def end_it_and_take_over() -> None:
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [backend])
                relay_once(taken_over)
            finally:
                connections.close_all()

        other = threading.Thread(target=end_it_and_take_over)
        other.start()
        other.join(60)

    stalled = Log(stall)
    with pytest.raises(OperationalError):
        relay_once(stalled)
    connections.close_all()

    assert taken_over.ids == everything()
    assert stalled.ids == [f"{ref}:1", f"{ref}:2"]
    assert not Outbox.objects.filter(published_at=None).exists()
    assert relay_once(Log()) == 0


def test_an_outage_marks_nothing_parks_nothing_and_loses_nothing(scene: Stage) -> None:
    scene.start("order_fulfilment", 7_000_021)
    scene.settle()

    def gone(event: Event) -> None:
        if event.id.endswith(":3"):
            raise BrokerGone("connection refused")

    for _ in range(relay.MOST_TRIES + 2):
        with pytest.raises(BrokerGone):
            relay_once(Log(gone))

    assert list(Outbox.objects.filter(tries__gt=0)) == []
    assert list(Outbox.objects.exclude(parked_at=None)) == []
    back = Log()
    relay_once(back)
    assert back.ids == everything()


def test_an_event_that_cannot_be_published_parks_its_own_run_and_no_other(scene: Stage) -> None:
    poisoned, healthy = scene.start("order_fulfilment", 7_000_031), scene.start("order_fulfilment", 7_000_032)

    def spit_out(event: Event) -> None:
        if event.subject == poisoned and json.loads(event.data)["seq"] == 2:
            raise ValueError("cannot be put into an event")

    log = Log(spit_out)
    say(poisoned, "human.handoff.commented")
    say(poisoned, "human.handoff.commented")
    say(healthy, "human.handoff.commented")

    for _ in range(relay.MOST_TRIES + 3):
        relay_once(log)

    assert [i for i in log.ids if i.startswith(healthy)] == [f"{healthy}:1", f"{healthy}:2"]
    # In order within the run: behind the bad one nothing overtakes it.
    assert [i for i in log.ids if i.startswith(poisoned)] == [f"{poisoned}:1"]
    (parked,) = Outbox.objects.exclude(parked_at=None)
    assert (parked.seq_from, parked.tries) == (2, relay.MOST_TRIES)
    assert "cannot be put into an event" in parked.problem


def test_a_parked_run_goes_on_in_order_once_somebody_lets_it(scene: Stage) -> None:
    ref, sick = scene.start("order_fulfilment", 7_000_041), True

    def spit_out(event: Event) -> None:
        if sick:
            raise ValueError("cannot be put into an event")

    for _ in range(relay.MOST_TRIES):
        relay_once(Log(spit_out))
    say(ref, "human.handoff.commented")
    sick = False
    (waits,) = api.parked()
    assert (waits.run_ref, waits.seq_from, waits.waiting) == (ref, 1, 1)
    assert "cannot be put into an event" in waits.problem
    assert {alarm.code for alarm in api.alarms()} >= {"outbox.parked"}
    assert api.redeliver(ref, actor=OPERATOR, reason="the consumer was mended") == 1
    log = Log(spit_out)

    relay_once(log)

    assert log.ids == [f"{ref}:1", f"{ref}:2"]
    assert api.parked() == ()
    told = Entry.objects.filter(run_ref=ref, seq=None).order_by("id")
    assert [(one.name, one.actor_id) for one in told] == [
        ("event.parked", "engine"),
        ("event.redelivery_requested", OPERATOR.id),
    ]
    with pytest.raises(NotFound):
        api.redeliver(ref, actor=OPERATOR, reason="again")


def test_a_hundred_healthy_runs_are_not_held_up_by_twenty_events_that_are_always_refused(
    scene: Stage,
) -> None:
    """The broker itself says no to one run's events; batches are smaller than the number of bad events."""
    sick = scene.start("order_fulfilment", 7_000_100)
    for _ in range(19):
        say(sick, "human.handoff.commented")
    healthy = [scene.start("order_fulfilment", number) for number in range(7_000_101, 7_000_131)]

    def refuse(event: Event) -> None:
        if event.subject == sick:
            raise ResponseError("ERR the event does not fit")

    log = Log(refuse)
    for _ in range(relay.MOST_TRIES + 2):
        relay_once(log, limit=10)

    assert sorted(log.ids) == sorted(f"{ref}:1" for ref in healthy)
    (parked,) = api.parked()
    assert (parked.run_ref, parked.seq_from, parked.waiting) == (sick, 1, 19)


@pytest.mark.parametrize(
    "gone",
    [
        BrokerGone("connection refused"),
        ResponseError("OOM command not allowed when used memory > 'maxmemory'."),
        ResponseError("READONLY You can't write against a read only replica."),
        ResponseError("ERR unknown command 'XADD'"),
        ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
    ],
    ids=["gone", "memory", "replica", "command", "type"],
)
def test_what_is_wrong_with_every_event_is_an_outage_and_parks_none(scene: Stage, gone: RedisError) -> None:
    scene.start("order_fulfilment", 7_000_141)

    def fail(event: Event) -> None:
        raise gone

    for _ in range(relay.MOST_TRIES + 1):
        with pytest.raises(RedisError):
            relay_once(Log(fail))

    assert api.parked() == ()
    log = Log()
    relay_once(log)
    assert log.ids == everything()


def test_rows_of_a_transaction_that_commits_late_are_not_skipped(scene: Stage) -> None:
    """A lower id that becomes visible after a higher one was published: the trap of every cursor over a sequence."""
    late_ref, early_ref = (
        scene.start("order_fulfilment", 7_000_051),
        scene.start("order_fulfilment", 7_000_052),
    )
    relay_once(Log())
    inside, may_commit = threading.Event(), threading.Event()

    def commit_late() -> None:
        try:
            with api.transaction(), opened(Run.objects.get(ref=late_ref).pk) as desk:
                desk.say("human.handoff.commented", actor=OPERATOR)
                desk.close(release=False)
                inside.set()
                assert may_commit.wait(60)
        finally:
            connections.close_all()

    late = threading.Thread(target=commit_late)
    late.start()
    assert inside.wait(60)
    say(early_ref, "human.handoff.commented")
    first, second = Log(), Log()
    relay_once(first)
    may_commit.set()
    late.join(60)
    relay_once(second)

    rows = {row.run_id: row.pk for row in Outbox.objects.filter(seq_from=2)}
    assert rows[Run.objects.get(ref=late_ref).pk] < rows[Run.objects.get(ref=early_ref).pk]
    assert first.ids == [f"{early_ref}:2"]
    assert second.ids == [f"{late_ref}:2"]


def test_two_relays_at_once_share_the_runs_and_keep_each_run_in_order(scene: Stage) -> None:
    for number in range(7_000_061, 7_000_069):
        ref = scene.start("order_fulfilment", number)
        for _ in range(4):
            say(ref, "human.handoff.commented", "human.handoff.commented")
    log, barrier, expected = Log(), threading.Barrier(3), len(everything())

    def publish_all() -> None:
        try:
            barrier.wait(60)
            # A relay that finds every row in another's hands publishes nothing, and comes again.
            until = time.monotonic() + 60
            while len(log.ids) < expected and time.monotonic() < until:
                relay_once(log, limit=3)
        finally:
            connections.close_all()

    relays = [threading.Thread(target=publish_all) for _ in range(3)]
    for thread in relays:
        thread.start()
    for thread in relays:
        thread.join(60)

    assert sorted(log.ids) == sorted(everything())
    for number in range(7_000_061, 7_000_069):
        numbers = [int(i.rpartition(":")[2]) for i in log.ids if i.startswith(scene.ref(number))]
        assert all(later == sooner + 1 for sooner, later in pairwise(numbers))


def test_an_entry_and_its_outbox_row_are_one_commit(scene: Stage) -> None:
    """One row per run and commit, naming exactly the entries of that commit; no entry without one."""
    scene.simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    scene.start("order_fulfilment", 7_000_071)
    scene.settle()

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT o.xmin::text, o.seq_from, o.seq_to, array_agg(DISTINCT e.xid::text), count(*) "
            "FROM sagas_outbox o JOIN sagas_entry e ON e.run_id = o.run_id AND e.seq BETWEEN o.seq_from AND o.seq_to "
            "WHERE o.run_id = %s GROUP BY o.id, o.xmin ORDER BY o.seq_from",
            [scene.run(7_000_071).pk],
        )
        rows = cursor.fetchall()
    expected = 1
    for xmin, seq_from, seq_to, xids, entries in rows:
        assert xids == [xmin]
        assert (seq_from, entries) == (expected, seq_to - seq_from + 1)
        expected = seq_to + 1
    assert expected == scene.run(7_000_071).seq + 1
