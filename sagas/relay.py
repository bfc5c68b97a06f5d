"""The bell and the relay: entries leave through the outbox; a broker message is never more than a hint.

Publishing is at least once, in order within a run; an event that cannot be published parks its run's events only,
an outage parks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from redis import Redis
from redis.exceptions import DataError, RedisError, ResponseError

from sagas import faultpoints
from sagas.entries import Cursor, EntryRow, engine, insert
from sagas.errors import NotFound
from sagas.facts import Actor
from sagas.models import Entry, Outbox, Run
from sagas.tx import durable
from tools.contract import Json

log = structlog.get_logger(__name__)

BELL = "sagas.drain"
"""Name of the task that drains what is due (`sagas.tasks`)."""

STREAM = "amends:events"
STREAM_LONGEST = 100_000
BATCH_RUNS = 50
MOST_TRIES = 5


def ring(run_ref: str = "") -> bool:
    """Ring the bell: somebody may look at the tables. Best effort; a lost ring costs two seconds, nothing else.

    Returns whether the broker took it.
    """
    faultpoints.reach("bell.before_ring", run=run_ref)
    try:
        # By name: the task stands above the engine, the bell below it.
        current_app.send_task(BELL, retry=False, ignore_result=True)
    except Exception:  # noqa: BLE001  a bell that cannot be rung is harmless, whatever broke it
        log.info("bell.not_rung", run=run_ref)
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Event:
    """A published event: CloudEvents' names; `id` is the same however often it is published."""

    id: str
    type: str
    subject: str
    time: str
    data: str

    def fields(self) -> dict[str, str]:
        """The event as the fields of a stream message."""
        return {
            "id": self.id,
            "source": "amends",
            "specversion": "1.0",
            "type": self.type,
            "subject": self.subject,
            "time": self.time,
            "datacontenttype": "application/json",
            "data": self.data,
        }


def event_of(entry: Entry) -> Event:
    """An entry as an event. Raises `ValueError` for what cannot be put into one."""
    data = {
        "run": entry.run_ref,
        "seq": entry.seq,
        "step": entry.step,
        "source": entry.source,
        "target": entry.target,
        "actor": {"kind": entry.actor_kind, "id": entry.actor_id, "role": entry.role},
        "after": entry.after,
    }
    return Event(
        id=f"{entry.run_ref}:{entry.seq}",
        type=f"org.amends.{entry.name}.v1",
        subject=entry.run_ref,
        time=entry.at.isoformat(),
        data=json.dumps(data, ensure_ascii=False, allow_nan=False),
    )


type Publish = Callable[[Event], None]


def to_stream(client: Redis) -> Publish:
    """Publish into the broker's stream, trimmed to about its longest length."""

    def publish(event: Event) -> None:
        client.xadd(STREAM, event.fields(), maxlen=STREAM_LONGEST, approximate=True)  # type: ignore[arg-type]

    return publish


def broker() -> Redis:
    """A client of the broker that gives up quickly."""
    url = settings.CELERY_BROKER_URL.replace("redis+socket://", "unix://").replace("virtual_host=", "db=")
    client: Redis = Redis.from_url(url, socket_timeout=2.0, socket_connect_timeout=1.0, decode_responses=True)
    return client


def relay_once(publish: Publish, *, limit: int = BATCH_RUNS) -> int:
    """Publish what is pending of up to `limit` runs; returns the events published.

    Rows are taken by their state under SKIP LOCKED, never by a cursor over their ids: ids do not commit in order.
    Raises `RedisError` when the broker is out of reach; nothing is marked then that was not published.
    """
    published = 0
    with durable():
        faultpoints.mark("relay")
        for run_id in _claim_runs(limit):
            published += _relay_run(run_id, publish)
    return published


