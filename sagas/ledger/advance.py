"""One step of a claimed run: record what was seen, decide, and order the next thing to do outside.

One transaction: lock freeze and run, check the claim, record, then move by the planner's decisions until one of
them happens outside (a call, a read; several for a group) or is a wait. A call is ordered only with its `sent` mark
in this commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from sagas import entries, faultpoints, planner
from sagas.errors import CannotStep, ClaimLost
from sagas.facts import Actor
from sagas.lanes import EVERY, Lane
from sagas.ledger import approvals, batch, compensate, late, missing, settle, turns
from sagas.ledger.desk import Desk, load, opened
from sagas.models import Action, Attempt, Compensation, Run
from sagas.orders import (
    Answered,
    Ask,
    Call,
    Checked,
    Claim,
    Done,
    Order,
    PriorRead,
    Purpose,
    Queried,
    Queue,
    Queued,
    Room,
    Seen,
    Together,
    Waiting,
)
from sagas.reasons import Reason
from sagas.rows import add, store
from sagas.states import ActionState, CompensationState, Direction, Machine
from sagas.tx import durable, lock_freeze_shared
from tools.bindings import Unbindable, bind
from tools.contract import Condition, Contract, ErrorClass, Json
from tools.json_schema import schema_fault
from tools.keys import compensation_key
from tools.world import boot_time

_MOST_MOVES = 10_000
_READ_AGAIN_S = 1.0


def claim_next(
    owner: str,
    *,
    not_due_before: timedelta = timedelta(0),
    lanes: Sequence[Lane] = EVERY,
    room: Room | None = None,
) -> tuple[Claim, Order] | None:
    """Claim the run that has been due longest in the first lane with any, and take its first step, in one commit.

    None: nothing is due. `not_due_before`: leave alone what has been due for less than this; the sweep drains only
    what nobody took. `room`: the slots of whoever works on it.
    Raises `CannotStep` for a run whose step broke for a reason of its own; nothing of it was written.
    """
    taken: list[Run] = []
    try:
        return _claim_next(owner, not_due_before, lanes, room, taken)
    except (OperationalError, InterfaceError):
        raise  # the database's trouble, not the run's
    except Exception as error:
        if not taken:
            raise
        raise CannotStep(taken[0].ref, taken[0].pk) from error


def _claim_next(
    owner: str, not_due_before: timedelta, lanes: Sequence[Lane], room: Room | None, taken: list[Run]
) -> tuple[Claim, Order] | None:
    with durable():
        lock_freeze_shared()
        row = _lock_due(not_due_before, lanes)
        if row is None:
            return None
        taken.append(row)
        desk = load(row, whole=False)
        if not _still_free(owner):
            return None
        claimed, lane = desk.run, Lane(row.lane)
        claimed.owner, claimed.fence, claimed.due_at, claimed.held = owner, claimed.fence + 1, None, False
        claimed.deliveries += 1
        claim = Claim(run_id=claimed.pk, run_ref=claimed.ref, owner=owner, fence=claimed.fence, lane=lane)
        faultpoints.mark("claim", run=claimed.ref)
        return claim, _step(desk, claim, room=room)


def _lock_due(not_due_before: timedelta, lanes: Sequence[Lane]) -> Run | None:
    """The due run that has waited longest in the first lane that has one nobody holds, under its lock."""
    for_s = not_due_before.total_seconds()
    with connection.cursor() as cursor:
        cursor.execute(_LANES_DUE, [[int(lane) for lane in lanes], for_s])
        due = set(cursor.fetchone()[0])
    for lane in lanes:
        if lane in due and (found := list(Run.objects.raw(_FIRST_DUE, [int(lane), for_s]))):
            return found[0]
    return None


# The time is read once, so that it can be the bound of an index: `now_()` by itself is asked anew for every row.
_LANES_DUE = """
SELECT ARRAY(SELECT lane FROM unnest(%s::int[]) lanes(lane) WHERE EXISTS (
  SELECT 1 FROM sagas_run r WHERE r.due_at IS NOT NULL AND r.lane = lanes.lane
  AND r.due_at <= (SELECT now_()) - make_interval(secs => %s)))
