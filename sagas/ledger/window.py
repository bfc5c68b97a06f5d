"""Which rows of a run a decision needs: the one door to the actions on a desk, with the reason for each kind.

Reads only, under the run's lock. A small run is read whole; of a large one a step reads what is open and what comes
next, so that the ten-thousandth step costs what the first one did (decision 0011).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from sagas.models import Action, Compensation, Permit, Run
from sagas.published import contract_by_id, definition_by_id, effective_contracts
from sagas.rows import Sent, Statement, as_rows, fetch, select, send
from sagas.states import ActionState, Direction
from tools.bindings import sources
from tools.contract import Json, Who

READ_WHOLE = 64
"""A run of at most this many steps is read whole: a part of it would cost as much."""

AHEAD = 8
"""How many of the steps to begin next, and of the effects to make up for next, are read at a time: as many as go out
together (`planner.MOST_TOGETHER`), or a group would wait for what is not read.
"""

_OPEN = """
  SELECT id FROM sagas_action
  WHERE run_id = %(run)s AND state IN ('prepared', 'sent', 'unknown', 'partial', 'rejected')
  UNION SELECT id FROM sagas_action
  WHERE run_id = %(run)s AND state = 'confirmed' AND due_at IS NOT NULL
  UNION SELECT action_id FROM sagas_compensation
  WHERE run_id = %(run)s AND state IN ('due', 'awaiting_approval', 'sent', 'unknown', 'failed')
"""
"""All of what is open, what is confirmed and disputed included: any of it decides the run's state, or moves next."""

_NEXT = """
  (SELECT id FROM sagas_action
   WHERE run_id = %(run)s AND state = 'not_started' AND step <> ALL(%(held)s) AND id <> ALL(%(known)s)
   ORDER BY position LIMIT %(ahead)s)
"""
"""The steps to begin next, in their order. What is read is always the first of them: none is passed over."""

_HELD = """
  (SELECT id FROM sagas_action
   WHERE run_id = %(run)s AND state = 'not_started' AND step = ANY(%(held)s) AND id <> ALL(%(known)s)
     AND NOT EXISTS (SELECT FROM sagas_action
                     WHERE run_id = %(run)s AND state = 'not_started' AND step <> ALL(%(held)s)
                       AND id <> ALL(%(known)s))
   ORDER BY position LIMIT %(ahead)s)
"""
"""Held steps come after all others, so they are read when there is no other left."""

_STANDING = """
  (SELECT a.id FROM sagas_action a LEFT JOIN sagas_compensation c ON c.action_id = a.id
   WHERE a.run_id = %(run)s AND a.state = 'confirmed' AND a.confirm_seq IS NOT NULL
     AND a.contract_id = ANY(%(effective)s) AND a.id <> ALL(%(known)s)
     AND (c.state IS NULL OR c.state <> 'confirmed')
   ORDER BY a.confirm_seq DESC LIMIT %(ahead)s)
"""
"""On the way back: the effects that stand, the last confirmed first. A mitigated one needs nothing more."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of one run. `whole`: there are no others."""

    actions: list[Action]
    compensations: list[Compensation]
    permits: list[Permit]
    whole: bool


def is_small(run: Run) -> bool:
    """Whether a run is read whole for every decision."""
    return len(definition_by_id(run.definition_id).steps) <= READ_WHOLE


def for_decision(run: Run) -> Rows:
    """What the next decision about a run that is not small rests on."""
    wanted = [_OPEN, *_ahead(run)]
    return _read(run, _ids(run, wanted, known=()))


def further(run: Run, known: Iterable[int]) -> Rows:
    """The next rows beyond those that are known; everything once there are none."""
    ids = _ids(run, _ahead(run), known=known)
    return _read(run, ids) if ids else everything(run)


