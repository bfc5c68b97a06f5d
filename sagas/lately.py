"""How runs and calls went in the last seven days, and the systems in the last minutes. Reads only.

Bounded: of many, only the newest are counted, and each answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import connection

from sagas.published import contract_by_id
from sagas.readings import CallsLately, RunsLately, SystemLately

NEWEST = 10_000
"""So many runs of a version, or calls of a tool, are counted at most, the newest first."""


def runs_of(names: Sequence[str], *, newest: int = NEWEST) -> Mapping[str, RunsLately]:
    """The runs of these workflows, all versions together; a name without runs is left out. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT d.name, count(*), count(*) FILTER (WHERE finished_at IS NULL), "
            "count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'compensated'), "
            "count(*) FILTER (WHERE state = 'failed_clean'), count(*) FILTER (WHERE state = 'closed_accepted'), "
            "count(*) FILTER (WHERE handed_over), bool_or(nth = %(newest)s) "
            "FROM sagas_definitionversion d CROSS JOIN LATERAL ("
            "  SELECT r.state, r.finished_at, row_number() OVER (ORDER BY r.started_at DESC, r.id DESC) AS nth,"
            "         EXISTS (SELECT 1 FROM sagas_handoff h WHERE h.run_id = r.id) AS handed_over"
            "  FROM sagas_run r WHERE r.definition_id = d.id"
            "  AND r.started_at > (SELECT now_()) - interval '7 days'"
            "  ORDER BY r.started_at DESC, r.id DESC LIMIT %(newest)s) run "
            "WHERE d.name = ANY(%(names)s) GROUP BY d.name",
            {"names": list(names), "newest": newest},
        )
        return {
            name: RunsLately(
                runs=n,
                live=live,
                completed=completed,
                compensated=compensated,
                failed_clean=failed,
                accepted=accepted,
                handed_over=handed_over,
                capped=bool(capped),
            )
            for name, n, live, completed, compensated, failed, accepted, handed_over, capped in cursor.fetchall()
        }


