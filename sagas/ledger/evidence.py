"""Evidence: how it is stored, and how the ledger lets it settle what is unknown (engine.md, section 6)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from sagas import entries
from sagas.ledger.desk import Desk
from sagas.models import Action
from tools.contract import Json
from tools.outcome import Outcome, QueryAnswer, Verdict

_NAMES_KEPT = 20

RANK: dict[str, int] = {
    Verdict.FOUND: 3,
    Verdict.DENIED: 2,
    Verdict.ABSENT: 1,
    Verdict.NO_ANSWER: 0,
}
"""Found beats denied beats a bare "not found" (shared rule R8)."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One piece of evidence about to be stored."""

    run_id: int | None
    action_id: int | None
    source: str
    verdict: Verdict
    compensation_id: int | None = None
    attempt_id: int | None = None
    key: str = ""
    reference: str = ""
    detail: str = ""
    body: Json = None
    by: str = ""
    sender_at: datetime | None = None
    sender_version: str = ""


def store(proof: Proof) -> int:
    """Append evidence and return its id; only these columns may be written by the application role."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_evidence (run_id, action_id, compensation_id, attempt_id, key, source, verdict, rank, "
            "reference, detail, body, by, sender_at, sender_version) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s) RETURNING id",
            [
                proof.run_id,
                proof.action_id,
                proof.compensation_id,
                proof.attempt_id,
                proof.key,
                proof.source,
                proof.verdict.value,
                RANK[proof.verdict],
                proof.reference,
                proof.detail,
                None if proof.body is None else json.dumps(proof.body, ensure_ascii=False),
                proof.by,
                proof.sender_at,
                proof.sender_version,
            ],
        )
        return int(cursor.fetchone()[0])


def alone_with(system: str, reference: str) -> None:
    """Until this transaction ends nobody else learns of, or keeps an answer about, this reference of a system.

    Whoever holds it takes no run's lock after it: recording takes it last, the inbox holds nothing else.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"reference {system} {reference}"]
        )


def adopt(*, run_id: int, action_id: int, key: str, system: str, reference: str) -> int:
    """Make the answers that came before anybody knew the reference this action's own; returns how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_evidence (run_id, action_id, key, source, verdict, rank, reference, detail, body, by, "
            "sender_at, sender_version) SELECT %s, %s, %s, e.source, e.verdict, e.rank, e.reference, e.detail, e.body, "
            "e.by, e.sender_at, e.sender_version FROM sagas_evidence e "
            "WHERE e.run_id IS NULL AND e.reference = %s AND e.by = %s AND NOT EXISTS (SELECT FROM sagas_evidence k "
            "WHERE k.action_id = %s AND k.source = e.source AND k.verdict = e.verdict "
            "AND k.sender_at IS NOT DISTINCT FROM e.sender_at AND k.sender_version = e.sender_version) ORDER BY e.id",
            [run_id, action_id, key, reference, system, action_id],
        )
        return int(cursor.rowcount)


def adopt_early(desk: Desk, action: Action, system: str) -> None:
    """What the system said of this reference before we knew it counts as if it came now (engine.md, section 6)."""
    reference = action.provider_ref
    if not reference:
        return
    alone_with(system, reference)
    found = adopt(run_id=desk.run.pk, action_id=action.pk, key=action.key, system=system, reference=reference)
    if found:
        desk.run.evidence_waiting = True
        after = {"reference": reference, "early": found}
        desk.say("tool.callback.received", actor=entries.TOOL, step=action.step, after=after)


def of_query(
    answer: QueryAnswer, *, run_id: int, action_id: int, compensation_id: int | None, key: str
) -> Proof:
    """A status query's answer as evidence."""
    return Proof(
        run_id=run_id,
        action_id=action_id,
        compensation_id=compensation_id,
        source="query",
        verdict=answer.verdict,
        key=key,
        reference=answer.reference,
        detail=answer.detail,
        body=answer.result,
    )


def say_cut(desk: Desk, action: Action, outcome: Outcome) -> None:
    """An answer that was too large is never kept whole anywhere; its size, and the digest of what was read, are."""
    cut = outcome.cut
    if cut is None:
        return
    kept = sorted(outcome.result)[:_NAMES_KEPT] if isinstance(outcome.result, dict) else []
    desk.say(
        "tool.result.truncated",
        actor=entries.TOOL,
        step=action.step,
        after={
            "read": cut.read,
            "declared": cut.declared,
            "sha256": cut.sha256,
            "kept": [name[:100] for name in kept],
            "provider_ref": outcome.reference,
        },
    )
