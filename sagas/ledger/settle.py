"""What an answer does to an action or its compensation: the only place where outcomes become states.

Recording is guarded by claim and fence alone, never by the run's state: a success that arrives during a stop is
recorded (engine.md, section 2).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sagas import entries, planner
from sagas.facts import Actor
from sagas.ledger import batch, compensate, evidence
from sagas.ledger.asking import (
    DISPATCH_WINDOW_S,
    absence_is_proof,
    ask_again,
    decide_tie,
    resolve_by_evidence,
    short,
)
from sagas.ledger.desk import Desk
from sagas.ledger.evidence import Proof
from sagas.models import Action, Attempt
from sagas.orders import Answered, PriorRead, Queried
from sagas.reasons import Reason
from sagas.rows import change
from sagas.states import ActionState, CompensationState, Direction
from tools.bindings import Unbindable, bind
from tools.canonical import fingerprint
from tools.contract import Contract, ErrorClass, Json
from tools.outcome import Outcome, OutcomeKind, QueryAnswer, Verdict
from tools.redact import mask, mask_text

# --- Calls --------------------------------------------------------------------------------------------------


def answered(desk: Desk, seen: Answered) -> None:
    """Record the outcome of a call on its attempt, and on the action, its items or its compensation."""
    action = desk.action(seen.call.action_id)
    _end_attempt(desk, seen)
    evidence.say_cut(desk, action, seen.outcome)
    if seen.call.compensation_id is None:
        items = [row for row in desk.items(action) if row.state == ActionState.SENT]
        if items:
            _each(desk, action, items, seen.outcome)
        elif action.state == ActionState.SENT:
            _forward(desk, action, seen.outcome)
        return
    compensation = desk.compensations[action.pk]
    if compensation.state == CompensationState.SENT:
        compensate.answered(desk, action, compensation, seen)


def _each(desk: Desk, whole: Action, items: list[Action], outcome: Outcome) -> None:
    """Give every item of a call over many its own outcome; the whole follows from them (S0-56)."""
    own = batch.outcomes(desk.contract(whole), items, outcome)
    for item in items:
        _forward(desk, item, own[item.item])
    batch.derive(desk, whole)


def _end_attempt(desk: Desk, seen: Answered) -> None:
    outcome = seen.outcome
    ended = {
        "finished_at": desk.now,
        "answer": outcome.kind.value,
        "error_class": (outcome.error_class or ""),
        "detail": short(outcome.detail),
        "status": outcome.status,
        "duration_ms": outcome.duration_ms,
    }
    change(Attempt, ended, "id = %s AND finished_at IS NULL", [seen.call.attempt_id])


def _forward(desk: Desk, action: Action, outcome: Outcome) -> None:
    contract = desk.contract(action)
    match outcome.kind:
        case OutcomeKind.CONFIRMED:
            confirm(
                desk, action, verb="confirm", reference=outcome.reference, result=outcome.result, by="answer"
            )
        case OutcomeKind.ACCEPTED:
            wait = contract.accepted_answer_s or contract.limits.total_s
            until = desk.now + timedelta(seconds=wait)
            desk.move(
                action,
                "await_answer",
                ActionState.SENT,
                actor=entries.TOOL,
                provider_ref=outcome.reference,
                answer_due_at=until,
                due_at=until,
            )
            evidence.adopt_early(desk, action, contract.system)
        case OutcomeKind.PARTIAL:
            desk.move(
                action,
                "partial",
                ActionState.PARTIAL,
                actor=entries.TOOL,
                result=mask(outcome.result, contract.secret_fields),
                provider_ref=outcome.reference,
                error_class=ErrorClass.PARTIAL.value,
                error_detail=short(outcome.detail),
            )
        case OutcomeKind.REJECTED | OutcomeKind.NOT_SENT | OutcomeKind.THROTTLED | OutcomeKind.TEMPORARY if (
            action.in_doubt
        ):
            # The repeat did nothing, which says nothing of the earlier try: that one stays unknown.
            detail = f"the repeat did nothing, the earlier try is still unknown: {outcome.detail}"
            lose(desk, action, outcome.error_class or ErrorClass.NO_ANSWER, detail, entries.VALIDATOR)
        case OutcomeKind.REJECTED if outcome.credential:
            _again(desk, action, contract, outcome)
        case OutcomeKind.REJECTED:
            reject(
                desk,
                action,
                "reject",
                outcome.error_class or ErrorClass.REFUSED,
                outcome.detail,
                entries.TOOL,
            )
        case OutcomeKind.UNKNOWN:
            lose(desk, action, outcome.error_class or ErrorClass.NO_ANSWER, outcome.detail, entries.VALIDATOR)
        case OutcomeKind.NOT_SENT | OutcomeKind.THROTTLED | OutcomeKind.TEMPORARY:
            _again(desk, action, contract, outcome)


def _again(desk: Desk, action: Action, contract: Contract, outcome: Outcome) -> None:
    """Back to `prepared`, later. What never left, what was throttled and what was refused to whoever calls used up no
    attempt (law 5).
    """
    error = outcome.error_class or ErrorClass.TEMPORARY
    rule = planner.rule(contract.retry, error)
    waits = outcome.kind is OutcomeKind.THROTTLED or outcome.credential
    free = waits or outcome.kind is OutcomeKind.NOT_SENT
    used = action.attempts_used - 1 if free else action.attempts_used
    refusals = action.refusals + 1 if free else action.refusals
    tries = refusals if free else used
    later = desk.now + max(planner.backoff(rule, tries), timedelta(seconds=outcome.retry_after_s or 0.0))
    desk.move(
        action,
        "again",
        ActionState.PREPARED,
        actor=entries.PLANNER,
        reason=short(outcome.detail),
        after={"error_class": error.value, "not_before": later.isoformat()},
        attempts_used=used,
        refusals=refusals,
        due_at=later,
        error_class=error.value,
        error_detail=short(outcome.detail),
    )
    if desk.run.direction == Direction.UNDO:
        # The run was stopped while the call was under way; it did nothing, and nothing goes out any more.
        leave_out(desk, action, actor=entries.PLANNER)
    elif not waits and tries >= rule.max_attempts:
        reject(desk, action, "refuse", error, outcome.detail, entries.PLANNER)


def confirm(
    desk: Desk,
    action: Action,
    *,
    verb: str,
    reference: str,
    result: Json,
    by: str,
    actor: Actor = entries.TOOL,
) -> None:
    """The call took effect: number the confirmation and bind the compensation in this very commit."""
    contract = desk.contract(action)
    desk.run.confirmations += 1
    desk.move(
        action,
        verb,
        ActionState.CONFIRMED,
        actor=actor,
        after={"provider_ref": reference, "settled_by": by},
        result=mask(result, contract.secret_fields),
        result_sha256=fingerprint(result) if result is not None else "",
        provider_ref=reference or action.provider_ref,
        confirm_seq=desk.run.confirmations,
        settled_at=desk.now,
        settled_by=by,
        due_at=None,
        unknown_since=None,
        in_doubt=False,
        error_class="",
        error_detail="",
    )
    _bind_compensation(desk, action, contract, result)


def _bind_compensation(desk: Desk, action: Action, contract: Contract, result: Json) -> None:
    compensation = desk.compensations.get(action.pk)
    if compensation is None or contract.compensation is None:
        return
    if compensation.state == CompensationState.VOIDED:
        desk.move(
            compensation, "register_again", CompensationState.REGISTERED, actor=entries.COMPENSATOR, args=None
        )
    scope = {**desk.scope(action), "result": result, "key": compensation.key}
    try:
        desk.set(compensation, args=bind(dict(contract.compensation.args), scope))
    except Unbindable as error:
        # Confirmed all the same; a person must say how it could be made up for (engine.md, section 3).
        desk.set(compensation, error_class="unbindable", error_detail=str(error))
        desk.hand_over(
            Reason.COMPENSATION_UNBINDABLE, action=action, detail=str(error), actor=entries.PLANNER
        )


def reject(desk: Desk, action: Action, verb: str, error: ErrorClass, detail: str, actor: Actor) -> None:
    """It definitely did not take effect: the compensation on record has nothing to make up for."""
    desk.move(
        action,
        verb,
        ActionState.REJECTED,
        actor=actor,
        reason=short(detail),
        after={"error_class": error.value},
        settled_at=desk.now,
        due_at=None,
        unknown_since=None,
        in_doubt=False,
        error_class=error.value,
        error_detail=short(detail),
    )
    compensation = desk.compensations.get(action.pk)
    if compensation is not None and compensation.state == CompensationState.REGISTERED:
        desk.move(compensation, "void", CompensationState.VOIDED, actor=entries.COMPENSATOR)


def leave_out(desk: Desk, action: Action, *, reason: str = "", actor: Actor) -> None:
    """A call that never went out does not go out any more; nothing has to be made up for, nothing to be signed."""
    desk.move(action, "skip", ActionState.SKIPPED, actor=actor, reason=short(reason), due_at=None)
    compensation = desk.compensations.get(action.pk)
    if compensation is not None and compensation.state == CompensationState.REGISTERED:
        desk.move(compensation, "void", CompensationState.VOIDED, actor=entries.COMPENSATOR)
    desk.withdraw_permits(action, actor=actor)


def lose(desk: Desk, action: Action, error: ErrorClass, detail: str, actor: Actor) -> None:
    """Nobody knows what became of the call. "Not found" counts only after every limit has passed."""
    contract = desk.contract(action)
    query = contract.status_query
    sent = action.sent_at or desk.now
    desk.move(
        action,
        "lose",
        ActionState.UNKNOWN,
        actor=actor,
        reason=short(detail),
        after={"error_class": error.value},
        unknown_since=desk.now,
        not_found_counts_at=_absence_counts(contract, sent),
        due_at=desk.now
        + (
            timedelta(seconds=query.first_delay_s)
            if query
            else planner.backoff(planner.rule_of_unknown(contract.retry, error), action.attempts_used)
        ),
        error_class=error.value,
        error_detail=short(detail),
    )


def _absence_counts(contract: Contract, sent_at: datetime) -> datetime:
    settle = contract.status_query.settle_s if contract.status_query else 0.0
    return sent_at + timedelta(seconds=DISPATCH_WINDOW_S + contract.limits.total_s + settle)


# --- Reads before a call --------------------------------------------------------------------------------------


def prior_read(desk: Desk, seen: PriorRead) -> None:
    """Keep the prior state, or put the step off; what cannot be read at all is refused with the read's reason."""
    action = desk.action(seen.ask.action_id)
    if action.state not in (ActionState.NOT_STARTED, ActionState.PREPARED):
        return
    outcome = seen.outcome
    if outcome.kind is OutcomeKind.CONFIRMED:
        contract = desk.contract(action)
        desk.set(
            action,
            prior_state=mask(outcome.result, contract.secret_fields),
            prior_version=seen.version,
            prior_read_at=desk.now,
            due_at=None,
            refusals=0,
        )
        desk.say(
            "tool.prior_state.read",
            actor=entries.EXECUTOR,
            step=action.step,
            before=mask(outcome.result, contract.secret_fields),
            after={"version": seen.version},
        )
        return
    rule = planner.rule(seen.ask.contract.retry, outcome.error_class or ErrorClass.NO_ANSWER)
    error = outcome.error_class or ErrorClass.NO_ANSWER
    if not seen.heard.slowed and (
        outcome.kind is OutcomeKind.REJECTED or action.refusals + 1 >= max(rule.max_attempts, 5)
    ):
        detail = f"the state before the call could not be read: {outcome.detail}"
        reject(desk, action, "refuse", error, detail, entries.PLANNER)
        return
    later = desk.now + max(
        planner.backoff(rule, action.refusals + 1), timedelta(seconds=outcome.retry_after_s or 0.0)
    )
    refusals = action.refusals if seen.heard.slowed else action.refusals + 1
    desk.set(action, refusals=refusals, due_at=later, error_detail=short(outcome.detail))


