"""The four histories as plain values, so that an invariant is a function of them and of nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

FINAL = frozenset({"completed", "compensated", "failed_clean", "closed_accepted"})

type Row = Mapping[str, Any]
"""A row of a table by column."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """H1: one operation of the driver. `outcome`: ok, refused (a definite no) or info (it never learnt)."""

    kind: str
    id: str
    outcome: str
    ref: str = ""
    verb: str = ""
    status: int = 0
    detail: str = ""
    tries: int = 1


@dataclass(frozen=True, kw_only=True)
class Record:
    """H2: one line of the world's ledger."""

    seq: int
    at: datetime
    kind: str
    tool: str
    direction: str
    key: str
    business: str


@dataclass(frozen=True, kw_only=True)
class Told:
    """H3: one entry as the product hands it out."""

    seq: int
    name: str
    at: datetime
    machine: str
    source: str
    target: str
    step: str
    actor_kind: str
    command_id: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """H4: the tables at one moment. Rows by table, in the order of their ids."""

    tables: Mapping[str, tuple[Row, ...]]
    contracts: Mapping[int, Row]

    def __getitem__(self, table: str) -> tuple[Row, ...]:
        return self.tables[table]


@dataclass(frozen=True, kw_only=True)
class Histories:
    """All four. `seen` are events in the order in which a reader of the stream got them: (run, seq).

    `clock_moved`: the database's clock was put forward, so that its times say nothing beside those of the world.
    """

    said: tuple[Said, ...]
    records: tuple[Record, ...]
    told: Mapping[str, tuple[Told, ...]]
    snapshot: Snapshot
    books: tuple[str, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict)
    seen: tuple[tuple[str, int], ...] = ()
    clock_moved: bool = False

    @cached_property
    def runs(self) -> dict[int, Row]:
        return {row["id"]: row for row in self.snapshot["run"]}

    @cached_property
    def refs(self) -> dict[str, Row]:
        return {row["ref"]: row for row in self.snapshot["run"]}

    @cached_property
    def actions(self) -> dict[int, Row]:
        return {row["id"]: row for row in self.snapshot["action"]}

    @cached_property
    def actions_of(self) -> dict[int, list[Row]]:
        """The actions of a run, by the run's id."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.snapshot["action"]:
            found[row["run_id"]].append(row)
        return found

    @cached_property
    def compensation_of(self) -> dict[int, Row]:
        """The compensation of an action, by the action's id."""
        return {row["action_id"]: row for row in self.snapshot["compensation"]}

    @cached_property
    def wholes(self) -> frozenset[int]:
        """Actions that consist of items; what they do is done by their items."""
        return frozenset(row["parent_id"] for row in self.snapshot["action"] if row["parent_id"])

    @cached_property
    def open_handoffs(self) -> frozenset[int]:
        """Runs with a case that is open."""
        return frozenset(row["run_id"] for row in self.snapshot["handoff"] if row["state"] != "resolved")

    @cached_property
    def asked(self) -> frozenset[int]:
        """Runs of which a signature is asked for."""
        return frozenset(row["run_id"] for row in self.snapshot["permit"] if row["state"] == "requested")

    def settled(self, run: Row) -> bool:
        """Whether a run is at its end, or visibly with a person."""
        waits = run["state"] == "awaiting_approval" and run["id"] in self.asked
        return run["state"] in FINAL or run["id"] in self.open_handoffs or waits

    @cached_property
    def effects(self) -> dict[str, list[Record]]:
        """What took effect outside, by key."""
        return self._by_key("effect")

    @cached_property
    def arrivals(self) -> dict[str, list[Record]]:
        """What arrived outside, by key; queries left out."""
        return self._by_key("arrived")

    @cached_property
    def attempts_of(self) -> dict[tuple[int, int | None], list[Row]]:
        """Tries over the wire by (action, compensation or None), in their order."""
        found: dict[tuple[int, int | None], list[Row]] = defaultdict(list)
        for row in self.snapshot["attempt"]:
            found[row["action_id"], row["compensation_id"]].append(row)
        return found

    def _by_key(self, kind: str) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            if record.kind == kind and record.direction in ("do", "compensate"):
                found[record.key].append(record)
        return found

    def net(self, action: Row) -> int:
        """How often the effect of an action stands outside: done under its key less made up for."""
        made_up = self.compensation_of.get(action["id"])
        return self.done(action) - (len(self.effects.get(made_up["key"], ())) if made_up else 0)

    def done(self, action: Row) -> int:
        """How often an action took effect under its own key."""
        return sum(record.direction == "do" for record in self.effects.get(action["key"], ()))
