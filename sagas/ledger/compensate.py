"""What an answer does to a compensation: looked at first, read back after, bounded, and never given up in silence.

Like `settle`, guarded by claim and fence alone.
"""

from __future__ import annotations

from datetime import timedelta

from sagas import entries, planner
from sagas.facts import Actor
from sagas.ledger import batch, evidence
from sagas.ledger.asking import DISPATCH_WINDOW_S, absence_is_proof, ask_again, resolve_by_evidence, short
from sagas.ledger.desk import Desk
from sagas.ledger.evidence import Proof
from sagas.models import Action, Compensation
from sagas.orders import Answered, Checked, ConditionSeen
from sagas.states import ActionState, CompensationState
from tools.contract import CompensationKind, ErrorClass, Json
from tools.outcome import Outcome, OutcomeKind, QueryAnswer, Verdict
from tools.redact import mask, mask_text


def checked(desk: Desk, seen: Checked) -> bool:
    """Weigh the look before the leap. True: the compensating call may go out in this very commit."""
    action = desk.action(seen.ask.action_id)
    compensation = desk.compensations[action.pk]
    if compensation.state != CompensationState.DUE:
        return False
    done, conditions = seen.already_done, seen.conditions
    for condition in (*((done,) if done else ()), *conditions):
        _keep_read(desk, action, compensation, condition)
    if done is not None and done.met:
        compensated(desk, action, compensation, "already_done", f"read: {done.detail}", entries.VALIDATOR)
        return False
    if (done is not None and done.met is None) or any(condition.met is None for condition in conditions):
        looked = (*((done,) if done else ()), *conditions)
        _look_later(desk, action, compensation, looked, free=seen.heard.slowed)
        return False
    failed = [condition for condition in conditions if not condition.met]
    if failed:
        detail = "; ".join(f"not so: {condition.text} ({condition.detail})" for condition in failed)
        _fail(desk, compensation, "stop", ErrorClass.CONFLICT, detail)
        return False
    return True


def _keep_read(desk: Desk, action: Action, compensation: Compensation, seen: ConditionSeen) -> None:
    verdict = {True: Verdict.FOUND, False: Verdict.DENIED, None: Verdict.NO_ANSWER}[seen.met]
    evidence.store(
        Proof(
            run_id=desk.run.pk,
            action_id=action.pk,
            compensation_id=compensation.pk,
            source="read",
            verdict=verdict,
            key=compensation.key,
            detail=mask_text(f"{seen.text}: {seen.detail}"),
            body=mask(seen.body, desk.contract(action).secret_fields),
        )
    )


def _look_later(
    desk: Desk, action: Action, compensation: Compensation, seen: tuple[ConditionSeen, ...], *, free: bool
) -> None:
    detail = "; ".join(condition.detail for condition in seen if condition.met is None)
    rule = planner.rule(desk.contract(compensation).retry, ErrorClass.NO_ANSWER)
    tries = compensation.refusals + (0 if free else 1)
    if tries >= max(rule.max_attempts, 5):
        _fail(desk, compensation, "stop", ErrorClass.NO_ANSWER, f"the look before the call failed: {detail}")
        return
    later = desk.now + planner.backoff(rule, tries)
    desk.set(compensation, refusals=tries, due_at=later, error_detail=short(detail))


def answered(desk: Desk, action: Action, compensation: Compensation, seen: Answered) -> None:
    """Record the answer to a compensating call; done only once it is read back where the contract says so."""
    outcome, verified = seen.outcome, seen.verified
    if verified is not None:
        _keep_read(desk, action, compensation, verified)
    match outcome.kind:
        case OutcomeKind.CONFIRMED if verified is None or verified.met:
            by = _word_of_answer(compensation, outcome) if verified is None else f"read: {verified.detail}"
            compensated(
                desk,
                action,
                compensation,
                "confirm",
                by,
                entries.COMPENSATOR,
                result=outcome.result,
                reference=outcome.reference,
            )
        case OutcomeKind.CONFIRMED | OutcomeKind.ACCEPTED | OutcomeKind.UNKNOWN:
            detail = outcome.detail or (f"answered, but not read back: {verified.detail}" if verified else "")
            _lose(desk, action, compensation, outcome.error_class or ErrorClass.NO_ANSWER, detail)
        case OutcomeKind.NOT_SENT | OutcomeKind.THROTTLED | OutcomeKind.TEMPORARY:
            _compensate_again(desk, action, compensation, outcome)
        case OutcomeKind.REJECTED if outcome.credential and not compensation.in_doubt:
            _compensate_again(desk, action, compensation, outcome)
        case OutcomeKind.REJECTED | OutcomeKind.PARTIAL if compensation.in_doubt:
            error = outcome.error_class or ErrorClass.REFUSED
            detail = f"the repeat was refused, the earlier try is still unknown: {outcome.detail}"
            _lose(desk, action, compensation, error, detail)
        case OutcomeKind.REJECTED | OutcomeKind.PARTIAL:
            _fail(desk, compensation, "fail", outcome.error_class or ErrorClass.REFUSED, outcome.detail)


def _word_of_answer(compensation: Compensation, outcome: Outcome) -> str:
    """What settled it, for whoever audits: our call, or that there was nothing left to call for."""
    if outcome.status is None or outcome.status < 400:
        return "answer"
    tried = compensation.in_doubt or compensation.attempts_used > 1
    return f"answer {outcome.status}: gone {'after an earlier try of ours' if tried else 'before our call'}"


