"""Late facts: what evidence that nobody waited for any more does to a run (laws 4 and 9)."""

from __future__ import annotations

from sagas import entries
from sagas.ledger import evidence, settle
from sagas.ledger.desk import Desk
from sagas.ledger.evidence import Proof
from sagas.models import Action, Compensation, Evidence
from sagas.orders import Answered, Seen
from sagas.states import ActionState, CompensationState
from tools.outcome import OutcomeKind, QueryAnswer, Verdict
from tools.redact import mask


def keep(desk: Desk, seen: Seen) -> bool:
    """Keep what a worker saw after it lost its claim: evidence, never dropped, not applied by that worker (law 8).

    True if there was something to keep; the caller closes the desk.
    """
    if not isinstance(seen, Answered):
        return False
    outcome = seen.outcome
    if outcome.kind not in (OutcomeKind.CONFIRMED, OutcomeKind.REJECTED):
        return False
    found = outcome.kind is OutcomeKind.CONFIRMED and (seen.verified is None or bool(seen.verified.met))
    evidence.store(
        Proof(
            run_id=desk.run.pk,
            action_id=seen.call.action_id,
            compensation_id=seen.call.compensation_id,
            attempt_id=seen.call.attempt_id,
            source="late",
            verdict=Verdict.FOUND if found else Verdict.DENIED,
            key=seen.call.key,
            reference=outcome.reference,
            detail=outcome.detail,
            body=mask(outcome.result, seen.call.contract.secret_fields),
        )
    )
    desk.run.evidence_waiting = True
    desk.say("tool.execution.late_answer", actor=entries.TOOL, step=desk.action(seen.call.action_id).step)
    return True


def apply_waiting_evidence(desk: Desk) -> None:
    """Apply the evidence that came in since the last look, in the order in which it was stored."""
    run = desk.run
    if not run.evidence_waiting:
        return
    for proof in Evidence.objects.filter(run_id=run.pk, pk__gt=run.evidence_seen).order_by("pk"):
        run.evidence_seen = proof.pk
        if proof.source not in ("late", "callback") or proof.action_id is None:
            continue
        action = desk.action(proof.action_id)
        if proof.compensation_id is None:
            _of_action(desk, action, proof)
        else:
            _of_compensation(desk, action, desk.compensations[action.pk], proof)
    run.evidence_waiting = False


def _of_action(desk: Desk, action: Action, proof: Evidence) -> None:
    if action.state == ActionState.UNKNOWN:
        settle.settle(desk, action, _as_answer(proof))
    elif action.state == ActionState.REJECTED and proof.verdict == Verdict.FOUND:
        later_sent = any(row.sent_at for row in desk.actions if row.position > action.position)
        if not later_sent:
            settle.confirm(
                desk,
                action,
                verb="late_found",
                reference=proof.reference,
                result=proof.body,
                by="late answer",
                actor=entries.TOOL,
            )


def _of_compensation(desk: Desk, action: Action, compensation: Compensation, proof: Evidence) -> None:
    if compensation.state == CompensationState.UNKNOWN and proof.verdict == Verdict.FOUND:
        settle.settle_compensation(desk, action, compensation, _as_answer(proof))


def _as_answer(proof: Evidence) -> QueryAnswer:
    return QueryAnswer(
        verdict=Verdict(proof.verdict),
        reference=proof.reference,
        result=proof.body,
        detail=proof.detail or "a late answer",
    )
