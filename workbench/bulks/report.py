"""The closure report of a bulk: every case with its result, and whether it is settled, waived or still open now."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sagas import api
from sagas.facts import Actor
from workbench.queries import bulks
from workbench.queries.bulks import BulkFacts, MemberFacts

COLUMNS = (
    *("bulk", "position", "case", "run", "version_seen", "step", "tool", "title", "business_ref"),
    *("result", "code", "says", "first", "sent_at", "settled_at", "disposition", "run_state"),
)
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def taken(facts: BulkFacts, *, actor: Actor, form: str) -> Iterator[str]:
    """The lines of the file, `csv` or `jsonl`, and an entry that somebody took it."""
    with api.transaction():
        api.log(
            name="bulk.exported", actor=actor, after={"bulk": facts.ref, "form": form, "digest": facts.digest}
        )
    rows = (_row(facts, one) for one in bulks.every_member(facts.ref))
    return _csv(rows) if form == "csv" else _jsonl(facts, rows)


def head(facts: BulkFacts) -> dict[str, Any]:
    """What the report is of: who ordered what, why, for which list, and how it ended."""
    return {
        "kind": "bulk",
        "bulk": facts.ref,
        "verb": facts.verb,
        "state": str(facts.state),
        "by": facts.actor_id,
        "by_name": facts.actor_name,
        "reason": facts.reason,
        "reason_code": facts.arguments.get("reason_code", ""),
        "frozen_at": _time(facts.frozen_at),
        "started_at": _time(facts.started_at),
        "released_at": _time(facts.released_at),
        "ended_at": _time(facts.ended_at),
        "read_at": _time(facts.now),
        "why": facts.why.plain(),
        "arrived_later": facts.arrived,
        "counts": {str(state): number for state, number in facts.counts.items()},
        "digest": facts.digest,
    }


def row(one: MemberFacts) -> dict[str, Any]:
    """One case as plain values; sentences in English, times in UTC."""
    return {
        "position": one.position,
        "case": one.handoff_ref,
        "run": one.run_ref,
        "version_seen": one.version,
        "step": one.step,
        "tool": one.tool,
        "title": one.title,
        "business_ref": one.business_ref,
        "result": str(one.state),
        "code": one.code,
        "says": one.said.plain(),
        "first": one.first,
        "sent_at": _time(one.sent_at),
        "settled_at": _time(one.settled_at),
        "disposition": one.disposition,
        "run_state": one.run_state,
    }


def _row(facts: BulkFacts, one: MemberFacts) -> dict[str, Any]:
    return {"bulk": facts.ref, **row(one)}


def _jsonl(facts: BulkFacts, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield json.dumps(head(facts), ensure_ascii=False) + "\n"
    for one in rows:
        yield json.dumps({"kind": "case", **one}, ensure_ascii=False) + "\n"


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    line = io.StringIO()
    writer = csv.DictWriter(line, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for one in rows:
        writer.writerow({name: _cell(value) for name, value in one.items()})
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_STARTS_A_FORMULA) else value


def _time(at: datetime | None) -> str:
    return at.isoformat() if at else ""