"""
# `= ANY(ARRAY(...))`: with `IN (...)` an analysed table makes the sub-select claim far more than one row.
_FIRST_DUE = """
SELECT * FROM sagas_run WHERE id = ANY(ARRAY(
  SELECT id FROM sagas_run WHERE due_at IS NOT NULL AND lane = %s
  AND due_at <= (SELECT now_()) - make_interval(secs => %s)
  ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)) FOR NO KEY UPDATE
"""


def claim_run(run_id: int, owner: str) -> tuple[Claim, Order] | None:
    """Claim one named run if it is due and free; for tests and the one-run driver."""
    with durable(), opened(run_id, whole=False) as desk:
        run = desk.run
        if run.owner or run.due_at is None or run.due_at > desk.now or not _still_free(owner):
            return None
        run.owner, run.fence, run.due_at, run.held = owner, run.fence + 1, None, False
        run.deliveries += 1
        claim = Claim(run_id=run.pk, run_ref=run.ref, owner=owner, fence=run.fence)
        faultpoints.mark("claim", run=run.ref)
        return claim, _step(desk, claim)


def _still_free(owner: str) -> bool:
    """Whether this incarnation may still claim: its lease is running by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM sagas_worker WHERE id = %s AND ended_at IS NULL AND lease_until > now_()", [owner]
        )
        return cursor.fetchone() is not None


def advance(
    claim: Claim,
    seen: Seen | None,
    *,
    last: bool = False,
    out: frozenset[int] = frozenset(),
    room: Room | None = None,
) -> Order:
    """Record what was seen and go on. Raises `ClaimLost` after keeping the result as evidence.

    `out`: the actions that something else of this run is still out for. `seen` None: nothing came, time has passed.
    `last`: order nothing more and give the run back, due at once, once nothing is out any more.
    """
    with durable(), opened(claim.run_id, whole=False) as desk:
        if _held(desk, claim):
            return _record_and_step(desk, claim, seen, last, out, room)
        if seen is not None and late.keep(desk, seen):
            desk.due_at, desk.held = desk.run.due_at, desk.run.held
            if not desk.run.owner:
                desk.run.due_at = desk.now
            desk.close(release=False)
    raise ClaimLost


def _held(desk: Desk, claim: Claim) -> bool:
    return desk.run.owner == claim.owner and desk.run.fence == claim.fence


def _record_and_step(
    desk: Desk, claim: Claim, seen: Seen | None, last: bool, out: frozenset[int], room: Room | None
) -> Order:
    ordered: Call | None = None
    match seen:
        case None:
            pass
        case Answered():
            settle.answered(desk, seen)
        case PriorRead():
            settle.prior_read(desk, seen)
        case Queried():
            settle.queried(desk, seen)
        case Checked() if last or desk.run.paused_at is not None:
            pass  # whoever goes on looks again before the call
        case Checked():
            if compensate.checked(desk, seen):
                ordered = _send_compensation(desk, claim, desk.action(seen.ask.action_id))
        case Queued():
            pass  # what the gate said is looked at where the call would go out
        case _:
            assert_never(seen)
    if seen is not None and not isinstance(seen, Queued) and seen.heard.paused:
        desk.hand_over(
            Reason.TOOL_PAUSED,
            action=desk.action(_about(seen)),
            detail=seen.heard.paused,
            actor=entries.EXECUTOR,
        )
    if ordered is not None:
        desk.close(release=False)
        return _stamped(ordered)
    if last:
        desk.due_at = desk.now
        desk.close(release=not out)
        return Waiting() if out else Done(due_at=desk.now)
    return _step(desk, claim, out, seen if isinstance(seen, Queued) else None, room)