def _claim_runs(limit: int) -> list[int]:
    """Runs with pending rows, each under an advisory lock, so that one run's events never leave out of order.

    A run with a parked event waits behind it: what came later must not overtake it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id FROM (SELECT DISTINCT run_id FROM sagas_outbox o "
            "WHERE published_at IS NULL AND parked_at IS NULL AND NOT EXISTS ("
            "  SELECT 1 FROM sagas_outbox p WHERE p.run_id = o.run_id AND p.parked_at IS NOT NULL) "
            "ORDER BY run_id LIMIT %s) pending "
            "WHERE pg_try_advisory_xact_lock(%s, (run_id %% 2147483647)::int)",
            [limit, 0x0B0B],
        )
        return [row[0] for row in cursor.fetchall()]


def _relay_run(run_id: int, publish: Publish) -> int:
    published = 0
    pending = Outbox.objects.filter(run_id=run_id, published_at=None, parked_at=None).order_by("seq_from")
    for row in pending:
        faultpoints.reach("relay.read")
        try:
            for entry in Entry.objects.filter(
                run_id=run_id, seq__gte=row.seq_from, seq__lte=row.seq_to
            ).order_by("seq"):
                publish(event_of(entry))
                published += 1
        except Exception as error:
            if isinstance(error, DatabaseError) or (
                isinstance(error, RedisError) and not _refuses_this_event(error)
            ):
                raise
            # Whatever is wrong with this event is this run's alone.
            _put_off(row, error)
            return published
        faultpoints.reach("relay.published")
        _mark(row)
    return published


def _refuses_this_event(error: RedisError) -> bool:
    """Whether the broker says no to one event, and not to all of them: an outage is never counted against an event."""
    if isinstance(error, DataError):
        return True
    told = str(error)
    return isinstance(error, ResponseError) and told.startswith("ERR ") and "unknown command" not in told


def _mark(row: Outbox) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sagas_outbox SET published_at = now_() WHERE id = %s", [row.pk])


def _put_off(row: Outbox, error: Exception) -> None:
    log.warning("event.not_published", run_id=row.run_id, tries=row.tries + 1, problem=type(error).__name__)
    problem = f"{type(error).__name__}: {error}"[:500]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_outbox SET tries = tries + 1, problem = %s, "
            "parked_at = CASE WHEN tries + 1 >= %s THEN now_() END WHERE id = %s RETURNING parked_at IS NOT NULL",
            [problem, MOST_TRIES, row.pk],
        )
        if cursor.fetchone()[0]:
            _say(cursor, "event.parked", engine("relay"), row.run_id, "", _which(row, problem))


@dataclass(frozen=True, kw_only=True)
class Parked:
    """Events that could not be published; what came later of the same run waits behind them."""

    run_ref: str
    seq_from: int
    seq_to: int
    waiting: int
    problem: str
    since: datetime


def parked() -> tuple[Parked, ...]:
    """Everything that is parked, the longest first, with how many commits of the same run wait behind it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.ref, o.seq_from, o.seq_to, o.problem, o.parked_at, "
            "(SELECT count(*) FROM sagas_outbox w WHERE w.run_id = o.run_id AND w.published_at IS NULL "
            " AND w.parked_at IS NULL) "
            "FROM sagas_outbox o JOIN sagas_run r ON r.id = o.run_id WHERE o.parked_at IS NOT NULL "
            "ORDER BY o.parked_at, o.id LIMIT 1000"
        )
        return tuple(
            Parked(run_ref=r[0], seq_from=r[1], seq_to=r[2], problem=r[3], since=r[4], waiting=r[5])
            for r in cursor.fetchall()
        )


def redeliver(run_ref: str, *, actor: Actor, reason: str) -> int:
    """Let a run's parked events go out again, in order, under the ids that they have; returns how many commits.

    Raises `NotFound` when nothing of this run is parked.
    """
    with durable(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_outbox SET parked_at = NULL, tries = 0 WHERE parked_at IS NOT NULL "
            "AND run_id = (SELECT id FROM sagas_run WHERE ref = %s) RETURNING run_id, seq_from, seq_to",
            [run_ref],
        )
        rows = cursor.fetchall()
        if not rows:
            raise NotFound("parked event of run", run_ref)
        after: Json = {"seq_from": min(row[1] for row in rows), "seq_to": max(row[2] for row in rows)}
        _say(cursor, "event.redelivery_requested", actor, rows[0][0], reason, after)
    return len(rows)


def _which(row: Outbox, problem: str) -> Json:
    return {"seq_from": row.seq_from, "seq_to": row.seq_to, "problem": problem}


def _say(cursor: Cursor, name: str, actor: Actor, run_id: int, reason: str, after: Json) -> None:
    """An entry beside the run's own sequence: about its events, it must not become one of them."""
    ref = Run.objects.values_list("ref", flat=True).get(pk=run_id)
    insert(cursor, [EntryRow(name=name, actor=actor, run_ref=ref, reason=reason, after=after)])


def lag_s() -> float:
    """Seconds that the oldest pending row has waited; 0 when nothing is pending."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(extract(epoch FROM now_() - min(created_at)), 0) FROM sagas_outbox "
            "WHERE published_at IS NULL AND parked_at IS NULL"
        )
        return float(cursor.fetchone()[0])
