"""Permits on the desk: asked for, decided, lapsed, and used up by the commit that sends (engine.md, section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection
from django.db.models import Q

from sagas import entries
from sagas.facts import ActionFacts, Actor, CompensationFacts, PermitFacts, RunFacts, SignoffFacts
from sagas.ledger import settle
from sagas.ledger.desk import Author, Desk, opened
from sagas.models import Action, Compensation, Entry, Permit
from sagas.permits import LIFE_MINUTES, digest_of, document
from sagas.picture import permit_facts, without_secrets
from sagas.states import ActionState, CompensationState, Machine, PermitState
from tools.contract import Contract, ErrorClass, Json, Level, Who
from tools.definition import IfNotApproved
from tools.redact import mask

_REQUESTED = "approval.requested"
_ANSWERS = ("approval.settled", "tool.compensation.approval.settled")
_SHAPES_NOTHING = (
    "command.refused",
    "command.query_status",
    "human.handoff.commented",
    "human.handoff.asked_for",
    "approval.lapsed",
    *_ANSWERS,
)
"""Entries of people that do not make them requesters: remarks, questions, and what was said to an earlier request."""
_LEVELS = tuple(Level)
_OPEN = (PermitState.REQUESTED, PermitState.GRANTED)


def newest(desk: Desk, action: Action, compensation: Compensation | None) -> Permit | None:
    """The newest permit of a forward call (None), or of its compensation."""
    made_up = compensation.pk if compensation is not None else None
    return next(
        (
            row
            for row in reversed(desk.permits)
            if row.action_id == action.pk and row.compensation_id == made_up
        ),
        None,
    )


def ask(desk: Desk, action: Action, compensation: Compensation | None) -> None:
    """Ask for a signature over the very call; the request is good for a quarter of an hour."""
    content = document(desk.facts(), *_facts_of(desk, action, compensation))
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
        requesters=shapers(desk),
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
    if compensation is not None:
        desk.move(
            compensation,
            "ask_approval",
            CompensationState.AWAITING_APPROVAL,
            actor=entries.COMPENSATOR,
            due_at=permit.expires_at,
        )


def _facts_of(
    desk: Desk, action: Action, compensation: Compensation | None
) -> tuple[ActionFacts, CompensationFacts | None]:
    facts = _action_in(desk.facts().actions, action.pk)
    return facts, facts.compensation if compensation is not None else None


def shapers(desk: Desk) -> list[dict[str, Json]]:
    """Everybody who shaped a request: who started the run, claimed, ordered or edited (shared rule R7).

    Saying yes or no to an earlier request shapes nothing, and neither does what followed from it in the same commit.
    """
    entries_of_run = Entry.objects.filter(run_id=desk.run.pk)
    answers = entries_of_run.filter(name__in=_ANSWERS).exclude(command_id="").values("command_id")
    rows = (
        entries_of_run.filter(actor_kind__in=("human", "agent"))
        .exclude(name__in=_SHAPES_NOTHING)
        .exclude(command_id__in=answers)
        .values_list("actor_id", "actor_name")
        .distinct()
    )
    shapers = dict(rows)
    if desk.author is not None:
        shapers[desk.author.actor.id] = desk.author.actor.name
    return [{"id": one, "name": name} for one, name in sorted(shapers.items())]


def lapse(desk: Desk, action: Action, compensation: Compensation | None) -> None:
    """Time is up: the request, or the unused signature, is over. Nothing ran."""
    permit = newest(desk, action, compensation)
    if permit is not None and permit.state in _OPEN:
        verb = "decide" if permit.state == PermitState.REQUESTED else "lapse"
        desk.move(permit, verb, PermitState.EXPIRED, actor=entries.PLANNER, after={"ref": permit.ref})
    if compensation is not None and compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(
            compensation, "approval_settled", CompensationState.DUE, actor=entries.PLANNER, due_at=desk.now
        )


def sign(desk: Desk, permit: Permit, *, actor: Actor) -> None:
    """A person signed: the permit is granted and the call due. Who may sign was decided before."""
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
    desk.set(permit, **_reason_of(desk))
    compensation = _compensation_of(desk, permit)
    if compensation is not None and compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(compensation, "approval_settled", CompensationState.DUE, actor=actor, due_at=desk.now)


def reject(desk: Desk, permit: Permit, *, actor: Actor) -> None:
    """A person refused: a definite failure of the call, unless its step goes on without it (shared rule R7)."""
    given = _reason_of(desk)
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
    desk.set(permit, **given)
    detail = f"{actor.name} did not sign: {given['reason']}"[:2000]
    compensation = _compensation_of(desk, permit)
    if compensation is None:
        _not_approved(desk, desk.action(permit.action_id), detail, actor)
    elif compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(
            compensation,
            "approval_settled",
            CompensationState.FAILED,
            actor=actor,
            due_at=None,
            error_class=ErrorClass.PERMISSION.value,
            error_detail=detail,
        )


def _reason_of(desk: Desk) -> dict[str, str]:
    author = desk.author
    return {"reason": author.reason, "reason_code": author.reason_code} if author else {"reason": ""}


def _not_approved(desk: Desk, action: Action, detail: str, actor: Actor) -> None:
    if action.state != ActionState.PREPARED:
        return  # items of a call over many that is done in part: the planner asks again or a person decides
    step = next(step for step in desk.definition.steps if step.id == action.step)
    if step.if_not_approved is IfNotApproved.SKIP:
        desk.set(action, error_class=ErrorClass.PERMISSION.value, error_detail=detail)
        settle.leave_out(desk, action, reason=detail, actor=actor)
    else:
        settle.reject(desk, action, "refuse", ErrorClass.PERMISSION, detail, actor)


def _compensation_of(desk: Desk, permit: Permit) -> Compensation | None:
    return None if permit.compensation_id is None else desk.compensations[permit.action_id]


def withdraw(desk: Desk, action: Action, compensation: Compensation | None, *, actor: Actor) -> None:
    """The request is void: a new one is asked for when the call is ordered again."""
    permit = newest(desk, action, compensation)
    if permit is None or permit.state not in _OPEN:
        return
    verb = "decide" if permit.state == PermitState.REQUESTED else "lapse"
    desk.move(permit, verb, PermitState.WITHDRAWN, actor=actor, after={"ref": permit.ref})


def use(desk: Desk, action: Action, compensation: Compensation | None) -> bool:
    """Use up the permit in the commit that sends. False: it is missing, stale or for another call; nothing is sent.

    The digest is recomputed from the very rows that are about to be sent.
    """
    wanted = (
        desk.contract(action).require_confirmation
        if compensation is None
        else compensation.who == Who.APPROVAL
    )
    if not wanted:
        return True
    permit = newest(desk, action, compensation)
    if permit is None or permit.expires_at <= desk.now:
        return False
    content = document(desk.facts(), *_facts_of(desk, action, compensation))
    if digest_of(content) != permit.digest:
        withdraw(desk, action, compensation, actor=entries.VALIDATOR)
        return False
    if permit.state == PermitState.GRANTED:
        desk.move(permit, "consume", PermitState.CONSUMED, actor=entries.EXECUTOR, after={"ref": permit.ref})
        return True
    # A repeat of the very same call under its key, while the signature is fresh.
    row: Action | Compensation = action if compensation is None else compensation
    return permit.state == PermitState.CONSUMED and row.attempts_used + row.refusals > 0


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


def void_for_tool(tool: str, *, actor: Actor, reason: str) -> tuple[str, ...]:
    """Withdraw every request and unused signature over a call of this tool, whose rules have changed.

    Inside the transaction that makes the change; returns the runs. They ask anew, for what is then in force.
    """
    waiting = Permit.objects.filter(state__in=_OPEN).filter(
        Q(compensation__tool=tool) | Q(compensation=None, action__tool=tool)
    )
    runs: list[str] = []
    for run_id in sorted(set(waiting.values_list("run_id", flat=True))):
        with opened(run_id, author=Author(actor=actor, reason=reason)) as desk:
            for row in desk.permits:
                action, compensation = desk.action(row.action_id), _compensation_of(desk, row)
                if row.state in _OPEN and (compensation or action).tool == tool:
                    withdraw(desk, action, compensation, actor=actor)
                    ask_anew(desk, compensation, actor=entries.PLANNER)
                    runs.append(desk.run.ref)
            if not desk.run.owner and desk.handoff is None:
                desk.due_at = desk.run.due_at = desk.now
            desk.close(release=False)
    return tuple(dict.fromkeys(runs))


def ask_anew(desk: Desk, compensation: Compensation | None, *, actor: Actor) -> None:
    """A compensation that waited for the request that is void now is due again; a forward call only waited."""
    if compensation is not None and compensation.state == CompensationState.AWAITING_APPROVAL:
        desk.move(compensation, "approval_settled", CompensationState.DUE, actor=actor, due_at=desk.now)


# --- What a request says to people --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who asked for a signature and why, `code` the reason's own; nobody where the run itself did."""

    by: str = ""
    name: str = ""
    why: str = ""
    code: str = ""


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
        said = [one for one in (*own, request) if one.reason]
        who = Asked(by=own[-1].actor_id, name=own[-1].actor_name)
        return replace(who, why=said[-1].reason, code=said[-1].reason_code) if said else who
    turned = [one for one in before if one.name == "run.turned_back"]
    return Asked(why=turned[-1].reason, code=turned[-1].reason_code) if turned else Asked()


