"""What the interface says: facts, offers, previews and results as JSON documents. Pure translation."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rest_framework.reverse import reverse

from sagas import api
from sagas.facts import ActionFacts, PlannedCall, RunFacts, RunRow, SignoffFacts, SignoffRow
from sagas.states import ActionState
from workbench.commands import Change, Offer, Preview, Result, SignoffOffer
from workbench.policies import signoff_risk


def run(facts: RunFacts) -> dict[str, Any]:
    """The fact object of S3-13, with what a reader needs to go on from it. Never a stack trace."""
    current = [action for action in facts.actions if action.state is not ActionState.SUPERSEDED]
    return {
        "run": facts.ref,
        "workflow_state": api.word_for_agent(facts),
        "actions": [action_of(action) for action in current],
        "next_allowed": list(api.next_allowed(facts)),
        "version": facts.version,
        "definition": {
            "name": facts.definition.name,
            "version": facts.definition.version,
            "digest": facts.definition_digest,
        },
        "business_ref": facts.business_ref,
        "intent": facts.intent,
        "started_at": when(facts.started_at),
        "changed_at": when(facts.changed_at),
        "finished_at": when(facts.finished_at),
        "handoff": handoff(facts),
        "links": {"self": reverse("api:run", args=[facts.ref])},
    }


def run_row(row: RunRow) -> dict[str, Any]:
    """A run in a list: enough to find the one that is meant."""
    return {
        "run": row.ref,
        "state": row.state,
        "version": row.version,
        "definition": {"name": row.workflow, "version": row.workflow_version},
        "business_ref": row.business_ref,
        "started_at": when(row.started_at),
        "changed_at": when(row.changed_at),
        "finished_at": when(row.finished_at),
        "handoff": row.handoff_ref or None,
        "links": {"self": reverse("api:run", args=[row.ref])},
    }


def action_of(action: ActionFacts) -> dict[str, Any]:
    """One action as agents see it; the compensation's state where there is one."""
    return {
        "name": action.step,
        "tool": action.tool,
        "state": str(action.state),
        "provider_ref": action.provider_ref or None,
        "attempt": action.attempts_used,
        "error": action.error_class or None,
        "compensation": str(action.compensation.state) if action.compensation else None,
        "approval": _approval(action),
    }


def _approval(action: ActionFacts) -> dict[str, Any] | None:
    """What became of the signature that the call waits or waited for; a refusal with its reason (S1-18)."""
    if action.permit is None:
        return None
    return {
        "signoff": action.permit.ref,
        "state": str(action.permit.state),
        "expires_at": when(action.permit.expires_at),
        "reason": action.permit.reason or None,
        "reason_code": action.permit.reason_code or None,
    }


def handoff(facts: RunFacts) -> dict[str, Any] | None:
    """The handoff's handle: its reference, and why it waits for a person."""
    if facts.handoff is None:
        return None
    return {
        "ref": facts.handoff.ref,
        "state": str(facts.handoff.state),
        "reason": facts.handoff.reason,
        "due_at": when(facts.handoff.due_at),
        "claimed_by": facts.handoff.claimed_by_name or None,
        "asked_for_by": facts.handoff.wanted_by_name or None,
    }


def proposal(facts: RunFacts) -> dict[str, Any] | None:
    """What one person stated and a second one is asked to confirm."""
    waits = facts.proposal
    if waits is None:
        return None
    return {
        "ref": waits.ref,
        "verb": waits.verb,
        "step": waits.step or None,
        "reference": waits.reference or None,
        "end_state": waits.end_state or None,
        "proposed_by": waits.proposed_by_name,
        "reason": waits.reason,
        "reason_code": waits.reason_code or None,
        "proposed_at": when(waits.proposed_at),
        "expires_at": when(waits.expires_at),
        "may_not_confirm": [name for __, name in waits.shapers],
    }


def offer(given: Offer) -> dict[str, Any]:
    """One offer of the panel with what it asks for."""
    return {
        "verb": given.verb,
        "step": given.step or None,
        "label": str(given.label),
        "reach": given.reach,
        "writes": given.writes,
        "needs_preview": given.needs_preview,
        "needs_reason": given.needs_reason,
        "allowed": given.allowed,
        "code": given.code or None,
        "reason": str(given.sentence) or None,
        "arguments": [
            {
                "name": field.name,
                "kind": str(field.kind),
                "required": field.required,
                "choices": list(field.choices),
            }
            for field in given.fields
        ],
    }


