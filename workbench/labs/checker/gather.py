"""Collects the histories: the ledger through the world's admin port, entries through the engine's door, the tables by
plain SQL in one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import psycopg
from psycopg.rows import dict_row

from sagas import api
from workbench.labs.checker.histories import Histories, Record, Row, Said, Snapshot, Told
from workbench.labs.world import Outside

TABLES = {
    "run": "SELECT * FROM sagas_run ORDER BY id",
    "action": "SELECT * FROM sagas_action ORDER BY id",
    "compensation": "SELECT * FROM sagas_compensation ORDER BY id",
    "attempt": "SELECT * FROM sagas_attempt ORDER BY id",
    "handoff": "SELECT id, run_id, ref, state, version, linked, reason, unknowns, opened_at, resolved_at, "
    "compensation_failed FROM sagas_handoff ORDER BY id",
    "permit": "SELECT * FROM sagas_permit ORDER BY id",
    "proposal": "SELECT * FROM sagas_proposal ORDER BY id",
    "outbox": "SELECT * FROM sagas_outbox ORDER BY run_id, seq_from",
    "worker": "SELECT * FROM sagas_worker ORDER BY started_at",
    "freeze": "SELECT * FROM sagas_freeze ORDER BY id",
    "receipt": "SELECT actor_id, command_id, verb FROM workbench_receipt ORDER BY id",
    "legal": "SELECT * FROM sagas_legal_move",
    "change": "SELECT run_id, machine, object_id, object_version, source, target FROM sagas_entry "
    "WHERE machine <> '' ORDER BY machine, object_id, object_version, id",
    "loose": "SELECT id, name, at, after, command_id FROM sagas_entry WHERE run_id IS NULL ORDER BY id",
    "counted": "SELECT run_id, count(*) AS entries FROM sagas_entry WHERE run_id IS NOT NULL GROUP BY run_id",
    "clock": "SELECT now_() AS now",
}


def snapshot(owner_url: str) -> Snapshot:
    """H4: every table as it is at one moment."""
    with psycopg.connect(owner_url, row_factory=dict_row) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        tables: dict[str, tuple[Row, ...]] = {
            name: tuple(connection.execute(query).fetchall()) for name, query in TABLES.items()
        }
        rows = connection.execute("SELECT id, tool, document FROM sagas_contractversion").fetchall()
    return Snapshot(tables=tables, contracts={row["id"]: row for row in rows})


def records(outside: Outside) -> tuple[Record, ...]:
    """H2: the whole ledger of the world."""
    return tuple(
        Record(
            seq=one["seq"],
            at=datetime.fromisoformat(one["at"]),
            kind=one["kind"],
            tool=one["tool"],
            direction=one["direction"],
            key=one["key"],
            business=one["business"],
        )
        for one in outside.ledger()
    )


def told(refs: Iterable[str]) -> dict[str, tuple[Told, ...]]:
    """H3: the trail of each run, page by page, through the engine's door."""
    return {ref: tuple(_trail(ref)) for ref in refs}


def _trail(ref: str) -> Iterable[Told]:
    after = 0
    while page := api.entries(ref, after_seq=after, limit=500):
        for entry in page:
            yield Told(
                seq=entry.seq or 0,
                name=entry.name,
                at=entry.at,
                machine=entry.machine,
                source=entry.source,
                target=entry.target,
                step=entry.step,
                actor_kind=entry.actor_kind,
                command_id=entry.command_id,
            )
        after = page[-1].seq or 0


def gather(
    *,
    outside: Outside,
    owner_url: str,
    said: Iterable[Said] = (),
    seen: Iterable[tuple[str, int]] = (),
    clock_moved: bool = False,
) -> Histories:
    """All four histories as they are now; the product must be at rest."""
    tables = snapshot(owner_url)
    return Histories(
        said=tuple(said),
        records=records(outside),
        told=told(row["ref"] for row in tables["run"]),
        snapshot=tables,
        books=outside.complaints(),
        counted=api.queue_counts(""),
        seen=tuple(seen),
        clock_moved=clock_moved,
    )