def _about(seen: Answered | PriorRead | Queried | Checked) -> int:
    return seen.call.action_id if isinstance(seen, Answered) else seen.ask.action_id


def _step(
    desk: Desk,
    claim: Claim,
    out: frozenset[int] = frozenset(),
    queued: Queued | None = None,
    room: Room | None = None,
) -> Order:
    """Move by the planner's decisions until what they come to happens outside or is a wait.

    `queued`: what a gate has just said.
    """
    faultpoints.reach("step.begun", run=desk.run.ref)
    late.apply_waiting_evidence(desk)
    orders: list[Call | Ask | Queue] = []
    parked: dict[int, datetime] = {}
    for _ in range(_MOST_MOVES):
        batch.derive_all(desk)
        busy = out | {order.action_id for order in orders}
        found = turns.at_gate(desk, planner.decide(desk.facts(), busy, frozenset(parked)), queued, room)
        if isinstance(found, turns.Parked):
            parked[found.action_id] = found.until
            continue
        order = found if isinstance(found, Queue) else _carry_out(desk, claim, found)
        if isinstance(order, Done):
            order = replace(order, due_at=_sooner(order.due_at, parked.values()))
            return _ordered(desk, orders) if orders else _at_rest(desk, order, out)
        if order is not None:
            orders.append(order)
            if not _beside_others(desk, order):
                return _ordered(desk, orders)
    raise AssertionError(f"{desk.run.ref}: the planner does not come to rest")


def _sooner(due_at: datetime | None, others: Iterable[datetime]) -> datetime | None:
    return min([*others, *([due_at] if due_at is not None else [])], default=None)


def _ordered(desk: Desk, orders: list[Call | Ask | Queue]) -> Order:
    desk.due_at = None
    desk.close(release=False)
    stamped = tuple(_stamped(order) for order in orders)
    return stamped[0] if len(stamped) == 1 else Together(orders=stamped)


def _at_rest(desk: Desk, done: Done, out: frozenset[int]) -> Order:
    """Nothing to order: the run is given back, unless something of it is still out."""
    desk.due_at = done.due_at
    desk.close(release=not out)
    if not out:
        return done
    return Waiting(for_s=max((done.due_at - desk.now).total_seconds(), 0.0) if done.due_at else None)


def _beside_others(desk: Desk, order: Call | Ask | Queue) -> bool:
    """Whether something else of the run may go out at the same time: for a step of a group, never on the way back."""
    step = desk.action(order.action_id).step
    return order.compensation_id is None and bool(desk.definition.step(step).group)


def _stamped(order: Call | Ask | Queue) -> Call | Ask | Queue:
    """The moment before COMMIT is issued: the dispatch window runs from here (engine.md, section 3)."""
    return replace(order, committing_since=boot_time()) if isinstance(order, Call) else order