# --- Status queries ---------------------------------------------------------------------------------------------


_SETTLED_OTHERWISE = frozenset(
    {ActionState.REJECTED, ActionState.SKIPPED, ActionState.ACCEPTED, ActionState.SUPERSEDED}
)


def queried(desk: Desk, seen: Queried) -> None:
    """Store a query's answer as evidence and let it settle what it can."""
    action = desk.action(seen.ask.action_id)
    compensation = desk.compensations.get(action.pk) if seen.ask.compensation_id else None
    proof = evidence.of_query(
        seen.answer,
        run_id=desk.run.pk,
        action_id=action.pk,
        compensation_id=seen.ask.compensation_id,
        key=seen.ask.key,
    )
    masked = mask(proof.body, desk.contract(action).secret_fields)
    # Somebody settled it otherwise while the query was out: then the answer is a late fact, and weighed as one.
    late = (
        compensation is None and action.state in _SETTLED_OTHERWISE and seen.answer.verdict is Verdict.FOUND
    )
    source = "late" if late else proof.source
    evidence.store(
        Proof(**{**_fields(proof), "source": source, "body": masked, "detail": mask_text(proof.detail)})
    )
    desk.run.evidence_waiting = desk.run.evidence_waiting or late
    if compensation is not None:
        if compensation.state == CompensationState.UNKNOWN:
            compensate.settle(desk, action, compensation, seen.answer)
    elif action.state == ActionState.UNKNOWN:
        settle(desk, action, seen.answer)
    elif action.state == ActionState.CONFIRMED and action.due_at is not None:
        decide_tie(desk, action, desk.contract(action), seen.answer)
    batch.derive_of(desk, action)


