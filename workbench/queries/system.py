"""The state of the installation for a person on duty: every part read by itself, with the time it was read.

One part that cannot be read hides no other. Writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from sagas import api
from sagas.facts import GateFacts
from sagas.readings import (
    BrokerSeen,
    Counted,
    DatabaseSeen,
    OutboxSeen,
    Outstanding,
    ReconciliationSeen,
    SystemLately,
    Waiting,
    WorkerSeen,
)


@dataclass(frozen=True, kw_only=True)
class Part[Value]:
    """One part as it was read. `value` None: it could not be read. `took_ms` is how long the answer took."""

    value: Value | None
    read_at: datetime
    took_ms: float


@dataclass(frozen=True, kw_only=True)
class Vitals:
    """What the page keeps up to date by itself."""

    workers: Part[tuple[WorkerSeen, ...]]
    waiting: Part[Waiting]
    broker: Part[BrokerSeen]
    outbox: Part[OutboxSeen]
    unknown: Part[Counted]
    outstanding: Part[Outstanding]
    reconciliation: Part[ReconciliationSeen]
    database: Part[DatabaseSeen]
    alarms: Part[tuple[api.Alarm, ...]]


def vitals(now: datetime) -> Vitals:
    """Every part once. `now` is the database's clock as the page read it. Never raises for a part."""
    reading = _Reading(now)
    return Vitals(
        database=reading.of(api.database_seen),
        workers=reading.of(api.workers_seen),
        waiting=reading.of(api.waiting),
        broker=reading.of(api.broker_seen),
        outbox=reading.of(api.outbox_seen),
        unknown=reading.of(api.unknown_steps),
        outstanding=reading.of(api.outstanding),
        reconciliation=reading.of(api.reconciliation_seen),
        alarms=reading.of(api.alarms),
    )


def gates(now: datetime) -> Part[tuple[GateFacts, ...]]:
    """The gates of the tools."""
    return _Reading(now).of(api.gates)


def providers(now: datetime) -> Part[tuple[SystemLately, ...]]:
    """The systems that the newest calls went to."""
    return _Reading(now).of(api.systems_lately)


class _Reading:
    """Reads parts one after another, each with the time it was read on the database's clock."""

    def __init__(self, now: datetime) -> None:
        self._now, self._began = now, time.monotonic()

    def of[Value](self, read: Callable[[], Value | None]) -> Part[Value]:
        began = time.monotonic()
        try:
            value = read()
        except DatabaseError:
            connection.close_if_unusable_or_obsolete()
            value = None
        ended = time.monotonic()
        return Part(
            value=value,
            read_at=self._now + timedelta(seconds=ended - self._began),
            took_ms=(ended - began) * 1000,
        )
