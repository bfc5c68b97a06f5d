"""What time does to a handoff: a reminder, and the next level of its chain, each exactly once, by the database's clock.

Nothing is decided, called or taken away here: a case that is late only becomes louder.
"""

from __future__ import annotations

from django.db import connection

from sagas import entries
from sagas.escalation import level_name, next_alert, scheduled
from sagas.facts import Actor
from sagas.ledger.desk import Desk, opened, this_transaction
from sagas.models import Handoff
from sagas.states import HandoffState
from sagas.tx import durable, soon

_AT_ONCE = 100


def due() -> list[int]:
    """The runs with a handoff whose next alert is due, the longest waiting first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id FROM sagas_handoff WHERE alert_at <= now_() ORDER BY alert_at LIMIT %s", [_AT_ONCE]
        )
        return [row[0] for row in cursor.fetchall()]


def speak_up(run_id: int) -> int:
    """Leave what is due for a run's handoffs as entries; returns how many. Two processes at once leave each once."""
    said = 0
    with durable(), soon(), opened(run_id) as desk:
        for row in desk.handoffs:
            while (
                row.state != HandoffState.RESOLVED and row.alert_at is not None and row.alert_at <= desk.now
            ):
                _once(desk, row)
                said += 1
        if said:
            desk.close(release=False)
    return said


def _once(desk: Desk, row: Handoff) -> None:
    """The earliest alert that is not out yet; what a decision rests on does not change by it."""
    plan, at = scheduled(row.schedule), row.alert_at
    if plan is not None and at is not None and plan.remind_at == at and row.reminded_at is None:
        following = next_alert(plan, level=row.escalation, reminded=True)
        desk.set(row, reminded_at=desk.now, alert_at=following, changed_xid=this_transaction())
        after = {"ref": row.ref, "at": at.isoformat(), "due_at": row.due_at.isoformat()}
        desk.say("human.handoff.reminded", aside=True, actor=entries.PLANNER, after=after)
        return
    raise_level(desk, row, actor=entries.PLANNER, aside=True)


def raise_level(desk: Desk, row: Handoff, *, actor: Actor, aside: bool = False) -> None:
    """Raise a handoff by one level; what is told next follows from its schedule. Whoever holds it keeps it."""
    plan, level, at = scheduled(row.schedule), row.escalation + 1, row.alert_at
    desk.set(
        row,
        escalation=level,
        alert_at=next_alert(plan, level=level, reminded=row.reminded_at is not None),
        changed_xid=this_transaction(),
    )
    after = {"ref": row.ref, "level": level, "to": level_name(plan, level), "due_at": row.due_at.isoformat()}
    if aside and at is not None:
        after["at"] = at.isoformat()
    desk.say("human.handoff.escalated", aside=aside, actor=actor, after=after)
