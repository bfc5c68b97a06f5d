"""Worker incarnations: beating, dying, and what becomes of what a dead one held (engine.md, section 4)."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import DatabaseError, connection

from sagas import entries, faultpoints
from sagas.ledger import batch, compensate, late, quarantine, settle
from sagas.ledger.desk import Desk, opened
from sagas.models import Attempt, Run, Worker
from sagas.orders import Claim, Seen
from sagas.states import ActionState, CompensationState
from sagas.tx import durable, held_up, soon
from tools.contract import ErrorClass

log = structlog.get_logger(__name__)

LEASE_S = 3.5
"""Seconds a lease runs. How long a call takes has nothing to do with it. What a killed worker held is found once it has
run out and is taken two seconds later at the latest, by the sweep: eight seconds in all leave room for a busy machine."""


def enrol(kind: str) -> str:
    """Begin a new incarnation and return its id."""
    owner = f"{kind}-{uuid.uuid4().hex[:12]}"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_worker (id, kind, place, lease_until, beats, ended_how) "
            "VALUES (%s, %s, %s, now_() + make_interval(secs => %s), 0, '')",
            [owner, kind, f"{socket.gethostname()}:{os.getpid()}", LEASE_S],
        )
    return owner


def beat(owner: str) -> bool:
    """Renew a running lease. False: it has expired; an expired lease is never renewed, only replaced."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_worker SET lease_until = now_() + make_interval(secs => %s), beat_at = now_(), "
            "beats = beats + 1 WHERE id = %s AND ended_at IS NULL AND lease_until > now_()",
            [LEASE_S, owner],
        )
        return bool(cursor.rowcount == 1)


def sign_off(owner: str, how: str = "stopped") -> None:
    """End an incarnation in good order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_worker SET ended_at = now_(), ended_how = %s WHERE id = %s AND ended_at IS NULL",
            [how, owner],
        )


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """One incarnation as the sweep sees it: `over` = its lease has run out by the database's clock, or it ended."""

    owner: str
    beats: int
    ended: bool
    over: bool


def pulses() -> tuple[Pulse, ...]:
    """Every incarnation that has not ended, and every ended one that still holds a run."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, beats, false, lease_until <= now_() FROM sagas_worker WHERE ended_at IS NULL "
            "UNION SELECT w.id, w.beats, true, true FROM sagas_worker w JOIN sagas_run r ON r.owner = w.id "
            "WHERE w.ended_at IS NOT NULL"
        )
        return tuple(Pulse(owner=r[0], beats=r[1], ended=r[2], over=r[3]) for r in cursor.fetchall())


def anything_due(*, for_s: float = 0.0) -> bool:
    """Whether any run has been due for at least `for_s` seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM sagas_run WHERE due_at IS NOT NULL "
            "AND due_at <= now_() - make_interval(secs => %s))",
            [for_s],
        )
        return bool(cursor.fetchone()[0])


def bury(owner: str) -> int:
    """Declare an incarnation dead and free what it held; what it had sent is unknown now. Returns the runs freed."""
    with durable(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_worker SET ended_at = now_(), ended_how = 'lease ran out' "
            "WHERE id = %s AND ended_at IS NULL AND lease_until <= now_()",
            [owner],
        )
    held = list(Run.objects.filter(owner=owner).order_by("pk").values_list("pk", flat=True))
    freed = 0
    for pk in held:
        try:
            freed += _free(pk, owner)
            faultpoints.reach("sweep.between_runs")
        except DatabaseError as error:
            if not held_up(error):
                raise
            # A process that was stopped in the middle of a transaction holds its run, and keeps no other.
            log.info("run.held", run_id=pk)
        except Exception:
            # One run that cannot be freed keeps no other; it is tried again at the next look.
            log.exception("run.not_freed", run_id=pk)
    return freed


def _free(run_id: int, owner: str) -> bool:
    with durable(), soon(), opened(run_id, whole=False) as desk:
        if desk.run.owner != owner or not Worker.objects.filter(pk=owner, ended_at__isnull=False).exists():
            return False
        desk.run.fence += 1
        faultpoints.mark("sweep", run=desk.run.ref)
        deaths = quarantine.count_death(desk.run)
        _lose_what_was_sent(desk)
        desk.due_at = desk.now
        if deaths >= quarantine.DEATHS:
            quarantine.set_aside(desk, f"{deaths} workers died over the same place of it")
        desk.close(release=True)
        return True


def abandon(claim: Claim, seen: Seen | None, *, why: str = "") -> None:
    """Give up a claimed run whose last write failed: keep what was seen, lose what was sent, let anybody go on.

    Due again after a pause that grows with what broke at the same place; set aside once its budget is used up.
    """
    faultpoints.reach("abandon.begun", run=claim.run_ref)
    with durable(), opened(claim.run_id, whole=False) as desk:
        if desk.run.owner != claim.owner or desk.run.fence != claim.fence:
            return
        desk.run.fence += 1
        if seen is not None:
            late.keep(desk, seen)
        _lose_what_was_sent(desk)
        breaks = quarantine.count_break(desk.run)
        desk.due_at = desk.now + timedelta(seconds=min(0.5 * breaks, 60.0))
        if breaks >= quarantine.BREAKS:
            quarantine.set_aside(desk, f"{breaks} deliveries broke at the same place: {why}")
        desk.close(release=True)


def _lose_what_was_sent(desk: Desk) -> None:
    """A worker lost after `sent` leaves unknown behind, never "failed" (shared rule R2)."""
    detail = "the worker that made the call is gone"
    Attempt.objects.filter(run=desk.run, finished_at=None).update(
        finished_at=desk.now, answer="unknown", error_class=ErrorClass.NO_ANSWER.value, detail=detail
    )
    for action in desk.actions:
        if action.state == ActionState.SENT and action.answer_due_at is None and not desk.items(action):
            settle.lose(desk, action, ErrorClass.NO_ANSWER, detail, entries.RECOVERY)
            batch.derive_of(desk, action)
        compensation = desk.compensations.get(action.pk)
        if compensation is not None and compensation.state == CompensationState.SENT:
            compensate.lose(desk, action, compensation, detail)
