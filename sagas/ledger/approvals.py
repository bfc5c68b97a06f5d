"""Permits on the desk: asked for, decided, lapsed, and used up by the commit that sends (engine.md, section 8)."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from sagas import entries
from sagas.facts import ActionFacts, Actor, CompensationFacts
from sagas.ledger.desk import Desk
from sagas.models import Action, Compensation, Entry, Permit
from sagas.permits import LIFE_MINUTES, digest_of, document
from sagas.states import CompensationState, Machine, PermitState
from tools.contract import ErrorClass, Json, Who

_SHAPES_NOTHING = ("command.refused", "command.query_status", "human.handoff.commented")
"""Entries of people that do not make them requesters."""


def newest(desk: Desk, compensation: Compensation) -> Permit | None:
    """The newest permit of a compensation."""
    return next((row for row in reversed(desk.permits) if row.compensation_id == compensation.pk), None)


def ask(desk: Desk, action: Action) -> None:
    """Ask for a signature over the very call; the request is good for a quarter of an hour."""
    compensation = desk.compensations[action.pk]
    content = document(desk.facts(), *_facts_of(desk, action))
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('sagas_permit', 'id'))")
        (pk,) = cursor.fetchone()
    permit = Permit(
        pk=pk,
        ref=f"SO-{1000 + pk}",
        run=desk.run,
        action=action,
        compensation=compensation,
        digest=digest_of(content),
        document=content,
        requesters=_shapers(desk),
        requested_at=desk.now,
        expires_at=desk.now + timedelta(minutes=LIFE_MINUTES),
    )
    desk.say(
        "approval.requested",
        actor=entries.PLANNER,
        machine=Machine.PERMIT.value,
        object_id=pk,
        object_version=1,
        step=action.step,
        target=PermitState.REQUESTED.value,
        after={"ref": permit.ref, "digest": permit.digest, "expires_at": permit.expires_at.isoformat()},
    )
    permit.save(force_insert=True)
    desk.permits.append(permit)
    desk.move(
        compensation,
        "ask_approval",
        CompensationState.AWAITING_APPROVAL,
        actor=entries.COMPENSATOR,
        due_at=permit.expires_at,
    )


def _facts_of(desk: Desk, action: Action) -> tuple[ActionFacts, CompensationFacts]:
    facts = next(one for one in desk.facts().actions if one.id == action.pk)
    if facts.compensation is None:
        raise ValueError(f"{action} has no compensation")
    return facts, facts.compensation


def _shapers(desk: Desk) -> list[dict[str, Json]]:
    """Everybody who shaped the request: who started the run, claimed, ordered or edited (shared rule R7)."""
    rows = (
        Entry.objects.filter(run_id=desk.run.pk, actor_kind__in=("human", "agent"))
        .exclude(name__in=_SHAPES_NOTHING)
        .values_list("actor_id", "actor_name")
        .distinct()
    )
    shapers = dict(rows)
    if desk.author is not None:
        shapers[desk.author.actor.id] = desk.author.actor.name
    return [{"id": one, "name": name} for one, name in sorted(shapers.items())]


def lapse(desk: Desk, action: Action) -> None:
    """Time is up: the request, or the unused signature, is over. Nothing ran."""
    compensation = desk.compensations[action.pk]
    permit = newest(desk, compensation)
    if permit is not None and permit.state in (PermitState.REQUESTED, PermitState.GRANTED):
        verb = "decide" if permit.state == PermitState.REQUESTED else "lapse"
        desk.move(permit, verb, PermitState.EXPIRED, actor=entries.PLANNER, after={"ref": permit.ref})
    if compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(
            compensation, "approval_settled", CompensationState.DUE, actor=entries.PLANNER, due_at=desk.now
        )


def sign(desk: Desk, permit: Permit, *, actor: Actor) -> None:
    """A person signed: the permit is granted and the compensation due. Who may sign was decided before."""
    desk.move(
        permit,
        "decide",
        PermitState.GRANTED,
        actor=actor,
        after={"ref": permit.ref, "digest": permit.digest},
        decided_by=actor.id,
        decided_by_name=actor.name,
        decided_at=desk.now,
        reason=desk.author.reason if desk.author else "",
        expires_at=desk.now + timedelta(minutes=LIFE_MINUTES),
    )
    compensation = desk.compensations[permit.action_id]
    if compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(compensation, "approval_settled", CompensationState.DUE, actor=actor, due_at=desk.now)


def reject(desk: Desk, permit: Permit, *, actor: Actor) -> None:
    """A person refused: a definite failure of the compensation, which goes to a person (shared rule R7)."""
    reason = desk.author.reason if desk.author else ""
    desk.move(
        permit,
        "decide",
        PermitState.REJECTED,
        actor=actor,
        after={"ref": permit.ref},
        decided_by=actor.id,
        decided_by_name=actor.name,
        decided_at=desk.now,
        reason=reason,
    )
    compensation = desk.compensations[permit.action_id]
    if compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(
            compensation,
            "approval_settled",
            CompensationState.FAILED,
            actor=actor,
            due_at=None,
            error_class=ErrorClass.PERMISSION.value,
            error_detail=f"{actor.name} did not sign: {reason}"[:2000],
        )


def withdraw(desk: Desk, compensation: Compensation, *, actor: Actor) -> None:
    """The request is void: a new one is asked for when the compensation is ordered again."""
    permit = newest(desk, compensation)
    if permit is None or permit.state not in (PermitState.REQUESTED, PermitState.GRANTED):
        return
    verb = "decide" if permit.state == PermitState.REQUESTED else "lapse"
    desk.move(permit, verb, PermitState.WITHDRAWN, actor=actor, after={"ref": permit.ref})


def use(desk: Desk, action: Action) -> bool:
    """Use up the permit in the commit that sends. False: it is missing, stale or for another call; nothing is sent.

    The digest is recomputed from the very rows that are about to be sent.
    """
    compensation = desk.compensations[action.pk]
    if compensation.who != Who.APPROVAL:
        return True
    permit = newest(desk, compensation)
    if permit is None or permit.expires_at <= desk.now:
        return False
    content = document(desk.facts(), *_facts_of(desk, action))
    if digest_of(content) != permit.digest:
        withdraw(desk, compensation, actor=entries.VALIDATOR)
        return False
    if permit.state == PermitState.GRANTED:
        desk.move(permit, "consume", PermitState.CONSUMED, actor=entries.EXECUTOR, after={"ref": permit.ref})
        return True
    # A repeat of the very same call under its key, while the signature is fresh.
    return permit.state == PermitState.CONSUMED and compensation.attempts_used + compensation.refusals > 0
