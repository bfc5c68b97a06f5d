"""Freeze and unfreeze: the lock that every commit of `sent` takes shared is taken exclusively here (law 12)."""

from __future__ import annotations

from django.db import connection

from sagas import entries
from sagas.entries import EntryRow
from sagas.errors import NotFound
from sagas.facts import Actor
from sagas.models import Freeze
from sagas.tx import lock_freeze
from tools.contract import Json

SCOPES = ("forward", "writes", "everything")


def freeze(
    *, actor: Actor, scope: str = "forward", applies_to: str = "all", reason: str, command_id: str = ""
) -> int:
    """Stop what the scope names, from this commit on. Calls already in flight are not stopped. Returns its id.

    Runs inside the caller's transaction. Raises `ValueError` for an unknown scope.
    """
    if scope not in SCOPES:
        raise ValueError(f"scope is one of {', '.join(SCOPES)}, not {scope!r}")
    lock_freeze()
    row = Freeze.objects.create(
        scope=scope, applies_to=applies_to, reason=reason, frozen_by=actor.id, frozen_by_name=actor.name
    )
    _say(
        "system.frozen",
        actor,
        reason,
        {"freeze": row.pk, "scope": scope, "applies_to": applies_to},
        command_id,
    )
    return row.pk


def unfreeze(*, actor: Actor, freeze_id: int, reason: str, command_id: str = "") -> None:
    """Lift a freeze; what it held becomes due, paced, and looks again before it goes on. Raises `NotFound`."""
    lock_freeze()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_freeze SET lifted_at = now_(), lifted_by = %s WHERE id = %s AND lifted_at IS NULL",
            [actor.id, freeze_id],
        )
        if cursor.rowcount != 1:
            raise NotFound("freeze in force", str(freeze_id))
        # Paced: fifty runs a second, so that what waited does not come back all at once.
        cursor.execute(
            "UPDATE sagas_run SET held = false, due_at = now_() + paced.n * interval '20 milliseconds' "
            "FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM sagas_run WHERE held AND owner = '') paced "
            "WHERE sagas_run.id = paced.id"
        )
    _say("system.unfrozen", actor, reason, {"freeze": freeze_id}, command_id)


def _say(name: str, actor: Actor, reason: str, after: Json, command_id: str) -> None:
    with connection.cursor() as cursor:
        row = EntryRow(name=name, actor=actor, reason=reason, after=after, command_id=command_id)
        entries.insert(cursor, [row])