def _carry_out(desk: Desk, claim: Claim, decision: planner.Decision) -> Call | Ask | Done | None:
    """Make the decision's moves. An order ends the step; None goes on deciding."""
    if missing.handed_over(desk, decision):
        return None
    match decision:
        case planner.Prepare(action=facts):
            _prepare(desk, desk.action(facts.id))
        case planner.Send(action=facts, again=again):
            return _send(desk, claim, desk.action(facts.id), "repeat" if again else "send")
        case planner.ReadPrior(action=facts):
            return _ask_prior(desk, desk.action(facts.id))
        case planner.Query(action=facts, compensation=made_up):
            return _ask_status(desk, desk.action(facts.id), compensating=made_up is not None)
        case planner.Refuse(action=facts, error_class=error, detail=detail):
            settle.reject(desk, desk.action(facts.id), "refuse", error, detail, entries.PLANNER)
        case planner.TurnBack(action=facts):
            turn_back(desk, f"{facts.step} was rejected: {facts.error_detail}", entries.PLANNER)
        case planner.Turn(action=facts):
            compensation = desk.compensations[facts.id]
            desk.move(compensation, "turn", CompensationState.DUE, actor=entries.COMPENSATOR, due_at=None)
        case planner.Resend(action=facts):
            compensate.due_again(
                desk, desk.compensations[facts.id], "repeated under its honoured key", in_doubt=True
            )
        case planner.Lose(action=facts):
            detail = "the answer that was promised did not come in time"
            settle.lose(desk, desk.action(facts.id), ErrorClass.NO_ANSWER, detail, entries.VALIDATOR)
        case planner.AskApproval(action=facts, compensation=made_up):
            approvals.ask(desk, desk.action(facts.id), desk.compensations[facts.id] if made_up else None)
        case planner.LapseApproval(action=facts, compensation=made_up):
            approvals.lapse(desk, desk.action(facts.id), desk.compensations[facts.id] if made_up else None)
        case planner.Check(action=facts):
            return _look(desk, claim, desk.action(facts.id))
        case planner.HandOver(reason=reason, action=about, detail=detail):
            action = desk.action(about.id) if about else None
            desk.hand_over(reason, action=action, detail=detail, actor=entries.PLANNER)
        case planner.Finish(state=state):
            desk.finish(state)
            return Done(due_at=None)
        case planner.ReadOn():
            desk.read_on()
        case planner.Wait(until=until, held=held, by=by):
            desk.held, desk.held_by = held, by
            return Done(due_at=until)
        case _:
            assert_never(decision)
    return None


def _attempt(desk: Desk, claim: Claim, number: int, **about: Json) -> int:
    made = {"run_id": desk.run.pk, "number": number, "owner": claim.owner, "fence": claim.fence}
    return add(Attempt, {**made, "sent_at": desk.now, **about})


# --- Forward ----------------------------------------------------------------------------------------------------


def _prepare(desk: Desk, action: Action) -> None:
    """Bind the arguments and register the compensation: on record before anything leaves (S4-8)."""
    contract = desk.contract(action)
    step = desk.definition.step(action.step)
    if step.each is not None and action.parent_id is None:
        try:
            batch.unroll(desk, action, contract, step)
        except (batch.NotABatch, Unbindable) as error:
            settle.reject(desk, action, "refuse", ErrorClass.VALIDATION, str(error), entries.VALIDATOR)
        return
    if action.args is None:
        try:
            args = bind(dict(step.args), desk.scope(action, step.args))
        except Unbindable as error:
            settle.reject(desk, action, "refuse", ErrorClass.VALIDATION, str(error), entries.PLANNER)
            return
    else:
        args = action.args
    fault = schema_fault(contract.args_schema, args)
    if fault:
        detail = f"the arguments do not fit the contract: {fault}"
        settle.reject(desk, action, "refuse", ErrorClass.VALIDATION, detail, entries.VALIDATOR)
        return
    if contract.items is not None and not desk.items(action):
        try:
            args = batch.spread(desk, action, contract, args)
        except batch.NotABatch as error:
            settle.reject(desk, action, "refuse", ErrorClass.VALIDATION, str(error), entries.VALIDATOR)
            return
    desk.move(
        action,
        "prepare",
        ActionState.PREPARED,
        actor=entries.PLANNER,
        after={"key": action.key, "prior_version": action.prior_version},
        args=args,
        due_at=None,
    )
    for unit in desk.items(action) or [action]:
        if contract.compensation is not None and unit.pk not in desk.compensations:
            _register(desk, unit, contract)


def _register(desk: Desk, action: Action, contract: Contract) -> None:
    declared = contract.compensation
    assert declared is not None  # noqa: S101  the caller looked
    pk, tool = desk.tool(declared.tool)
    compensation = store(
        Compensation(
            run=desk.run,
            action=action,
            contract_id=pk,
            tool=tool.tool,
            kind=declared.kind.value,
            who=declared.who.value,
            key=compensation_key(action.key),
            registered_at=desk.now,
        )
    )
    desk.compensations[action.pk] = compensation
    desk.say(
        "tool.compensation.registered",
        actor=entries.COMPENSATOR,
        machine=Machine.COMPENSATION.value,
        object_id=compensation.pk,
        object_version=1,
        step=action.step,
        target=CompensationState.REGISTERED.value,
        after={"key": compensation.key, "tool": compensation.tool, "kind": compensation.kind},
    )


