"""The engine's own state, part by part, as a person on duty reads it. Each part is read by itself: one that cannot be
read hides no other. Reads only; counts stop at `CAP`.

Whether this is well or ill is said by `sagas.alarms`; a probe asks `sagas.health`.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.db import connection
from redis.exceptions import RedisError

from sagas.ledger import ears
from sagas.models import Reconciliation
from sagas.readings import (
    BrokerSeen,
    Counted,
    DatabaseSeen,
    OutboxSeen,
    Outstanding,
    ReconciliationSeen,
    StandsStill,
    Waiting,
    WorkerSeen,
)
from sagas.relay import broker

CAP = 1000
MOST_WORKERS = 100
SILENT_S = 15.0
"""A sweep renews its lease every second; after this long nobody is taken to be there."""


def workers_seen() -> tuple[WorkerSeen, ...]:
    """The incarnations whose lease runs or has run out without anybody having noticed, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT w.id, w.kind, w.place, w.started_at, extract(epoch FROM w.lease_until - clock.at), "
            "extract(epoch FROM clock.at - w.beat_at), "
            "(SELECT count(*) FROM sagas_run r WHERE r.owner = w.id AND r.owner <> '') "
            "FROM sagas_worker w, (SELECT now_() AS at) clock WHERE w.ended_at IS NULL "
            "ORDER BY w.started_at, w.id LIMIT %s",
            [MOST_WORKERS],
        )
        return tuple(
            WorkerSeen(
                id=pk,
                kind=kind,
                place=place,
                started_at=started,
                lease_left_s=float(left),
                beat_s=max(float(beat), 0.0),
                runs=runs,
            )
            for pk, kind, place, started, left, beat, runs in cursor.fetchall()
        )


def standing_still() -> StandsStill | None:
    """Whether automatic work stands still: a sweep that was there is silent, or due work waits and nobody is heard."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT extract(epoch FROM clock.at - max(beat_at)) FROM sagas_worker WHERE kind = 'sweep'), "
            "EXISTS (SELECT 1 FROM sagas_worker WHERE ended_at IS NULL "
            "        AND beat_at > clock.at - make_interval(secs => %(silent)s)), "
            "coalesce((SELECT extract(epoch FROM clock.at - min(due_at)) FROM sagas_run "
            "          WHERE due_at <= clock.at), 0) FROM (SELECT now_() AS at) clock",
            {"silent": SILENT_S},
        )
        silent, heard, waits = cursor.fetchone()
    if heard or (silent is None and waits <= SILENT_S):
        return None
    return StandsStill(silent_s=None if silent is None else max(float(silent), 0.0), waiting_s=float(waits))


def waiting() -> Waiting:
    """What is due now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM max(at) - min(due_at)), 0), "
            "(SELECT count(*) FROM (SELECT 1 FROM sagas_run WHERE held LIMIT %(cap)s) kept) "
            "FROM (SELECT due_at, clock.at FROM sagas_run, (SELECT now_() AS at) clock "
            "      WHERE due_at <= clock.at ORDER BY due_at LIMIT %(cap)s) part",
            {"cap": CAP},
        )
        due, oldest, held = cursor.fetchone()
    return Waiting(due=due, oldest_s=float(oldest), held=held)


def broker_seen() -> BrokerSeen | None:
    """What waits in the queue of the bells, and whether it is heard; None when the broker cannot be reached."""
    try:
        with broker() as client:
            policy = str(client.info("memory").get("maxmemory_policy", ""))
            bells = int(client.llen(settings.CELERY_TASK_DEFAULT_QUEUE))
    except (RedisError, OSError):
        return None
    return BrokerSeen(bells=bells, unheard_s=ears.silence_s(), policy=policy)


def outbox_seen() -> OutboxSeen:
    """What waits for the relay."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM (SELECT now_()) - min(created_at)), 0), "
            "(SELECT count(*) FROM (SELECT 1 FROM sagas_outbox WHERE parked_at IS NOT NULL LIMIT %(cap)s) kept) "
            "FROM (SELECT created_at FROM sagas_outbox WHERE published_at IS NULL AND parked_at IS NULL "
            "      LIMIT %(cap)s) part",
            {"cap": CAP},
        )
        count, oldest, parked = cursor.fetchone()
    return OutboxSeen(waiting=count, oldest_s=max(float(oldest), 0.0), parked=parked)


def unknown_steps() -> Counted:
    """Steps whose outcome is unknown just now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), min(unknown_since) FROM (SELECT unknown_since FROM sagas_action "
            "WHERE unknown_since IS NOT NULL AND state = 'unknown' ORDER BY unknown_since LIMIT %s) part",
            [CAP],
        )
        count, since = cursor.fetchone()
    return Counted(count=count, since=since)


def outstanding() -> Outstanding:
    """Compensations that have been begun, or should have been, and are not done."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE since < clock.at - interval '5 minutes'), min(since), "
            "(SELECT count(*) FROM (SELECT 1 FROM sagas_handoff WHERE state <> 'resolved' AND compensation_failed "
            "  LIMIT %(cap)s) kept) "
            "FROM (SELECT coalesce(unknown_since, sent_at, registered_at) AS since FROM sagas_compensation "
            "      WHERE state IN ('due', 'awaiting_approval', 'sent', 'unknown', 'failed') "
            "      ORDER BY registered_at LIMIT %(cap)s) part, (SELECT now_() AS at) clock",
            {"cap": CAP},
        )
        every, dangling, since, people = cursor.fetchone()
    return Outstanding(all=every, dangling=dangling, since=since, with_people=people)


def reconciliation_seen() -> ReconciliationSeen:
    """What the last comparison with the outside found."""
    newest = Reconciliation.objects.order_by("-started_at").first()
    done = Reconciliation.objects.exclude(finished_at=None).order_by("-started_at").first()
    running = newest if newest is not None and newest.finished_at is None else None
    return ReconciliationSeen(
        finished_at=done.finished_at if done else None,
        looked=done.looked if done else 0,
        confirmed=done.confirmed if done else 0,
        drift=done.drift if done else 0,
        unread=done.unread if done else 0,
        running_since=running.started_at if running else None,
    )


def database_seen() -> DatabaseSeen:
    """What the database says of itself."""
    with connection.cursor() as cursor:
        asked = time.time()
        cursor.execute(
            "SELECT current_setting('server_version'), current_setting('max_connections')::int, "
            "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
            "extract(epoch FROM clock_timestamp())"  # its own, not the one that tests put forward
        )
        version, allowed, used, there = cursor.fetchone()
        answered = time.time()
    # Read at some moment between the two: only what lies outside of them is a difference of the clocks.
    ahead = max(asked - float(there), 0.0) + min(answered - float(there), 0.0)
    return DatabaseSeen(version=version.split(" ")[0], connections=used, allowed=allowed, ahead_s=ahead)
