"""Alarms: what is wrong with the system itself, read from the tables (S2-6, S2-12, S2-20, S4-26). Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """One alarm in force. `code` is stable (docs/operations.md says what to do), `count` how many, `since` the oldest."""

    code: str
    count: int
    since: datetime | None


_CHECKS: tuple[tuple[str, str], ...] = (
    # A compensation that is outstanding for five minutes is found within them (S2-12).
    (
        "compensation.dangling",
        "SELECT count(*), min(coalesce(c.unknown_since, c.sent_at, c.registered_at)) FROM sagas_compensation c "
        "WHERE c.state IN ('due', 'sent', 'unknown', 'failed') "
        "AND coalesce(c.unknown_since, c.sent_at, c.registered_at) < now_() - interval '5 minutes'",
    ),
    (
        "compensation.older_than_a_day",
        "SELECT count(*), min(c.registered_at) FROM sagas_compensation c "
        "WHERE c.state IN ('due', 'awaiting_approval', 'sent', 'unknown', 'failed') "
        "AND coalesce(c.unknown_since, c.sent_at, c.registered_at) < now_() - interval '24 hours'",
    ),
    (
        "run.not_moving",
        "SELECT count(*), min(due_at) FROM sagas_run WHERE due_at < now_() - interval '30 seconds'",
    ),
    (
        "worker.none",
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM sagas_worker WHERE ended_at IS NULL AND lease_until > now_()) "
        "THEN 0 ELSE 1 END, NULL::timestamptz",
    ),
    # Bells that the broker took and nobody hears; or one of several workers that has gone deaf, or ended the hard way.
    (
        "worker.deaf",
        "SELECT count(*), min(silent_since) FROM ("
        "  SELECT greatest(max(heard_at), min(since) FILTER (WHERE rung_at IS NOT NULL)) AS silent_since "
        "  FROM sagas_ear HAVING max(rung_at) - greatest(max(heard_at), min(since) FILTER (WHERE rung_at IS NOT NULL)) "
        "    > interval '60 seconds' "
        "  UNION ALL SELECT e.heard_at FROM sagas_ear e, (SELECT max(rung_at) AS rung, max(heard_at) AS heard, "
        "    count(*) FILTER (WHERE heard_at > now_() - interval '15 minutes') AS many FROM sagas_ear) a "
        "  WHERE e.left_at IS NULL AND e.heard_at > now_() - interval '15 minutes' AND e.heard_at < a.heard "
        "    AND a.rung - e.heard_at > interval '60 seconds' * (1 + a.many)) deaf",
    ),
    (
        "outbox.lagging",
        "SELECT count(*), min(created_at) FROM sagas_outbox WHERE published_at IS NULL AND parked_at IS NULL "
        "AND created_at < now_() - interval '60 seconds'",
    ),
    ("outbox.parked", "SELECT count(*), min(parked_at) FROM sagas_outbox WHERE parked_at IS NOT NULL"),
    (
        "handoff.late",
        "SELECT count(*), min(due_at) FROM sagas_handoff WHERE state <> 'resolved' AND due_at < now_()",
    ),
    (
        "run.quarantined",
        "SELECT count(*), min(quarantined_at) FROM sagas_run WHERE quarantined_at IS NOT NULL "
        "AND finished_at IS NULL",
    ),
    ("gate.paused", "SELECT count(*), min(paused_at) FROM sagas_gate WHERE paused_at IS NOT NULL"),
    (
        "gate.long_wait",
        "SELECT count(*), min(t.waiting_since) FROM sagas_turn t JOIN sagas_gate g ON g.tool = t.tool "
        "WHERE t.go_at IS NULL AND t.used_at IS NULL AND g.paused_at IS NULL "
        "AND t.waiting_since < now_() - interval '5 minutes'",
    ),
    # An answer that came early is adopted once its reference is known; one that fits nothing for long is nobody's.
    (
        "callback.unmatched",
        "SELECT count(*), min(at) FROM sagas_evidence e WHERE run_id IS NULL AND reference <> '' "
        "AND at BETWEEN now_() - interval '7 days' AND now_() - interval '10 minutes' "
        "AND NOT EXISTS (SELECT 1 FROM sagas_action a WHERE a.provider_ref <> '' AND a.provider_ref = e.reference)",
    ),
    (
        "handoff.escalated",
        "SELECT count(*), min(due_at) FROM sagas_handoff WHERE state = 'open' AND escalation > 0",
    ),
    # Late cases of a team of which nobody holds a single one: as if nobody were there.
    (
        "queue.unattended",
        "SELECT count(*), min(since) FROM (SELECT min(h.due_at) AS since FROM sagas_handoff h "
        "JOIN sagas_run r ON r.id = h.run_id WHERE h.state <> 'resolved' GROUP BY r.team "
        "HAVING bool_or(h.due_at < now_()) AND bool_and(h.state = 'open')) unattended",
    ),
    (
        "reconciliation.overdue",
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM sagas_reconciliation "
        "WHERE started_at > now_() - interval '2 hours') OR NOT EXISTS (SELECT 1 FROM sagas_run "
        "WHERE started_at < now_() - interval '2 hours') THEN 0 ELSE 1 END, "
        "(SELECT max(started_at) FROM sagas_reconciliation)",
    ),
    (
        "reconciliation.drift",
        "SELECT count(*), min(f.at) FROM sagas_finding f WHERE f.verdict = 'drift' AND f.reconciliation_id = "
        "(SELECT max(id) FROM sagas_reconciliation WHERE finished_at IS NOT NULL)",
    ),
)


def in_force() -> tuple[Alarm, ...]:
    """Every alarm in force, in a fixed order."""
    found = []
    with connection.cursor() as cursor:
        for code, sql in _CHECKS:
            cursor.execute(sql)
            count, since = cursor.fetchone()
            if count:
                found.append(Alarm(code=code, count=int(count), since=since))
    return tuple(found)
