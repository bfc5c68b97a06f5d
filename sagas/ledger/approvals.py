"""Permits on the desk: asked for, decided, lapsed, and used up by the commit that sends (engine.md, section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection
from django.db.models import Q

from sagas import entries
from sagas.facts import ActionFacts, Actor, CompensationFacts, PermitFacts, RunFacts, SignoffFacts
from sagas.ledger.desk import Author, Desk, opened
from sagas.models import Action, Compensation, Entry, Permit
from sagas.permits import LIFE_MINUTES, digest_of, document
from sagas.picture import permit_facts, without_secrets
from sagas.states import CompensationState, Machine, PermitState
from tools.contract import Contract, ErrorClass, Json, Level, Who
from tools.redact import mask

_REQUESTED = "approval.requested"
_SHAPES_NOTHING = (
    "command.refused",
    "command.query_status",
    "human.handoff.commented",
    "approval.settled",
    "approval.lapsed",
    "tool.compensation.approval.settled",
)
"""Entries of people that do not make them requesters: remarks, questions, and what was said to an earlier request."""
_LEVELS = tuple(Level)


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
        _REQUESTED,
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
        expires_at=desk.now + timedelta(minutes=LIFE_MINUTES),
    )
    desk.set(permit, reason=desk.author.reason if desk.author else "")
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
    )
    desk.set(permit, reason=reason)
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


def void_of(signatory: str, *, actor: Actor, reason: str) -> tuple[str, ...]:
    """Withdraw every unused signature of a person who may not sign any more; returns the runs they were given for.

    Inside the transaction that takes the right away. The runs ask for another signature by themselves.
    """
    given = Permit.objects.filter(state=PermitState.GRANTED, decided_by=signatory)
    runs: list[str] = []
    for run_id in sorted(set(given.values_list("run_id", flat=True))):
        with opened(run_id, author=Author(actor=actor, reason=reason)) as desk:
            for row in desk.permits:
                if row.state == PermitState.GRANTED and row.decided_by == signatory:
                    desk.move(row, "lapse", PermitState.WITHDRAWN, actor=actor, after={"ref": row.ref})
                    runs.append(desk.run.ref)
            if not desk.run.owner:
                desk.due_at = desk.run.due_at = desk.now
            desk.close(release=False)
    return tuple(dict.fromkeys(runs))


# --- What a request says to people --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who asked for a signature and why; nobody where the run itself did."""

    by: str = ""
    name: str = ""
    why: str = ""


def asked(rows: Sequence[Permit]) -> Mapping[int, Asked]:
    """Who asked for each of these, from the trail; one query for all of them."""
    told = Entry.objects.filter(run_id__in={row.run_id for row in rows}).filter(
        Q(actor_kind="human") | Q(name__in=(_REQUESTED, "run.turned_back"))
    )
    by_run: dict[int, list[Entry]] = {}
    for entry in told.order_by("run_id", "seq"):
        by_run.setdefault(entry.run_id or 0, []).append(entry)
    return {row.pk: _asked(row, by_run.get(row.run_id, [])) for row in rows}


def _asked(row: Permit, told: Sequence[Entry]) -> Asked:
    request = next((one for one in told if one.name == _REQUESTED and one.object_id == row.pk), None)
    if request is None:
        return Asked()
    before = [one for one in told if (one.seq or 0) < (request.seq or 0)]
    people = [one for one in told if one.actor_kind == "human" and one.name not in _SHAPES_NOTHING]
    ordered_by = row.compensation.ordered_by if row.compensation else ""
    own = [one for one in people if request.command_id and one.command_id == request.command_id] or [
        one for one in people if one.actor_id == ordered_by and one in before
    ]
    if own:
        reasons = [one.reason for one in (*own, request) if one.reason]
        return Asked(by=own[-1].actor_id, name=own[-1].actor_name, why=reasons[-1] if reasons else "")
    turned = [one.reason for one in before if one.name == "run.turned_back"]
    return Asked(why=turned[-1] if turned else "")


def level_of(action: Contract, compensation: Contract) -> Level:
    """How much is at stake by the contracts: the higher of what was done and of what makes up for it."""
    return max((action.level, compensation.level), key=_LEVELS.index)


def signoff_facts(facts: RunFacts, row: Permit, by: Asked) -> SignoffFacts:
    """A request with what it speaks of. `facts` are unmasked, so that the digest can be told; the answer is masked."""
    action = _action_in(facts.actions, row.action_id)
    made_up = action.compensation
    if made_up is None:
        raise ValueError(f"{row} speaks of no compensation")
    shown = without_secrets(facts)
    return SignoffFacts(
        run=shown,
        action=_action_in(shown.actions, row.action_id),
        permit=_masked(permit_facts(row), made_up.contract.secret_fields),
        unchanged=digest_of(document(facts, action, made_up)) == row.digest,
        level=level_of(action.contract, made_up.contract),
        asked_by=by.by,
        asked_by_name=by.name,
        why=by.why,
        newest=made_up.permit.ref if made_up.permit else row.ref,
    )


def _action_in(actions: Iterable[ActionFacts], action_id: int) -> ActionFacts:
    return next(one for whole in actions for one in (whole, *whole.items) if one.id == action_id)


def _masked(permit: PermitFacts, secret_fields: Iterable[str]) -> PermitFacts:
    content = permit.document if isinstance(permit.document, dict) else {}
    return replace(permit, document={**content, "args": mask(content.get("args"), secret_fields)})
