"""Teams as they are stored: how their files get in, the newest of each, and what waits for each of them."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from sagas.escalation import Team, undeclared
from sagas.facts import TeamQueue
from sagas.models import TeamVersion
from sagas.teamfile import team_from_document
from tools.contract import Json


def team_named(name: str) -> Team:
    """The newest version of a team; one that nobody declared works around the clock."""
    row = TeamVersion.objects.filter(name=name).order_by("-version").first() if name else None
    return undeclared(name) if row is None else team_from_document(row.document, version=row.version)


def declared() -> tuple[Team, ...]:
    """The newest version of every team that was declared, by name."""
    rows = TeamVersion.objects.order_by("name", "-version").distinct("name")
    return tuple(team_from_document(row.document, version=row.version) for row in rows)


def store_team(team: Team, document: Json, *, by: str) -> int:
    """Store a team as its next version, which it returns; 0 when the newest one says the same."""
    newest = TeamVersion.objects.filter(name=team.name).order_by("-version").first()
    if newest is not None and newest.digest == team.digest:
        return 0
    version = 1 if newest is None else newest.version + 1
    TeamVersion.objects.create(
        name=team.name, version=version, digest=team.digest, document=document, stored_by=by
    )
    return version


def queues() -> tuple[TeamQueue, ...]:
    """What waits for each team that has cases or was declared: the latest first, then by name.

    A queue is unattended when cases of it are late and nobody holds any.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT now_(), r.team, count(*), count(*) FILTER (WHERE h.state = 'open'), "
            "count(*) FILTER (WHERE h.due_at < now_()), count(*) FILTER (WHERE h.escalation > 0), "
            "min(h.due_at), min(h.opened_at) "
            "FROM sagas_handoff h JOIN sagas_run r ON r.id = h.run_id WHERE h.state <> 'resolved' GROUP BY r.team"
        )
        rows = cursor.fetchall()
        cursor.execute("SELECT now_()")
        (now,) = cursor.fetchone()
    waiting = {row[1]: row for row in rows}
    known = {team.name: team for team in declared()}
    names = sorted(known.keys() | waiting.keys())
    found = [_queue(known.get(name) or undeclared(name), waiting.get(name), now) for name in names]
    return tuple(sorted(found, key=lambda one: (one.first_due_at is None, one.first_due_at or now, one.team)))


def _queue(team: Team, row: tuple[object, ...] | None, now: datetime) -> TeamQueue:
    _, _, cases, unclaimed, late, escalated, first_due, oldest = row or (now, "", 0, 0, 0, 0, None, None)
    worktime = team.worktime
    return TeamQueue(
        team=team.name,
        title=team.title,
        zone="" if worktime.always else worktime.zone.key,
        calendar=team.version,
        chain=tuple(level.to for level in team.chain),
        at_work=worktime.counts(now),
        opens_at=None if worktime.counts(now) else worktime.opens(now),
        cases=cases,  # type: ignore[arg-type]
        unclaimed=unclaimed,  # type: ignore[arg-type]
        late=late,  # type: ignore[arg-type]
        escalated=escalated,  # type: ignore[arg-type]
        first_due_at=first_due,  # type: ignore[arg-type]
        oldest_at=oldest,  # type: ignore[arg-type]
    )