def of_all(run: Run) -> tuple[Statement, Statement]:
    """Reads every row of a run, together with whatever else the caller reads in one trip. See `everything`."""
    return (
        select(Compensation, "WHERE run_id = %s ORDER BY id", [run.pk]),
        select(Action, "WHERE run_id = %s ORDER BY position, id", [run.pk]),
    )


def everything(run: Run, read: Sequence[Sent] = ()) -> Rows:
    """Every row of a run: what its end and a person's view are made from. `read`: what came of `of_all`, if it did."""
    made_up, acted = read or send(*of_all(run))
    compensations, actions = as_rows(Compensation, made_up), as_rows(Action, acted)
    signed = _signed(actions, compensations)
    permits = fetch(Permit, "WHERE run_id = %s ORDER BY id", [run.pk]) if signed else []
    return Rows(actions=actions, compensations=compensations, permits=permits, whole=True)


def values(run: Run, steps: Iterable[str]) -> dict[str, Json]:
    """What bindings may read of other steps, by the names of their sources."""
    others = Action.objects.filter(run=run, step__in=list(steps), item="")
    others = others.exclude(state=ActionState.SUPERSEDED)
    found: dict[str, Json] = {}
    for step, result, args, prior in others.values_list("step", "result", "args", "prior_state"):
        found |= values_of(step, result, args, prior)
    return found


def values_of(step: str, result: Json, args: Json, prior: Json) -> dict[str, Json]:
    """What a step gives to the bindings of others."""
    return {f"steps.{step}.result": result, f"steps.{step}.args": args, f"steps.{step}.prior": prior}


def steps_named(templates: Iterable[Json]) -> set[str]:
    """The steps whose values a template reads."""
    named = (source.split(".") for source in sources(list(templates)))
    return {parts[1] for parts in named if parts[0] == "steps" and len(parts) == 3}


def _ahead(run: Run) -> list[str]:
    if run.direction == Direction.UNDO:
        return [_STANDING]
    return [_NEXT, _HELD] if definition_by_id(run.definition_id).held else [_NEXT]


def _ids(run: Run, parts: list[str], *, known: Iterable[int]) -> list[int]:
    given: dict[str, int | list[int] | list[str]] = {
        "run": run.pk,
        "known": list(known),
        "held": list(definition_by_id(run.definition_id).held),
        "effective": list(effective_contracts(run.definition_id)),
        "ahead": AHEAD,
    }
    with connection.cursor() as cursor:
        cursor.execute(" UNION ".join(parts), given)
        return [row[0] for row in cursor.fetchall()]


def _read(run: Run, ids: list[int]) -> Rows:
    """These rows with what belongs to them: the parts of a call over many are read with it, and it with its parts."""
    actions = fetch(Action, "WHERE id = ANY(%s)", [ids])
    wholes = {row.parent_id for row in actions if row.parent_id is not None}
    wholes |= {row.pk for row in actions if row.parent_id is None and _has_parts(run, row)}
    if wholes:
        actions = fetch(Action, "WHERE id = ANY(%s) OR parent_id = ANY(%s)", [[*ids, *wholes], list(wholes)])
    actions.sort(key=lambda row: (row.position, row.pk))
    read = [row.pk for row in actions]
    compensations = fetch(Compensation, "WHERE action_id = ANY(%s) ORDER BY id", [read])
    signed = _signed(actions, compensations)
    permits = (
        fetch(Permit, "WHERE run_id = %s AND action_id = ANY(%s) ORDER BY id", [run.pk, read])
        if signed
        else []
    )
    return Rows(actions=actions, compensations=compensations, permits=permits, whole=False)


def _signed(actions: Iterable[Action], compensations: Iterable[Compensation]) -> bool:
    """Whether any of these calls needs a signature."""
    return any(row.who == Who.APPROVAL for row in compensations) or any(
        contract_by_id(row.contract_id).require_confirmation for row in actions
    )


def _has_parts(run: Run, row: Action) -> bool:
    step = definition_by_id(run.definition_id).step(row.step)
    return step.each is not None or contract_by_id(row.contract_id).items is not None