def _send(desk: Desk, claim: Claim, action: Action, verb: str) -> Call | None:
    """Mark as sent. None: the signature that the contract wants is missing, stale or for another call."""
    contract = desk.contract(action)
    if not approvals.use(desk, action, None):
        return None
    used = action.attempts_used + 1
    number = action.calls + 1
    args, key, items = batch.outgoing(desk, action, contract)
    again = action.state == ActionState.PARTIAL
    desk.move(
        action,
        "retry_items" if again else verb,
        ActionState.PARTIAL if again else ActionState.SENT,
        actor=entries.EXECUTOR,
        after={"attempt": number, "key": key, **({"items": len(items)} if items else {})},
        attempts_used=used,
        calls=number,
        sent_at=desk.now,
        due_at=None,
        answer_due_at=None,
        unknown_since=None,
        repeat_ordered=False,
        in_doubt=action.in_doubt or verb == "repeat",
    )
    batch.mark_sent(desk, items)
    attempt_id = _attempt(desk, claim, number, action_id=action.pk, items=[item.item for item in items])
    headers = {"Amends-Fence": str(claim.fence)}
    if contract.callback is not None and contract.callback.header and settings.CALLBACK_URL:
        headers[contract.callback.header] = f"{settings.CALLBACK_URL.rstrip('/')}/{contract.tool}"
    if contract.prior_state is not None and contract.prior_state.if_match and action.prior_version:
        headers["If-Match"] = action.prior_version
    return Call(
        action_id=action.pk,
        compensation_id=None,
        attempt_id=attempt_id,
        contract=contract,
        args=args,
        key=key,
        headers=headers,
        verify=None,
        scope=desk.scope(action),
    )


def _ask_prior(desk: Desk, action: Action) -> Call | Ask | None:
    contract = desk.contract(action)
    prior = contract.prior_state
    assert prior is not None  # noqa: S101  the planner looked
    step = desk.definition.step(action.step)
    try:
        args = (
            action.args if action.args is not None else bind(dict(step.args), desk.scope(action, step.args))
        )
        read = bind(dict(prior.args), {**desk.scope(action), "args": args})
    except Unbindable as error:
        settle.reject(desk, action, "refuse", ErrorClass.VALIDATION, str(error), entries.PLANNER)
        return None
    return Ask(
        purpose=Purpose.PRIOR,
        action_id=action.pk,
        compensation_id=None,
        contract=desk.tool(prior.tool)[1],
        args=read,
        key=action.key,
        scope=desk.scope(action),
        asked_of=contract,
    )


# --- Unknown ------------------------------------------------------------------------------------------------------


def _ask_status(desk: Desk, action: Action, *, compensating: bool) -> Call | Ask | None:
    row: Action | Compensation = desk.compensations[action.pk] if compensating else action
    contract = desk.contract(row)
    scope: dict[str, Json] = {**desk.scope(action), "args": row.args, "key": row.key}
    query = contract.status_query
    if query is None:
        return _ask_by_looking(desk, action, desk.compensations[action.pk], scope)
    try:
        args = bind(dict(query.args), scope)
    except Unbindable as error:
        # Asking is not possible; the wait goes on until a person is asked.
        desk.set(
            row, queries=row.queries + 1, due_at=desk.now + timedelta(seconds=60), error_detail=str(error)
        )
        return None
    return Ask(
        purpose=Purpose.QUERY,
        action_id=action.pk,
        compensation_id=row.pk if compensating else None,
        contract=desk.tool(query.tool)[1],
        args=args,
        key=row.key,
        scope=scope,
        asked_of=contract,
    )


