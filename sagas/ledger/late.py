"""Late facts: what evidence that nobody waited for any more does to a run (laws 4 and 9)."""

from __future__ import annotations

from sagas import entries
from sagas.ledger import batch, compensate, evidence, settle
from sagas.ledger.desk import Desk
from sagas.ledger.evidence import Proof
from sagas.models import Action, Compensation, Evidence
from sagas.orders import Answered, Seen
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState
from tools.contract import ErrorClass
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
            batch.derive_of(desk, action)
        else:
            _of_compensation(desk, action, desk.compensations[action.pk], proof)
    run.evidence_waiting = False


def _of_action(desk: Desk, action: Action, proof: Evidence) -> None:
    """Let a late fact settle what it can; what contradicts the record opens the eyes of a person (law 9)."""
    found = proof.verdict == Verdict.FOUND
    match action.state:
        case ActionState.UNKNOWN:
            settle.settle(desk, action, _as_answer(proof), by=_source(proof))
        case ActionState.SENT if found:
            _confirm(desk, action, proof, "confirm")
        case ActionState.SENT if proof.verdict == Verdict.DENIED:
            settle.reject(desk, action, "reject", ErrorClass.REFUSED, proof.detail, entries.TOOL)
        case ActionState.REJECTED if found and not _went_on(desk, action):
            _confirm(desk, action, proof, "late_found")
        case ActionState.REJECTED | ActionState.SKIPPED | ActionState.ACCEPTED | ActionState.SUPERSEDED if (
            found
        ):
            _contradiction(
                desk, action, f"{action.step} took effect after all: {proof.detail or proof.reference}"
            )
        case ActionState.CONFIRMED | ActionState.COMPENSATED if proof.verdict == Verdict.DENIED:
            if action.state == ActionState.CONFIRMED and _ties(desk, action, proof):
                # Said for the same moment as its opposite: neither is newer, so the system itself is asked.
                desk.set(action, due_at=desk.now)
            elif not _older_than_known(proof):
                _contradiction(desk, action, f"{action.step} is said not to have happened: {proof.detail}")
        case _:
            pass


def _confirm(desk: Desk, action: Action, proof: Evidence, verb: str) -> None:
    settle.confirm(
        desk,
        action,
        verb=verb,
        reference=proof.reference,
        result=proof.body,
        by=_source(proof),
        actor=entries.TOOL,
    )


def _went_on(desk: Desk, action: Action) -> bool:
    """Whether a later step was sent, or the run has ended: then the record is not simply corrected.

    What went out at the same time is not later.
    """
    desk.read_all()
    final, order = desk.run.finished_at is not None, desk.definition.front_of
    return final or any(row.sent_at for row in desk.actions if order(row.step) > order(action.step))


def _older_than_known(proof: Evidence) -> bool:
    """Whether the sender itself said something newer of this call before (order comes from the sender's time)."""
    if proof.sender_at is None:
        return False
    return Evidence.objects.filter(
        action_id=proof.action_id, pk__lt=proof.pk, sender_at__gt=proof.sender_at
    ).exists()


def _ties(desk: Desk, action: Action, proof: Evidence) -> bool:
    """Whether the sender said the opposite for the very same moment, and the system can be asked."""
    if proof.sender_at is None or desk.contract(action).status_query is None:
        return False
    same = Evidence.objects.filter(
        action_id=proof.action_id,
        pk__lt=proof.pk,
        sender_at=proof.sender_at,
        sender_version=proof.sender_version,
    )
    return same.exclude(verdict=proof.verdict).exists() and not _older_than_known(proof)


def _contradiction(desk: Desk, action: Action, detail: str) -> None:
    linked = desk.run.finished_at is not None
    desk.hand_over(Reason.LATE_FACT, action=action, detail=detail, actor=entries.VALIDATOR, linked=linked)


def _of_compensation(desk: Desk, action: Action, compensation: Compensation, proof: Evidence) -> None:
    """Only "it holds" is news: what was said to have failed or was left out may hold after all."""
    if proof.verdict != Verdict.FOUND:
        return
    match compensation.state:
        case CompensationState.UNKNOWN:
            compensate.settle(desk, action, compensation, _as_answer(proof), by=_source(proof))
        case CompensationState.SENT:
            _compensated(desk, action, compensation, proof, "confirm")
        case CompensationState.FAILED:
            _compensated(desk, action, compensation, proof, "late_found")
            handoff = desk.handoff
            if handoff and not handoff.claimed_by and handoff.reason == Reason.COMPENSATION_FAILED:
                desk.close_handoff("settled by evidence", actor=entries.VALIDATOR)
        case CompensationState.SKIPPED_BY_OPERATOR | CompensationState.VOIDED:
            said = proof.detail or proof.reference
            _contradiction(desk, action, f"the compensation of {action.step} took effect after all: {said}")
        case _:
            pass


def _compensated(desk: Desk, action: Action, compensation: Compensation, proof: Evidence, verb: str) -> None:
    compensate.compensated(
        desk,
        action,
        compensation,
        verb,
        _source(proof),
        entries.TOOL,
        result=proof.body,
        reference=proof.reference,
    )


def _source(proof: Evidence) -> str:
    return "callback" if proof.source == "callback" else "late answer"


def _as_answer(proof: Evidence) -> QueryAnswer:
    return QueryAnswer(
        verdict=Verdict(proof.verdict),
        reference=proof.reference,
        result=proof.body,
        detail=proof.detail or "a late answer",
    )
