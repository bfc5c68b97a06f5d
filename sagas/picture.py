"""From rows to facts: one run's frozen picture. Reads no table itself; whoever calls has the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sagas.facts import (
    ActionFacts,
    AttemptFacts,
    CompensationFacts,
    EvidenceFacts,
    FreezeFacts,
    HandoffFacts,
    PermitFacts,
    ProposalFacts,
    RunFacts,
)
from sagas.models import Action, Attempt, Compensation, Evidence, Handoff, Permit, Proposal, Run
from sagas.published import contract_by_id, definition_by_id
from sagas.states import (
    ActionState,
    CompensationState,
    Direction,
    HandoffState,
    PermitState,
    ProposalState,
    RunState,
)
from tools.redact import mask


def run_facts(
    run: Run,
    actions: Iterable[Action],
    compensations: Iterable[Compensation],
    handoffs: Sequence[Handoff],
    freezes: tuple[FreezeFacts, ...],
    now: datetime,
    permits: Iterable[Permit] = (),
    proposals: Iterable[Proposal] = (),
    *,
    whole: bool = True,
) -> RunFacts:
    """The picture of a run. Of several handoffs the open one leads, else the newest."""
    permits = list(permits)
    signed = {row.compensation_id: permit_facts(row) for row in permits}
    allowed = {row.action_id: permit_facts(row) for row in permits if row.compensation_id is None}
    made_up = {row.action_id: compensation_facts(row, signed.get(row.pk)) for row in compensations}
    handed = tuple(handoff_facts(row) for row in handoffs)
    leading = next((h for h in handed if h.state != HandoffState.RESOLVED and not h.linked), None)
    return RunFacts(
        id=run.pk,
        ref=run.ref,
        state=RunState(run.state),
        direction=Direction(run.direction),
        version=run.version,
        fence=run.fence,
        owner=run.owner,
        definition=definition_by_id(run.definition_id),
        definition_digest=definition_by_id(run.definition_id).digest,
        definition_id=run.definition_id,
        input=run.input,
        intent=run.intent,
        business_ref=run.business_ref,
        title=run.title,
        customer=run.customer,
        amount=run.amount,
        currency=run.currency,
        team=run.team,
        started_at=run.started_at,
        started_by=run.started_by_name,
        starter=run.started_by,
        turned_back_by=run.turned_back_by,
        turned_back_at=run.turned_back_at,
        paused_by=run.paused_by,
        paused_at=run.paused_at,
        changed_at=run.changed_at,
        finished_at=run.finished_at,
        effects_left=tuple(run.effects_left),
        actions=_nested(actions, made_up, allowed),
        handoff=leading or (handed[-1] if handed else None),
        handoffs=handed,
        freezes=freezes,
        quarantined=run.quarantined_at is not None,
        now=now,
        proposal=next((proposal_facts(row) for row in proposals if row.state == ProposalState.OPEN), None),
        whole=whole,
    )


def _nested(
    actions: Iterable[Action], made_up: dict[int, CompensationFacts], allowed: dict[int, PermitFacts]
) -> tuple[ActionFacts, ...]:
    """Actions in the order of their rows, items under the action that they are parts of."""
    parts: dict[int, list[ActionFacts]] = {}
    wholes: list[Action] = []
    for row in actions:
        if row.parent_id is None:
            wholes.append(row)
        else:
            part = action_facts(row, made_up.get(row.pk), permit=allowed.get(row.pk))
            parts.setdefault(row.parent_id, []).append(part)
    return tuple(
        action_facts(row, made_up.get(row.pk), tuple(parts.get(row.pk, ())), permit=allowed.get(row.pk))
        for row in wholes
    )


def action_facts(
    row: Action,
    compensation: CompensationFacts | None,
    items: tuple[ActionFacts, ...] = (),
    *,
    permit: PermitFacts | None = None,
) -> ActionFacts:
    """One action. Arguments and results are as stored; what people see is masked at the door."""
    return ActionFacts(
        id=row.pk,
        step=row.step,
        position=row.position,
        item=row.item,
        generation=row.generation,
        tool=row.tool,
        contract=contract_by_id(row.contract_id),
        state=ActionState(row.state),
        version=row.version,
        key=row.key,
        args=row.args,
        result=row.result,
        provider_ref=row.provider_ref,
        attempts_used=row.attempts_used,
        confirm_seq=row.confirm_seq,
        prior_state=row.prior_state,
        prior_version=row.prior_version,
        prior_read_at=row.prior_read_at,
        sent_at=row.sent_at,
        settled_at=row.settled_at,
        settled_by=row.settled_by,
        due_at=row.due_at,
        not_found_counts_at=row.not_found_counts_at,
        unknown_since=row.unknown_since,
        queries=row.queries,
        error_class=row.error_class,
        error_detail=row.error_detail,
        repeat_ordered=row.repeat_ordered,
        why=row.why,
        evidence_note=row.evidence_note,
        compensation=compensation,
        items=items,
        permit=permit,
        refusals=row.refusals,
    )


def compensation_facts(row: Compensation, permit: PermitFacts | None = None) -> CompensationFacts:
    """One registered compensation."""
    return CompensationFacts(
        id=row.pk,
        action_id=row.action_id,
        key=row.key,
        tool=row.tool,
        contract=contract_by_id(row.contract_id),
        kind=row.kind,
        who=row.who,
        ordered_by=row.ordered_by,
        state=CompensationState(row.state),
        version=row.version,
        args=row.args,
        attempts_used=row.attempts_used,
        registered_at=row.registered_at,
        sent_at=row.sent_at,
        settled_at=row.settled_at,
        due_at=row.due_at,
        error_class=row.error_class,
        error_detail=row.error_detail,
        result=row.result,
        provider_ref=row.provider_ref,
        queries=row.queries,
        refusals=row.refusals,
        not_found_counts_at=row.not_found_counts_at,
        permit=permit,
        unknown_since=row.unknown_since,
    )


def permit_facts(row: Permit) -> PermitFacts:
    """One permit."""
    return PermitFacts(
        ref=row.ref,
        state=PermitState(row.state),
        version=row.version,
        digest=row.digest,
        document=row.document,
        requesters=tuple((one["id"], one["name"]) for one in row.requesters),
        requested_at=row.requested_at,
        expires_at=row.expires_at,
        decided_by=row.decided_by,
        decided_by_name=row.decided_by_name,
        decided_at=row.decided_at,
        reason=row.reason,
        reason_code=row.reason_code,
    )


def proposal_facts(row: Proposal) -> ProposalFacts:
    """One verdict that waits for a second person."""
    return ProposalFacts(
        ref=row.ref,
        handoff_id=row.handoff_id,
        verb=row.verb,
        step=row.step,
        reference=str(row.arguments.get("reference", "")),
        end_state=str(row.arguments.get("end_state", "")),
        proposed_by=row.proposed_by,
        proposed_by_name=row.proposed_by_name,
        reason=row.reason,
        reason_code=row.reason_code,
        proposed_at=row.proposed_at,
        expires_at=row.expires_at,
        shapers=tuple((one["id"], one["name"]) for one in row.shapers),
    )


def handoff_facts(row: Handoff) -> HandoffFacts:
    """One handoff."""
    return HandoffFacts(
        id=row.pk,
        ref=row.ref,
        state=HandoffState(row.state),
        reason=row.reason,
        params=row.params,
        opened_at=row.opened_at,
        due_at=row.due_at,
        escalation=row.escalation,
        claimed_by=row.claimed_by,
        claimed_by_name=row.claimed_by_name,
        claimed_at=row.claimed_at,
        claim_until=row.claim_until,
        resolved_at=row.resolved_at,
        resolution=row.resolution,
        linked=row.linked,
        schedule=row.schedule,
        reminded_at=row.reminded_at,
        wanted_by=row.wanted_by if row.is_wanted else "",
        wanted_by_name=row.wanted_by_name if row.is_wanted else "",
        wanted_at=row.wanted_at if row.is_wanted else None,
    )


def without_secrets(facts: RunFacts) -> RunFacts:
    """The same picture as people and agents may see it: secret fields and what looks like a secret are masked."""
    return replace(
        facts,
        input=mask(facts.input),
        actions=tuple(_action_without_secrets(action) for action in facts.actions),
    )


def _action_without_secrets(action: ActionFacts) -> ActionFacts:
    secret, made_up = action.contract.secret_fields, action.compensation
    if made_up is not None:
        made_up = replace(
            made_up,
            args=mask(made_up.args, made_up.contract.secret_fields),
            result=mask(made_up.result, made_up.contract.secret_fields),
        )
    return replace(
        action,
        args=mask(action.args, secret),
        result=mask(action.result, secret),
        prior_state=mask(action.prior_state, secret),
        compensation=made_up,
        items=tuple(_action_without_secrets(item) for item in action.items),
    )


def with_history(facts: RunFacts, attempts: Iterable[Attempt], evidence: Iterable[Evidence]) -> RunFacts:
    """The same picture with attempts and evidence at their actions and compensations."""
    tries: dict[tuple[int, int | None], list[AttemptFacts]] = {}
    for row in attempts:
        tries.setdefault((row.action_id, row.compensation_id), []).append(_attempt(row))
    seen: dict[tuple[int | None, int | None], list[EvidenceFacts]] = {}
    for proof in evidence:
        seen.setdefault((proof.action_id, proof.compensation_id), []).append(_evidence(proof))

    def filled(action: ActionFacts) -> ActionFacts:
        compensation = action.compensation
        if compensation is not None:
            at = (action.id, compensation.id)
            compensation = replace(
                compensation, attempts=tuple(tries.get(at, ())), evidence=tuple(seen.get(at, ()))
            )
        at_action = (action.id, None)
        return replace(
            action,
            compensation=compensation,
            attempts=tuple(tries.get(at_action, ())),
            evidence=tuple(seen.get(at_action, ())),
            items=tuple(filled(item) for item in action.items),
        )

    return replace(facts, actions=tuple(filled(action) for action in facts.actions))


def _attempt(row: Attempt) -> AttemptFacts:
    return AttemptFacts(
        number=row.number,
        sent_at=row.sent_at,
        finished_at=row.finished_at,
        answer=row.answer,
        error_class=row.error_class,
        detail=row.detail,
        status=row.status,
        duration_ms=row.duration_ms,
    )


def _evidence(row: Evidence) -> EvidenceFacts:
    return EvidenceFacts(
        source=row.source,
        verdict=row.verdict,
        reference=row.reference,
        detail=row.detail,
        body=row.body,
        at=row.at,
        by=row.by,
    )