def compensated(
    desk: Desk,
    action: Action,
    compensation: Compensation,
    verb: str,
    by: str,
    actor: Actor,
    *,
    result: Json = None,
    reference: str = "",
) -> None:
    """The compensation holds. The action is compensated in the same commit, unless its effect is only mitigated."""
    contract = desk.contract(compensation)
    desk.move(
        compensation,
        verb,
        CompensationState.CONFIRMED,
        actor=actor,
        after={"of": action.step, "kind": compensation.kind, "settled_by": by},
        settled_at=desk.now,
        settled_by=by[:200],
        due_at=None,
        in_doubt=False,
        result=mask(result, contract.secret_fields),
        provider_ref=reference,
        error_class="",
        error_detail="",
    )
    if compensation.kind != CompensationKind.MITIGATES:
        desk.move(action, "compensated", ActionState.COMPENSATED, actor=actor)
        batch.derive_of(desk, action)


def _lose(desk: Desk, action: Action, compensation: Compensation, error: ErrorClass, detail: str) -> None:
    contract = desk.contract(compensation)
    sent = compensation.sent_at or desk.now
    forward = desk.contract(action)
    settle_s = forward.status_query.settle_s if forward.status_query else 0.0
    counts_at = sent + timedelta(seconds=DISPATCH_WINDOW_S + contract.limits.total_s + settle_s)
    desk.move(
        compensation,
        "lose",
        CompensationState.UNKNOWN,
        actor=entries.VALIDATOR,
        reason=short(detail),
        after={"error_class": error.value},
        unknown_since=desk.now,
        not_found_counts_at=counts_at,
        due_at=desk.now,
        error_class=error.value,
        error_detail=short(detail),
    )


def lose(desk: Desk, action: Action, compensation: Compensation, detail: str) -> None:
    """The worker that made the compensating call is gone; nobody knows what became of the call."""
    _lose(desk, action, compensation, ErrorClass.NO_ANSWER, detail)


def settle(
    desk: Desk, action: Action, compensation: Compensation, answer: QueryAnswer, *, by: str = "status query"
) -> None:
    """Let evidence settle an unknown compensation; without an answer it is asked again later. `by` as in `settle`."""
    contract = desk.contract(compensation)
    match answer.verdict:
        case Verdict.FOUND:
            compensated(
                desk,
                action,
                compensation,
                "find",
                f"{by}: {answer.detail}",
                entries.VALIDATOR,
                result=answer.result,
                reference=answer.reference,
            )
        case Verdict.ABSENT | Verdict.DENIED if absence_is_proof(desk, compensation, contract):
            due_again(desk, compensation, answer.detail)
        case _:
            ask_again(desk, compensation, contract, answer)
    resolve_by_evidence(desk)


def due_again(desk: Desk, compensation: Compensation, detail: str, *, in_doubt: bool = False) -> None:
    """The same key is due again while tries are left, else it has failed.

    `in_doubt`: the earlier try was not proved absent; the key is honoured, so that a repeat is harmless.
    """
    contract = desk.contract(compensation)
    error = ErrorClass(compensation.error_class) if compensation.error_class else ErrorClass.NO_ANSWER
    rule = planner.rule_of_unknown(contract.retry, error)
    spent = compensation.attempts_used >= rule.max_attempts
    desk.move(
        compensation,
        "absent",
        CompensationState.DUE,
        actor=entries.VALIDATOR,
        reason=short(detail),
        unknown_since=None,
        in_doubt=in_doubt,
        due_at=desk.now + planner.backoff(rule, compensation.attempts_used),
    )
    if spent:
        _fail(
            desk, compensation, "stop", error, f"{compensation.attempts_used} tries without effect: {detail}"
        )


def _compensate_again(desk: Desk, action: Action, compensation: Compensation, outcome: Outcome) -> None:
    contract = desk.contract(compensation)
    error = outcome.error_class or ErrorClass.TEMPORARY
    rule = planner.rule(contract.retry, error)
    waits = outcome.kind is OutcomeKind.THROTTLED or outcome.credential
    free = waits or outcome.kind is OutcomeKind.NOT_SENT
    used = compensation.attempts_used - 1 if free else compensation.attempts_used
    refusals = compensation.refusals + 1 if free else compensation.refusals
    tries = refusals if free else used
    if not waits and tries >= rule.max_attempts:
        if compensation.in_doubt:
            _lose(desk, action, compensation, error, outcome.detail)
        else:
            _fail(desk, compensation, "fail", error, outcome.detail)
        return
    later = desk.now + max(planner.backoff(rule, tries), timedelta(seconds=outcome.retry_after_s or 0.0))
    desk.move(
        compensation,
        "again",
        CompensationState.DUE,
        actor=entries.PLANNER,
        reason=short(outcome.detail),
        after={"error_class": error.value, "not_before": later.isoformat()},
        attempts_used=used,
        refusals=refusals,
        due_at=later,
        error_class=error.value,
        error_detail=short(outcome.detail),
    )


def _fail(desk: Desk, compensation: Compensation, verb: str, error: ErrorClass, detail: str) -> None:
    """A failed compensation holds the earlier ones; the planner hands the run to a person (S0-70)."""
    desk.move(
        compensation,
        verb,
        CompensationState.FAILED,
        actor=entries.COMPENSATOR,
        reason=short(detail),
        after={"error_class": error.value},
        due_at=None,
        error_class=error.value,
        error_detail=short(detail),
    )