def _fields(proof: Proof) -> dict[str, Json]:
    return {name: getattr(proof, name) for name in proof.__dataclass_fields__}


def settle(desk: Desk, action: Action, answer: QueryAnswer, *, by: str = "status query") -> None:
    """Let evidence settle an unknown action (S3-8); `by` names what it came from, for the trail."""
    contract = desk.contract(action)
    match answer.verdict:
        case Verdict.FOUND:
            confirm(
                desk,
                action,
                verb="find",
                reference=answer.reference,
                result=answer.result,
                by=by,
                actor=entries.VALIDATOR,
            )
        case Verdict.DENIED:
            detail = f"the {by} says that it was refused: {answer.detail}"
            reject(desk, action, "deny", ErrorClass.REFUSED, detail, entries.VALIDATOR)
        case Verdict.ABSENT if absence_is_proof(desk, action, contract):
            _absent(desk, action, contract)
        case _:
            ask_again(desk, action, contract, answer)
    resolve_by_evidence(desk)


def _absent(desk: Desk, action: Action, contract: Contract) -> None:
    """Proved absent: the same key goes out again while tries are left; with a person, the person decides."""
    error = ErrorClass(action.error_class) if action.error_class else ErrorClass.NO_ANSWER
    rule = planner.rule_of_unknown(contract.retry, error)
    handed_off = desk.handoff is not None and bool(desk.handoff.claimed_by)
    undo = desk.run.direction == Direction.UNDO
    if undo or handed_off or action.attempts_used >= rule.max_attempts:
        detail = "the status query found nothing, after every limit had passed"
        reject(desk, action, "deny", error, detail, entries.VALIDATOR)
        return
    desk.move(
        action,
        "absent",
        ActionState.PREPARED,
        actor=entries.VALIDATOR,
        reason="the status query found nothing, after every limit had passed",
        after={"verdict": Verdict.ABSENT.value, "same_key": True},
        unknown_since=None,
        in_doubt=False,
        due_at=desk.now + planner.backoff(rule, action.attempts_used),
    )
