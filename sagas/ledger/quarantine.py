"""What breaks whoever works on it is set aside after a bounded number of deliveries, and handed to a person.

Counts breaks and deaths at one place of a run; a run that gets on starts from nothing.
"""

from __future__ import annotations

import structlog
from django.db import InterfaceError, OperationalError, connection

from sagas import entries
from sagas.entries import EntryRow
from sagas.ledger.asking import short
from sagas.ledger.desk import Desk, opened
from sagas.models import Run
from sagas.reasons import Reason
from sagas.states import FINAL_RUN_STATES, RunState
from sagas.tx import durable

log = structlog.get_logger(__name__)

BREAKS = 5
"""Deliveries of a run that may break at one place for a reason of the run's own."""

DEATHS = 3
"""Workers that may die over one place of a run (faults.md, FI-12)."""


def count_break(run: Run) -> int:
    """One more delivery broke; returns how many did at this place."""
    _arrive(run)
    run.breaks += 1
    return run.breaks


def count_death(run: Run) -> int:
    """One more worker died over it; returns how many did at this place. The caller sees to it that it is counted once."""
    _arrive(run)
    run.deaths += 1
    return run.deaths


def _arrive(run: Run) -> None:
    """Begin to count anew where the run got on since."""
    place = f"{run.direction}:{run.confirmations}:{len(run.effects_left)}"
    if run.stuck_at != place:
        run.stuck_at, run.breaks, run.deaths = place, 0, 0


def set_aside(desk: Desk, why: str) -> None:
    """No more deliveries until a person lets the run go on, who gives it a new budget."""
    desk.run.quarantined_at = desk.now
    desk.due_at = None
    desk.hand_over(Reason.QUARANTINED, action=None, detail=short(why), actor=entries.RECOVERY)


def put_off(run_id: int, why: str) -> None:
    """Leave a run that cannot be stepped for later, longer with every time; set it aside once its budget is used up."""
    with durable():
        run = (
            Run.objects.select_for_update(no_key=True)
            .filter(pk=run_id, owner="", due_at__isnull=False)
            .first()
        )
        if run is None:
            return
        breaks = count_break(run)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE sagas_run SET deliveries = deliveries + 1, stuck_at = %s, breaks = %s, deaths = %s, "
                "due_at = now_() + least(0.5 * %s, 60) * interval '1 second' WHERE id = %s",
                [run.stuck_at, run.breaks, run.deaths, breaks, run_id],
            )
    if breaks >= BREAKS:
        quarantine(run_id, f"{breaks} deliveries broke at the same place: {why}")


def quarantine(run_id: int, why: str) -> None:
    """Set a run aside that nobody works on. One that cannot even be handed over gets no more deliveries all the same."""
    try:
        with durable(), opened(run_id) as desk:
            if desk.run.owner or desk.run.state in FINAL_RUN_STATES:
                return
            set_aside(desk, why)
            desk.close(release=True)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("run.not_handed_over", run_id=run_id)
        with durable(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE sagas_run SET quarantined_at = now_(), due_at = NULL "
                "WHERE id = %s AND owner = '' AND quarantined_at IS NULL RETURNING ref",
                [run_id],
            )
            found = cursor.fetchone()
            if found:
                after = {"run": found[0]}
                row = EntryRow(name="run.quarantined", actor=entries.RECOVERY, reason=short(why), after=after)
                entries.insert(cursor, [row])


def hand_over_rest() -> int:
    """Try again to hand over what was set aside without a case. Returns how many are left."""
    left = Run.objects.filter(quarantined_at__isnull=False, owner="").exclude(
        state__in=[*FINAL_RUN_STATES, RunState.HANDOFF]
    )
    for run_id in left.values_list("pk", flat=True)[:20]:
        quarantine(run_id, "it was set aside before")
    return left.count()
