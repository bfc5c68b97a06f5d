"""Who has a case open just now. Reads only; a person is there for as long as their page gives signs of life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import connection

from workbench.models.presence import LEASE_S


def viewers(refs: Iterable[str]) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """For each of these handoffs who looks at it now, as (user name, name), by name; one query."""
    found: dict[str, list[tuple[str, str]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.handoff_ref, u.username, u.display_name FROM workbench_presence p "
            "JOIN workbench_user u ON u.id = p.person_id "
            "WHERE p.handoff_ref = ANY(%s) AND p.seen_at > now_() - make_interval(secs => %s) ORDER BY u.display_name",
            [list(refs), LEASE_S],
        )
        for ref, username, name in cursor.fetchall():
            found.setdefault(ref, []).append((username, name))
    return {ref: tuple(who) for ref, who in found.items()}
