"""The gates of tools: who may call when, after which answers nobody may, and who opens one again (engine.md, section 4).

Every change is a short transaction of its own that locks gates, in the order of their names, before runs. Decides
nothing about a run but when it looks again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.db import connection

from sagas import entries, pacing
from sagas.entries import EntryRow
from sagas.errors import NotFound
from sagas.facts import Actor, GateFacts
from sagas.models import Gate
from sagas.orders import Heard, Queue, Queued
from sagas.tx import durable, soon
from tools.contract import Contract, Json
from tools.outcome import Observation, Outcome, OutcomeKind, classify

log = structlog.get_logger(__name__)

MOST_AT_ONCE = 500
"""Turns that one transaction hands out at most."""

LOOK_WHILE_PAUSED = timedelta(minutes=5)
"""Who waits at a paused gate is woken when it is opened; this is only so that nobody can be forgotten."""

SOONEST = timedelta(milliseconds=50)
_AT_ONCE_GUESS = 4.0
_LONGEST_WHY = 500


# --- Waiting ------------------------------------------------------------------------------------------------------


def ask(order: Queue) -> Queued:
    """Take a place in the queue of a tool, and the turn with it if there is one now."""
    with durable():
        gate, now = _lock(order.contract.tool), _now()
        rate = order.contract.rate
        gate.per_second, gate.burst, gate.at_once = rate.per_second, rate.burst, rate.at_once
        ticket = _enter(order)
        if gate.paused_at is not None:
            gate.save()
            return Queued(order=order, until=now + LOOK_WHILE_PAUSED)
        alone = None if gate.waiting else ticket
        gate.waiting += 1
        at = _hand_out(gate, now, alone=alone, asker=order.run_id).get(ticket.id)
        opens_at = max(now, gate.not_before or now)
        later = pacing.estimate(
            opens_at=opens_at, next_at=gate.next_at, rate=_guess(gate, now), before=gate.waiting
        )
        gate.save()
    if at is not None:
        return Queued(order=order, until=None if at <= now + SOONEST else at)
    if order.give_up_at is not None:
        later = min(later, order.give_up_at)
    return Queued(order=order, until=max(later, now + SOONEST))


def hand_out(tool: str | None = None) -> int:
    """Hand out the turns of the next moments, of one tool or of all that somebody waits for. Returns how many."""
    tools = [tool] if tool else list(_waited_for())
    return sum(_hand_out_alone(one) for one in tools)


def _hand_out_alone(tool: str) -> int:
    with durable(), soon():
        gate = Gate.objects.select_for_update().filter(tool=tool).first()
        if gate is None or gate.paused_at is not None:
            return 0
        handed = _hand_out(gate, _now())
        gate.save()
        return len(handed)


def _waited_for() -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT g.tool FROM sagas_gate g WHERE g.paused_at IS NULL AND EXISTS (SELECT 1 FROM sagas_turn t "
            "WHERE t.tool = g.tool AND t.go_at IS NULL AND t.used_at IS NULL) ORDER BY g.tool"
        )
        return tuple(row[0] for row in cursor.fetchall())


def _lock(tool: str) -> Gate:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_gate (tool, burst, strikes, waiting, flows, served, handed, paused_why) "
            "SELECT %s, 1, 0, 0, '{}', 0, 0, '' WHERE NOT EXISTS (SELECT 1 FROM sagas_gate WHERE tool = %s) "
            "ON CONFLICT (tool) DO NOTHING",
            [tool, tool],
        )
    return Gate.objects.select_for_update().get(tool=tool)


def _now() -> datetime:
    """The database's time, read after the lock (engine.md, section 1)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def _enter(order: Queue) -> pacing.Ticket:
    """The ticket of this call, with the time that it has waited so far where it was sent away for speed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_turn (run_id, action_id, tool, flow, reserved, sent_away) "
            "VALUES (%s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (action_id, tool) DO UPDATE SET flow = excluded.flow, reserved = excluded.reserved, "
            "sent_away = excluded.sent_away, "
            "waiting_since = CASE WHEN sagas_turn.used_at IS NULL OR %s "
            "THEN coalesce(sagas_turn.waiting_since, now_()) ELSE now_() END, "
            # Who went out and was sent away asks anew, behind those who have not been out: a call that is refused for
            # ever would else be the next one each time, and nobody else would have a turn.
            "asked_at = CASE WHEN sagas_turn.used_at IS NULL THEN sagas_turn.asked_at ELSE now_() END, "
            "go_at = NULL, used_at = NULL RETURNING id, asked_at",
            [
                order.run_id,
                order.action_id,
                order.contract.tool,
                order.flow,
                order.reserved,
                order.sent_away,
                order.sent_away,
            ],
        )
        pk, since = cursor.fetchone()
    return pacing.Ticket(id=pk, run_id=order.run_id, flow=order.flow, reserved=order.reserved, since=since)


def _hand_out(
    gate: Gate, now: datetime, *, alone: pacing.Ticket | None = None, asker: int = 0
) -> dict[int, datetime]:
    """Give the next turns to those who wait. The gate is locked; runs are taken without waiting for any.

    `alone`: nobody else waits. `asker`: the run that asks, which its worker holds.
    """
    opens_at = max(now, gate.not_before or now)
    until = now + timedelta(seconds=pacing.HORIZON_S)
    rate, most = _rate(gate, now), MOST_AT_ONCE
    if gate.at_once is not None:
        most = min(most, max(gate.at_once - _under_way(gate.tool), 0))
    times, _next = _slots(gate, opens_at, until, rate, most)
    if not times:
        return {}
    tickets = [alone] if alone else _waiting(gate, len(times), asker)
    shares = pacing.Shares(flows=gate.flows, served=gate.served, handed=gate.handed)
    chosen, shares = pacing.pick(tickets, shares, len(times))
    free = _take([one.run_id for one in chosen if one.run_id != asker])
    chosen = [one for one in chosen if one.run_id == asker or one.run_id in free]
    times, gate.next_at = _slots(gate, opens_at, until, rate, len(chosen))
    gate.flows, gate.served, gate.handed = dict(shares.flows), shares.served, shares.handed
    gate.waiting = max(gate.waiting - len(chosen), 0)
    spread = 0.25 / rate if rate else min(pacing.HORIZON_S / 4, 0.01 * len(chosen))
    if len(chosen) > 1 or opens_at > now:
        # Never all at the same moment (faults.md, FS-6).
        times = [at + timedelta(seconds=random.uniform(0, spread)) for at in times]  # noqa: S311  spread, not secrecy
    _write(chosen, times)
    return {ticket.id: at for ticket, at in zip(chosen, times, strict=True)}


def _slots(
    gate: Gate, opens_at: datetime, until: datetime, rate: float | None, most: int
) -> tuple[list[datetime], datetime | None]:
    return pacing.slots(
        opens_at=opens_at, until=until, next_at=gate.next_at, rate=rate, burst=gate.burst, most=most
    )


def _rate(gate: Gate, now: datetime) -> float | None:
    rate = pacing.pace(gate.per_second, gate.pace, gate.not_before, now)
    if gate.pace is not None and rate == gate.per_second:
        gate.pace, gate.strikes = None, 0
    return rate


def _guess(gate: Gate, now: datetime) -> float:
    """About how many turns a second there will be, for estimates alone."""
    return _rate(gate, now) or _AT_ONCE_GUESS * (gate.at_once or 1)


def _under_way(tool: str) -> int:
    """Calls that have been sent and not answered, with the turns that may still be used."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM sagas_attempt a JOIN sagas_action x ON x.id = a.action_id "
            "        LEFT JOIN sagas_compensation c ON c.id = a.compensation_id "
            "        WHERE a.finished_at IS NULL AND coalesce(c.tool, x.tool) = %s) "
            "     + (SELECT count(*) FROM sagas_turn WHERE tool = %s AND go_at IS NOT NULL AND used_at IS NULL "
            "        AND go_at > now_() - make_interval(secs => %s))",
            [tool, tool, 2 * pacing.USE_WITHIN_S],
        )
        return int(cursor.fetchone()[0])