def _ask_by_looking(desk: Desk, action: Action, compensation: Compensation, scope: dict[str, Json]) -> Ask:
    """A compensation without a query of its own is judged by looking at the effect (S0-39)."""
    declared = desk.contract(action).compensation
    assert declared is not None  # noqa: S101  the planner looked
    condition = declared.already_done or declared.verify
    return Ask(
        purpose=Purpose.QUERY,
        action_id=action.pk,
        compensation_id=compensation.pk,
        contract=desk.contract(compensation),
        args=compensation.args,
        key=compensation.key,
        scope={**scope, "args": action.args},
        already_done=condition,
        reads=_contracts_read(desk, (condition,) if condition else ()),
    )


# --- Back ---------------------------------------------------------------------------------------------------------


def turn_back(desk: Desk, reason: str, actor: Actor) -> None:
    """Start compensating: one winner, nothing new goes out, calls in flight are waited for (shared rule R4)."""
    if desk.run.direction == Direction.UNDO:
        return
    desk.run.direction = Direction.UNDO.value
    desk.run.turned_back_by, desk.run.turned_back_at = actor.name, desk.now
    faultpoints.mark("turn_back", run=desk.run.ref)
    desk.read_all()
    desk.say("run.turned_back", actor=actor, reason=reason)
    for row in desk.actions:
        if row.state in (ActionState.NOT_STARTED, ActionState.PREPARED):
            settle.leave_out(desk, row, actor=actor)


def _look(desk: Desk, claim: Claim, action: Action) -> Call | Ask | None:
    """Reads before a compensation; without any to make, the call goes out in this commit."""
    declared = desk.contract(action).compensation
    assert declared is not None  # noqa: S101  the planner looked
    compensation = desk.compensations[action.pk]
    looked_at = (*declared.preconditions, *((declared.already_done,) if declared.already_done else ()))
    tried = desk.contract(compensation).dry_run
    if not looked_at and tried is None:
        return _send_compensation(desk, claim, action)
    return Ask(
        purpose=Purpose.CHECK,
        action_id=action.pk,
        compensation_id=compensation.pk,
        contract=desk.contract(compensation),
        args=compensation.args,
        key=compensation.key,
        scope=desk.scope(action),
        conditions=declared.preconditions,
        already_done=declared.already_done,
        reads=_contracts_read(desk, looked_at) | ({tried.tool: desk.tool(tried.tool)[1]} if tried else {}),
    )


def _contracts_read(desk: Desk, conditions: Iterable[Condition]) -> dict[str, Contract]:
    names = {condition.read for condition in conditions if condition.read}
    return {name: desk.tool(name)[1] for name in names}


def _send_compensation(desk: Desk, claim: Claim, action: Action) -> Call | None:
    """Mark as sent under the freeze's lock. None: a freeze or a withdrawal came between the look and the call."""
    compensation = desk.compensations[action.pk]
    if planner.frozen(desk.facts(), compensation.tool, compensating=True):
        return None
    if missing.why_not(desk, desk.contract(compensation)):
        return None
    if not approvals.use(desk, action, compensation):
        return None
    declared = desk.contract(action).compensation
    used = compensation.attempts_used + 1
    number = compensation.calls + 1
    desk.move(
        compensation,
        "send",
        CompensationState.SENT,
        actor=entries.COMPENSATOR,
        after={"of": action.step, "attempt": number, "key": compensation.key},
        attempts_used=used,
        calls=number,
        sent_at=desk.now,
        due_at=None,
    )
    attempt_id = _attempt(desk, claim, number, action_id=action.pk, compensation_id=compensation.pk)
    verify = declared.verify if declared else None
    return Call(
        action_id=action.pk,
        compensation_id=compensation.pk,
        attempt_id=attempt_id,
        contract=desk.contract(compensation),
        args=compensation.args,
        key=compensation.key,
        headers={"Amends-Fence": str(claim.fence)},
        verify=verify,
        scope=desk.scope(action),
        reads=_contracts_read(desk, (verify,) if verify else ()),
    )