def calls_of(names: Sequence[str], *, newest: int = NEWEST) -> Mapping[str, CallsLately]:
    """The calls of these tools, all versions together; a name without calls is left out. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.tool, count(*), count(*) FILTER (WHERE answer IN ('confirmed', 'accepted')), "
            "count(*) FILTER (WHERE answer = 'rejected'), count(*) FILTER (WHERE answer IN ('unknown', 'partial')), "
            "count(*) FILTER (WHERE answer = 'throttled' OR error_class = 'throttled' OR status = 429), "
            "count(*) FILTER (WHERE answer = 'unknown' AND settled_by LIKE 'status query%%'), "
            # Of a call over many only what carries an item that went out before is sent again.
            "count(*) FILTER (WHERE call.number > 1 AND call.answer <> 'not_sent' AND EXISTS ("
            "  SELECT 1 FROM sagas_attempt before WHERE before.action_id = call.action_id"
            "  AND before.compensation_id IS NOT DISTINCT FROM call.compensation_id"
            "  AND before.number < call.number AND before.answer <> 'not_sent' AND (call.items = '[]' OR EXISTS ("
            "  SELECT 1 FROM jsonb_array_elements(call.items) item"
            "  WHERE before.items @> jsonb_build_array(item.value))))), "
            # A question is about a step or about what makes up for it.
            "count(DISTINCT what) FILTER (WHERE EXISTS ("
            "  SELECT 1 FROM sagas_question q WHERE q.action_id = call.action_id"
            "  AND (q.code LIKE 'compensation%%') = (call.compensation_id IS NOT NULL))), "
            "avg(duration_ms) FILTER (WHERE answer NOT IN ('', 'unknown', 'not_sent')), bool_or(nth = %(newest)s) "
            "FROM sagas_contractversion c CROSS JOIN LATERAL ("
            "  (SELECT t.*, 'step ' || one.id AS what, one.settled_by, one.nth FROM ("
            "     SELECT a.id, a.settled_by, row_number() OVER (ORDER BY a.id DESC) AS nth FROM sagas_action a"
            "     WHERE a.contract_id = c.id ORDER BY a.id DESC LIMIT %(newest)s) one"
            "   JOIN sagas_attempt t ON t.action_id = one.id AND t.compensation_id IS NULL"
            "   WHERE t.sent_at > (SELECT now_()) - interval '7 days')"
            "  UNION ALL"
            "  (SELECT t.*, 'compensation ' || one.id AS what, one.settled_by, one.nth FROM ("
            "     SELECT m.id, m.settled_by, row_number() OVER (ORDER BY m.id DESC) AS nth FROM sagas_compensation m"
            "     WHERE m.contract_id = c.id ORDER BY m.id DESC LIMIT %(newest)s) one"
            "   JOIN sagas_attempt t ON t.compensation_id = one.id"
            "   WHERE t.sent_at > (SELECT now_()) - interval '7 days')) call "
            "WHERE c.tool = ANY(%(names)s) GROUP BY c.tool",
            {"names": list(names), "newest": newest},
        )
        return {
            name: CallsLately(
                calls=n,
                confirmed=confirmed,
                rejected=rejected,
                unknown=unknown,
                throttled=throttled,
                found=found,
                again=again,
                handed_over=handed_over,
                mean_ms=None if mean is None else round(mean),
                capped=bool(capped),
            )
            for (
                name,
                n,
                confirmed,
                rejected,
                unknown,
                throttled,
                found,
                again,
                handed_over,
                mean,
                capped,
            ) in cursor.fetchall()
        }


def systems(*, newest: int = 5_000, minutes: int = 15) -> tuple[SystemLately, ...]:
    """Each system that the newest calls went to, by name: calls and failures of the last minutes, last of each kind.

    A failure is a call without an answer, or with one that says that the system itself could not.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(m.contract_id, a.contract_id), count(*) FILTER (WHERE recent), "
            "count(*) FILTER (WHERE recent AND failed), "
            "sum(duration_ms) FILTER (WHERE recent AND NOT failed), "
            "count(duration_ms) FILTER (WHERE recent AND NOT failed), "
            "max(sent_at_) FILTER (WHERE NOT failed), max(sent_at_) FILTER (WHERE failed) "
            "FROM (SELECT t.action_id, t.compensation_id, t.duration_ms, t.sent_at AS sent_at_,"
            "        t.sent_at > (SELECT now_()) - make_interval(mins => %s) AS recent,"
            "        t.answer IN ('unknown', 'temporary', 'not_sent') AS failed"
            "      FROM sagas_attempt t WHERE t.finished_at IS NOT NULL ORDER BY t.id DESC LIMIT %s) call "
            "JOIN sagas_action a ON a.id = call.action_id "
            "LEFT JOIN sagas_compensation m ON m.id = call.compensation_id GROUP BY 1",
            [minutes, newest],
        )
        rows = cursor.fetchall()
    by_system: dict[str, list[tuple[int, int, int, int, datetime | None, datetime | None]]] = {}
    for contract_id, calls, failures, total_ms, answered, success, failure in rows:
        system = contract_by_id(contract_id).system
        by_system.setdefault(system, []).append(
            (calls, failures, int(total_ms or 0), answered, success, failure)
        )
    return tuple(_system(name, of_tools) for name, of_tools in sorted(by_system.items()))


def _system(
    name: str, of_tools: Sequence[tuple[int, int, int, int, datetime | None, datetime | None]]
) -> SystemLately:
    calls, failures, total_ms, answered, success, failure = zip(*of_tools, strict=True)
    return SystemLately(
        system=name,
        calls=sum(calls),
        failures=sum(failures),
        mean_ms=round(sum(total_ms) / sum(answered)) if sum(answered) else None,
        last_success=max((at for at in success if at), default=None),
        last_failure=max((at for at in failure if at), default=None),
    )