def _waiting(gate: Gate, most: int, asker: int) -> list[pacing.Ticket]:
    """The first of every flow that wait for this tool and that nobody is busy with."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, run_id, flow, reserved, asked_at, in_all FROM ("
            "  SELECT t.*, count(*) OVER () AS in_all, row_number() OVER ("
            "    PARTITION BY t.reserved, t.flow ORDER BY t.asked_at, t.id) AS place"
            "  FROM sagas_turn t JOIN sagas_run r ON r.id = t.run_id "
            "  WHERE t.tool = %s AND t.go_at IS NULL AND t.used_at IS NULL "
            "  AND (r.id = %s OR (r.owner = '' AND r.due_at IS NOT NULL))) waiting WHERE place <= %s",
            [gate.tool, asker, most],
        )
        rows = cursor.fetchall()
    gate.waiting = rows[0][5] if rows else 0
    return [
        pacing.Ticket(id=row[0], run_id=row[1], flow=row[2], reserved=row[3], since=row[4]) for row in rows
    ]


def _take(run_ids: list[int]) -> set[int]:
    if not run_ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM sagas_run WHERE id = ANY(%s) AND owner = '' AND due_at IS NOT NULL "
            "ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
            [run_ids],
        )
        return {row[0] for row in cursor.fetchall()}


def _write(chosen: list[pacing.Ticket], times: list[datetime]) -> None:
    if not chosen:
        return
    # Several calls of a run may wait here at once. It stands once in the array, with the first of its turns: of two
    # rows for one target PostgreSQL takes either and drops the other without a word (engine.md, section 2).
    due: dict[int, datetime] = {}
    for one, at in zip(chosen, times, strict=True):
        due[one.run_id] = min(at, due.get(one.run_id, at))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_run r SET due_at = least(r.due_at, v.at) "
            "FROM unnest(%s::bigint[], %s::timestamptz[]) v(id, at) "
            "WHERE r.id = v.id AND r.owner = '' AND r.due_at IS NOT NULL",
            [list(due), list(due.values())],
        )
        cursor.execute(
            "UPDATE sagas_turn t SET go_at = v.at FROM unnest(%s::bigint[], %s::timestamptz[]) v(id, at) "
            "WHERE t.id = v.id",
            [[one.id for one in chosen], times],
        )


# --- Closing and opening --------------------------------------------------------------------------------------------


def heard(answers: Iterable[tuple[Contract, Observation]]) -> Heard:
    """Let the gates know what was answered: a refusal for speed closes one for all, a refused credential pauses it."""
    slowed, paused = False, ""
    for contract, observation in sorted(answers, key=lambda answer: answer[0].tool):
        outcome = classify(contract, observation)
        if outcome.kind is OutcomeKind.THROTTLED:
            _close(contract, outcome, key=observation.key)
            slowed = True
        elif outcome.credential:
            slowed = True
            if _pause(contract, outcome):
                paused = f"{contract.tool}: {outcome.detail or f'status {outcome.status}'}"
    return Heard(slowed=slowed, paused=paused)


def _close(contract: Contract, outcome: Outcome, *, key: str) -> None:
    """Nobody calls until then, and after that slower. A call that is refused again and again closes the gate as well,
    but slows it down once only: others would stand still for what may be wrong with it alone.
    """
    with durable():
        gate, now = _lock(contract.tool), _now()
        was_open = gate.not_before is None or gate.not_before <= now
        if was_open and gate.strikes and _was_sent_away(contract.tool, key):
            gate.pace = _rate(gate, now)
        elif was_open:
            gate.pace = pacing.slower(_rate(gate, now))
            gate.strikes += 1
        wait = outcome.retry_after_s
        if wait is None:
            wait = min(2.0 ** min(gate.strikes - 1, 6), 60.0)
        until = now + timedelta(seconds=min(wait, pacing.LONGEST_CLOSED_S))
        gate.not_before = max(until, gate.not_before or until)
        gate.next_at = max(gate.next_at or gate.not_before, gate.not_before)
        gate.save()
        if was_open:
            after = {"tool": gate.tool, "until": gate.not_before.isoformat(), "per_second": gate.pace}
            _say("tool.gate.closed", entries.EXECUTOR, "it asked us to slow down", after)


def _was_sent_away(tool: str, key: str) -> bool:
    """Whether the call under this key had been refused for speed before it got the turn that it has just used."""
    if not key:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM sagas_turn t WHERE t.tool = %s AND t.sent_away AND t.action_id IN ("
            "SELECT id FROM sagas_action WHERE key = %s "
            "UNION ALL SELECT action_id FROM sagas_compensation WHERE key = %s))",
            [tool, key, key],
        )
        return bool(cursor.fetchone()[0])


def _pause(contract: Contract, outcome: Outcome) -> bool:
    """Close the gate until a person opens it. True: this answer did it, so that one case asks for it."""
    with durable():
        gate, now = _lock(contract.tool), _now()
        if gate.paused_at is not None:
            return False
        why = (outcome.detail or f"status {outcome.status}")[:_LONGEST_WHY]
        gate.paused_at, gate.paused_why = now, why
        gate.save()
        _say("tool.gate.paused", entries.EXECUTOR, why, {"tool": gate.tool, "status": outcome.status})
    log.error("tool.paused", tool=contract.tool, why=why)
    return True


def open_gate(*, actor: Actor, tool: str, reason: str, reason_code: str = "", command_id: str = "") -> None:
    """Let a paused tool be called again, inside the caller's transaction. Who waited comes back paced.

    Raises `NotFound` for a tool that is not paused.
    """
    gate = Gate.objects.select_for_update().filter(tool=tool, paused_at__isnull=False).first()
    if gate is None:
        raise NotFound("paused tool", tool)
    now = _now()
    gate.paused_at, gate.paused_why = None, ""
    # What changed outside is not known: it starts like a tool that had asked for slowness.
    gate.not_before, gate.next_at, gate.pace = now, now, pacing.slower(_rate(gate, now))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_run r SET due_at = least(r.due_at, now_() + w.place * interval '20 milliseconds') "
            "FROM (SELECT x.run_id, row_number() OVER (ORDER BY min(x.waiting_since), x.run_id) AS place "
            "      FROM sagas_turn x WHERE x.tool = %s AND x.go_at IS NULL AND x.used_at IS NULL "
            "      GROUP BY x.run_id) w "
            "WHERE r.id = w.run_id AND r.owner = '' AND r.due_at IS NOT NULL",
            [tool],
        )
    gate.save()
    _say("tool.gate.opened", actor, reason, {"tool": tool}, command_id, reason_code)


def _say(
    name: str, actor: Actor, reason: str, after: Json, command_id: str = "", reason_code: str = ""
) -> None:
    row = EntryRow(
        name=name, actor=actor, reason=reason, reason_code=reason_code, after=after, command_id=command_id
    )
    with connection.cursor() as cursor:
        entries.insert(cursor, [row])


# --- Looking --------------------------------------------------------------------------------------------------------


def gates(*, now: datetime | None = None) -> tuple[GateFacts, ...]:
    """Every gate that bounds something now or has somebody waiting, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT g.tool, g.not_before, g.paused_at, g.paused_why, g.per_second, g.at_once, g.pace, "
            "count(t.id), min(t.waiting_since), now_() FROM sagas_gate g LEFT JOIN sagas_turn t "
            "ON t.tool = g.tool AND t.go_at IS NULL AND t.used_at IS NULL GROUP BY g.id ORDER BY g.tool"
        )
        rows = cursor.fetchall()
    return tuple(_facts(*row) for row in rows)


def _facts(
    tool: str,
    not_before: datetime | None,
    paused_at: datetime | None,
    why: str,
    per_second: float | None,
    at_once: int | None,
    learned: float | None,
    waiting: int,
    since: datetime | None,
    now: datetime,
) -> GateFacts:
    closed = not_before if not_before is not None and not_before > now else None
    return GateFacts(
        tool=tool,
        closed_until=closed,
        paused_at=paused_at,
        paused_why=why,
        per_second=pacing.pace(per_second, learned, not_before, now),
        at_once=at_once,
        waiting=waiting,
        waiting_since=since,
    )
