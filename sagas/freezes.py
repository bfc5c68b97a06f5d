"""Freeze and unfreeze: the lock that every commit of `sent` takes shared is taken exclusively here (law 12)."""

from __future__ import annotations

from django.db import connection

from sagas import entries
from sagas.entries import EntryRow
from sagas.errors import NotFound
from sagas.facts import Actor, FreezeReach
from sagas.models import ContractVersion, DefinitionVersion, Freeze, Run, TeamVersion
from sagas.tx import lock_freeze
from tools.contract import Json

SCOPES = ("forward", "writes", "everything")


def freeze(
    *,
    actor: Actor,
    scope: str = "forward",
    applies_to: str = "all",
    reason: str,
    reason_code: str = "",
    command_id: str = "",
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
    after: Json = {"freeze": row.pk, "scope": scope, "applies_to": applies_to}
    _say("system.frozen", actor, reason, reason_code, after, command_id)
    return row.pk


def is_place(applies_to: str) -> bool:
    """Whether there is such a place: all, a published tool or workflow, a team of either."""
    kind, _, name = applies_to.partition(":")
    match kind:
        case "all":
            return not name and applies_to == "all"
        case "tool":
            return ContractVersion.objects.filter(tool=name).exists()
        case "workflow":
            return DefinitionVersion.objects.filter(name=name).exists()
        case "team":
            named = DefinitionVersion.objects.filter(document__team=name)
            ran = Run.objects.filter(team=name)
            return bool(name) and (
                named.exists() or TeamVersion.objects.filter(name=name).exists() or ran.exists()
            )
    return False


def reach(applies_to: str = "all", scope: str = "everything") -> FreezeReach:
    """How many runs a freeze of this place would stop just now, and how many calls it could not stop any more.

    A freeze of forward calls lets compensations go on: neither they nor the runs that go back are counted.
    """
    kind, _, name = applies_to.partition(":")
    runs, calls = _PLACES.get(kind, ("true", "true"))
    if scope == "forward":
        runs, calls = _FORWARD_PLACES.get(kind, (runs, calls))
        runs, calls = f"r.direction = 'forward' AND {runs}", f"t.compensation_id IS NULL AND {calls}"
    with connection.cursor() as cursor:
        cursor.execute(_REACH.format(runs=runs, calls=calls), {"name": name})
        stopped, in_flight = cursor.fetchone()
    return FreezeReach(runs=int(stopped), in_flight=int(in_flight))


_OF_WORKFLOW = "r.definition_id IN (SELECT id FROM sagas_definitionversion WHERE name = %(name)s)"
_PLACES = {
    "tool": (
        "EXISTS (SELECT 1 FROM sagas_action a LEFT JOIN sagas_compensation c ON c.action_id = a.id "
        "WHERE a.run_id = r.id AND %(name)s IN (a.tool, c.tool))",
        "coalesce(c.tool, x.tool) = %(name)s",
    ),
    "workflow": (_OF_WORKFLOW, _OF_WORKFLOW),
    "team": ("r.team = %(name)s", "r.team = %(name)s"),
}
_FORWARD_PLACES = {
    "tool": (
        "EXISTS (SELECT 1 FROM sagas_action a WHERE a.run_id = r.id AND a.tool = %(name)s)",
        "x.tool = %(name)s",
    )
}
_REACH = """
SELECT (SELECT count(*) FROM sagas_run r WHERE r.finished_at IS NULL AND {runs}),
       (SELECT count(*) FROM sagas_attempt t JOIN sagas_run r ON r.id = t.run_id
        JOIN sagas_action x ON x.id = t.action_id LEFT JOIN sagas_compensation c ON c.id = t.compensation_id
        WHERE t.finished_at IS NULL AND {calls})
"""


# --- Lifting: two people --------------------------------------------------------------------------------------------


def ask_to_lift(
    *, actor: Actor, freeze_id: int, reason: str, reason_code: str = "", command_id: str = ""
) -> None:
    """The first of the two people. The freeze stays in force until another one lifts it. Raises `NotFound`."""
    lock_freeze()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_freeze SET lift_asked_by = %s, lift_asked_by_name = %s, lift_asked_at = now_(), "
            "lift_reason = %s WHERE id = %s AND lifted_at IS NULL AND lift_asked_at IS NULL",
            [actor.id, actor.name, reason, freeze_id],
        )
        if cursor.rowcount != 1:
            raise NotFound("freeze in force that nobody asked to lift", str(freeze_id))
    _say("system.lift_asked", actor, reason, reason_code, {"freeze": freeze_id}, command_id)


def keep_frozen(
    *, actor: Actor, freeze_id: int, reason: str, reason_code: str = "", command_id: str = ""
) -> None:
    """Take back that a freeze is to be lifted; it stays in force. Raises `NotFound` where nobody asked."""
    lock_freeze()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_freeze SET lift_asked_by = '', lift_asked_by_name = '', lift_asked_at = NULL, "
            "lift_reason = '' WHERE id = %s AND lifted_at IS NULL AND lift_asked_at IS NOT NULL",
            [freeze_id],
        )
        if cursor.rowcount != 1:
            raise NotFound("freeze that somebody asked to lift", str(freeze_id))
    _say("system.lift_withdrawn", actor, reason, reason_code, {"freeze": freeze_id}, command_id)


def unfreeze(
    *, actor: Actor, freeze_id: int, reason: str, reason_code: str = "", command_id: str = ""
) -> None:
    """Lift a freeze; what it held becomes due, paced, and looks again before it goes on. Raises `NotFound`.

    Whose word it takes is the commands' business. What another freeze holds stays where it is.
    """
    lock_freeze()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_freeze SET lifted_at = now_(), lifted_by = %s WHERE id = %s AND lifted_at IS NULL",
            [actor.id, freeze_id],
        )
        if cursor.rowcount != 1:
            raise NotFound("freeze in force", str(freeze_id))
        # Paced: fifty runs a second, so that what waited does not come back all at once; the gates pace each tool.
        cursor.execute(
            "UPDATE sagas_run SET held = false, held_by = NULL, "
            "due_at = now_() + paced.n * interval '20 milliseconds' "
            "FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM sagas_run "
            "      WHERE held AND owner = '' AND (held_by = %s OR held_by IS NULL)) paced "
            "WHERE sagas_run.id = paced.id",
            [freeze_id],
        )
    _say("system.unfrozen", actor, reason, reason_code, {"freeze": freeze_id}, command_id)


def _say(name: str, actor: Actor, reason: str, reason_code: str, after: Json, command_id: str) -> None:
    row = EntryRow(
        name=name, actor=actor, reason=reason, reason_code=reason_code, after=after, command_id=command_id
    )
    with connection.cursor() as cursor:
        entries.insert(cursor, [row])
