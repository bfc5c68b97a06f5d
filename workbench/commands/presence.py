"""A sign of life: this person has this case open. The only writer of presences; leaves no entry, decides nothing."""

from __future__ import annotations

from django.db import connection

from workbench.models import User

BEAT_S = 10
"""Seconds: how old a sign of life gets before a poll gives another one."""


def here(*, person: User, handoff_ref: str) -> None:
    """Say that `person` looks at this case now, and at no other."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO workbench_presence AS p (person_id, handoff_ref, seen_at) VALUES (%s, %s, now_()) "
            "ON CONFLICT (person_id) DO UPDATE SET handoff_ref = excluded.handoff_ref, seen_at = excluded.seen_at "
            "WHERE p.handoff_ref <> excluded.handoff_ref OR p.seen_at < now_() - make_interval(secs => %s)",
            [person.pk, handoff_ref, BEAT_S],
        )
