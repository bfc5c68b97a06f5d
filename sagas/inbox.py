"""The inbox of answers that nobody is waiting on the line for: callbacks, early, doubled, late or unmatched.

Stores evidence under the run's lock and makes the run due; only the ledger lets it settle anything (engine.md, 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from sagas import entries, faultpoints
from sagas.ledger import evidence
from sagas.ledger.desk import opened
from sagas.ledger.evidence import Proof
from sagas.models import Action, Compensation, Evidence
from sagas.tx import durable
from tools.contract import Json
from tools.outcome import Verdict
from tools.redact import mask, mask_text


@dataclass(frozen=True, kw_only=True)
class Callback:
    """What a system says of a call, by our key or its own reference. `at` and `version` are the sender's."""

    system: str
    verdict: Verdict
    key: str = ""
    reference: str = ""
    result: Json = None
    detail: str = ""
    at: datetime | None = None
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class Received:
    """What became of a callback: the run it belongs to ("" = kept unmatched), and whether it was known already."""

    run_ref: str
    repeated: bool


def receive(callback: Callback) -> Received:
    """Keep a callback as evidence. The same one again changes nothing; one that fits nothing yet is kept."""
    faultpoints.reach("callback.verified", tool=callback.system)
    action, compensation = _owner(callback)
    if _known(callback, action):
        return Received(run_ref=action.run.ref if action else "", repeated=True)
    if action is None:
        action, compensation = _kept_or_known_by_now(callback)
    if action is None:
        return Received(run_ref="", repeated=False)
    with durable(), opened(action.run_id) as desk:
        faultpoints.mark("callback", run=desk.run.ref, tool=action.tool)
        evidence.store(_proof(callback, desk.action(action.pk), compensation))
        desk.run.evidence_waiting = True
        if not desk.run.owner:
            desk.run.due_at, desk.run.held = desk.now, False
        desk.say(
            "tool.callback.received",
            actor=entries.TOOL,
            step=action.step,
            after={"verdict": callback.verdict.value, "reference": callback.reference},
        )
        desk.close(release=False)
    return Received(run_ref=action.run.ref, repeated=False)


def _kept_or_known_by_now(callback: Callback) -> tuple[Action | None, Compensation | None]:
    """Keep what fits no call; unless the commit that makes its reference known has come in between."""
    with durable():
        faultpoints.mark("callback")
        if callback.reference:
            evidence.alone_with(callback.system, callback.reference)
        action, compensation = _owner(callback)
        if action is None:
            evidence.store(_proof(callback, None, None))
    return action, compensation


def _owner(callback: Callback) -> tuple[Action | None, Compensation | None]:
    """The call that a callback is about: by our key first, which was on record before the call left."""
    if callback.key:
        action = Action.objects.select_related("run").filter(key=callback.key).first()
        if action is not None:
            return action, None
        made_up = Compensation.objects.select_related("action__run").filter(key=callback.key).first()
        if made_up is not None:
            return made_up.action, made_up
    if callback.reference:
        found = list(Action.objects.select_related("run").filter(provider_ref=callback.reference)[:2])
        if len(found) == 1:
            return found[0], None
    return None, None


def _known(callback: Callback, action: Action | None) -> bool:
    same = Evidence.objects.filter(
        source="callback",
        verdict=callback.verdict.value,
        sender_at=callback.at,
        sender_version=callback.version,
    )
    if action is not None:
        return same.filter(action_id=action.pk).exists()
    return same.filter(run_id=None).filter(Q(key=callback.key), Q(reference=callback.reference)).exists()


def _proof(callback: Callback, action: Action | None, compensation: Compensation | None) -> Proof:
    return Proof(
        run_id=action.run_id if action else None,
        action_id=action.pk if action else None,
        compensation_id=compensation.pk if compensation else None,
        source="callback",
        verdict=callback.verdict,
        key=callback.key,
        reference=callback.reference,
        detail=mask_text(callback.detail)[:2000],
        body=mask(callback.result),
        by=callback.system,
        sender_at=callback.at,
        sender_version=callback.version,
    )