def level_of(action: Contract, compensation: Contract | None) -> Level:
    """How much is at stake by the contracts: the higher of what is done and of what makes up for it, if that is asked."""
    levels = (action.level,) if compensation is None else (action.level, compensation.level)
    return max(levels, key=_LEVELS.index)


def signoff_facts(facts: RunFacts, row: Permit, by: Asked) -> SignoffFacts:
    """A request with what it speaks of. `facts` are unmasked, so that the digest can be told; the answer is masked."""
    action = _action_in(facts.actions, row.action_id)
    made_up = action.compensation if row.compensation_id is not None else None
    called = action.contract if made_up is None else made_up.contract
    newest_one = action.permit if made_up is None else made_up.permit
    shown = without_secrets(facts)
    return SignoffFacts(
        run=shown,
        action=_action_in(shown.actions, row.action_id),
        permit=_masked(permit_facts(row), called.secret_fields),
        unchanged=digest_of(document(facts, action, made_up)) == row.digest,
        level=level_of(action.contract, made_up.contract if made_up else None),
        asked_by=by.by,
        asked_by_name=by.name,
        why=by.why,
        why_code=by.code,
        newest=newest_one.ref if newest_one else row.ref,
        forward=made_up is None,
    )


def _action_in(actions: Iterable[ActionFacts], action_id: int) -> ActionFacts:
    return next(one for whole in actions for one in (whole, *whole.items) if one.id == action_id)


def _masked(permit: PermitFacts, secret_fields: Iterable[str]) -> PermitFacts:
    content = permit.document if isinstance(permit.document, dict) else {}
    return replace(permit, document={**content, "args": mask(content.get("args"), secret_fields)})