def preview(given: Preview) -> dict[str, Any]:
    """A preview as a page shows it."""
    return {
        "preview": given.id,
        "verb": given.verb,
        "step": given.step or None,
        "version": given.version,
        "calls": [
            {
                "number": call.number,
                "step": call.step,
                "tool": call.tool,
                "system": call.system,
                "direction": call.direction,
                "line": call.line,
                "body": call.body,
                "key": call.key,
                "changes_state": call.changes_state,
            }
            for call in given.calls
        ],
        "dry_runs": [
            {
                "step": one.step,
                "tool": one.tool,
                "offered": one.offered,
                "accepted": one.accepted,
                "detail": one.detail or None,
                "read_at": when(one.read_at) if one.offered else None,
            }
            for one in given.dry_runs
        ],
        "checks": [{"code": check.code, "ok": check.ok, "text": str(check.text)} for check in given.checks],
        "outcomes": [{"when": answer, "then": leads_to} for answer, leads_to in given.outcomes],
        "irreversible": list(given.irreversible),
        "end_states": [
            {
                "id": state.id,
                "title": state.title,
                "met": state.met,
                "conditions": [
                    {"text": c.text, "met": c.met, "evidence": c.evidence, "read_at": when(c.read_at)}
                    for c in state.conditions
                ],
            }
            for state in given.end_states
        ],
        "needs_signoff": given.needs_signoff,
        "stays": list(given.stays),
        "never_sent": list(given.never_sent),
        "needs_second": given.needs_second,
        "args_before": given.args_before,
        "args_after": given.args_after,
        "expires_at": when(given.expires_at),
    }


def signoff_row(row: SignoffRow) -> dict[str, Any]:
    """A request for a signature in a list."""
    return {
        "signoff": row.ref,
        "state": str(row.state),
        "run": row.run_ref,
        "step": row.step,
        "tool": row.tool,
        "system": row.system,
        "business_ref": row.business_ref,
        "risk": str(signoff_risk(row.level, row.amount)),
        "asked_by": row.asked_by_name or None,
        "why": row.why,
        "why_code": row.why_code or None,
        "requested_at": when(row.requested_at),
        "expires_at": when(row.expires_at),
        "decided_by": row.decided_by_name or None,
        "decided_at": when(row.decided_at),
        "links": {"self": reverse("api:signoff", args=[row.ref])},
    }


def signoff(given: SignoffFacts, call: PlannedCall, offers: Iterable[SignoffOffer]) -> dict[str, Any]:
    """A request with the document that is signed, its digest, the call it comes to, and what the caller may do."""
    permit = given.permit
    return {
        "signoff": permit.ref,
        "state": str(permit.state),
        "digest": permit.digest,
        "document": permit.document,
        "unchanged": given.unchanged,
        "newest": given.newest,
        "risk": str(signoff_risk(given.level, given.run.amount)),
        "asked_by": given.asked_by_name or None,
        "why": given.why,
        "why_code": given.why_code or None,
        "requesters": [name for __, name in permit.requesters],
        "call": {
            "tool": call.tool,
            "system": call.system,
            "line": call.line,
            "body": call.body,
            "key": call.key,
        },
        "requested_at": when(permit.requested_at),
        "expires_at": when(permit.expires_at),
        "decided_by": permit.decided_by_name or None,
        "decided_at": when(permit.decided_at),
        "reason": permit.reason or None,
        "reason_code": permit.reason_code or None,
        "offers": [
            {
                "verb": offer.verb,
                "allowed": offer.allowed,
                "code": offer.code or None,
                "reason": str(offer.sentence) or None,
            }
            for offer in offers
        ],
        "run": run(given.run),
        "links": {"self": reverse("api:signoff", args=[permit.ref])},
    }


def result(given: Result) -> dict[str, Any]:
    """How a command ended; the parts that a problem document and a success share."""
    return {
        "result": str(given.status),
        "verb": given.verb,
        "command_id": given.command_id,
        "scheduled": given.scheduled,
        "replayed": given.replayed,
        "at": when(given.at),
        "saw_version": given.saw_version,
        "changed": [_change(change) for change in given.changed],
        "run": run(given.facts) if given.facts else None,
    }


def when(moment: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "what": change.what,
        "saw": change.saw,
        "now": change.now,
        "by": change.by or None,
        "at": when(change.at),
    }
