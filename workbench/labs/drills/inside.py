"""What the product's own tables say about the runs of a drill: plain reads, as any observer could make them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from sagas import api
from sagas.facts import ActionFacts, RunFacts
from sagas.states import FINAL_RUN_STATES, RunState
from tools.contract import Json

_ENTRY = (
    "id, run_ref, seq, name, machine, object_id, step, source, target, actor_kind, actor_id, actor_name, role, "
    "reason, before, after, command_id, extract(epoch FROM at)::float8 AS at"
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the trail, whole. `at` is seconds of the database's clock; `item` the part it is about."""

    id: int
    run_ref: str
    seq: int | None
    name: str
    machine: str
    object_id: int | None
    step: str
    source: str
    target: str
    actor_kind: str
    actor_id: str
    actor_name: str
    role: str
    reason: str
    before: Json
    after: Json
    command_id: str
    at: float
    item: str = ""


def rows(sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """What a statement of ours finds."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def entries(run_ref: str) -> list[Entry]:
    """The trail of a run, in order."""
    found = rows(f"SELECT {_ENTRY} FROM sagas_entry WHERE run_ref = %s ORDER BY seq, id", [run_ref])  # noqa: S608
    items = _items(run_ref)
    return [_entry(row, items) for row in found]


def entries_without_run(after_id: int = 0) -> list[Entry]:
    """The entries that belong to no run: publications, roles, refusals without a case."""
    found = rows(f"SELECT {_ENTRY} FROM sagas_entry WHERE run_ref = '' AND id > %s ORDER BY id", [after_id])  # noqa: S608
    return [_entry(row, {}) for row in found]


def last_entry() -> int:
    """The number of the newest entry."""
    return int(rows("SELECT coalesce(max(id), 0) AS last FROM sagas_entry")[0]["last"])


def _entry(row: Mapping[str, Any], items: Mapping[tuple[str, int | str], str]) -> Entry:
    read = {name: _json(row[name]) for name in ("before", "after")}
    step, _, item = str(row["step"]).rstrip("]").partition("[")
    item = items.get((step, item), item) or items.get((row["machine"], row["object_id"] or 0), "")
    return Entry(**{**row, **read, "step": step}, item=item)


def _json(value: Json) -> Json:
    """A JSON column as the driver gives it to whoever asks past the models."""
    return json.loads(value) if isinstance(value, str) else value


def _items(run_ref: str) -> dict[tuple[str, int | str], str]:
    """The name of a part by its row, and by how the product numbers it."""
    facts = api.run_facts(run_ref)
    found: dict[tuple[str, int | str], str] = {}
    for action in facts.actions:
        for unit in (action, *action.items):
            name = item_of(unit)
            found["action", unit.id] = name
            found[unit.step.partition("[")[0], unit.item] = name
            if unit.compensation is not None:
                found["compensation", unit.compensation.id] = name
    return found


def item_of(unit: ActionFacts) -> str:
    """The name of a part as the drill says it: the last word of what its call is about; the product numbers loops."""
    if not unit.item:
        return ""
    about = unit.args.get("about", "") if isinstance(unit.args, dict) else ""
    return str(about).rpartition(".")[2] or unit.item


def units(facts: RunFacts, step: str) -> list[ActionFacts]:
    """Every generation of a step, its parts in the place of a whole that has some."""
    return [unit for action in facts.actions if action.step == step for unit in (action.items or (action,))]


def unit(facts: RunFacts, step: str, item: str = "") -> ActionFacts | None:
    """The newest generation of a step, or of one of its parts."""
    whole = [action for action in facts.actions if action.step == step and (not item or action.items)]
    if not whole:
        return None
    newest = max(whole, key=lambda action: action.generation)
    if not item:
        return newest
    parts = [one for action in whole for one in action.items if item_of(one) == item]
    return max(parts, key=lambda one: one.generation) if parts else None


def compensation_state(action: ActionFacts | None) -> str:
    """The state of what makes up for a step; "none" where nothing does."""
    return "none" if action is None or action.compensation is None else action.compensation.state.value


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """How a run stands by the clock. Times in seconds of the database's clock; `held_by` names its owner's place."""

    ref: str
    state: str
    owner: str
    held_by: str
    due_at: float | None
    now: float

    @property
    def with_a_person(self) -> bool:
        """Whether it waits for somebody, or is at its end."""
        resting = (*FINAL_RUN_STATES, RunState.HANDOFF, RunState.AWAITING_APPROVAL)
        return self.state in {state.value for state in resting}


def pulses(refs: Sequence[str]) -> list[Pulse]:
    """How these runs stand."""
    found = rows(
        "SELECT r.ref, r.state, r.owner, coalesce(w.place, '') AS held_by, "
        "extract(epoch FROM r.due_at)::float8 AS due_at, extract(epoch FROM now_())::float8 AS now "
        "FROM sagas_run r LEFT JOIN sagas_worker w ON w.id = r.owner WHERE r.ref = ANY(%s)",
        [list(refs)],
    )
    return [Pulse(**row) for row in found]
