"""Evidence: how it is stored, and how the ledger lets it settle what is unknown (engine.md, section 6)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from tools.contract import Json
from tools.outcome import QueryAnswer, Verdict

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
