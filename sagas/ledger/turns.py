"""Whether a call has its turn at the gates of the tools that it would call: looked at before its `sent` mark.

Reads gates without a lock: they bound speed, not what is true. Handing out turns is `sagas.gates`'s work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from sagas import pacing, planner
from sagas.facts import ActionFacts
from sagas.ledger.desk import Desk
from sagas.orders import Queue, Queued, Room
from sagas.reasons import Reason
from sagas.states import Direction
from tools.contract import Condition, Contract, ErrorClass

_SLOT_AGAIN = timedelta(milliseconds=100)


@dataclass(frozen=True, kw_only=True)
class Parked:
    """The action waits for its turn until then; what stands beside it may go on."""

    action_id: int
    until: datetime


@dataclass(frozen=True, kw_only=True)
class _Place:
    """The gate of a tool as it stands, and this action's place at it."""

    closed: bool
    paused: bool
    turn: int | None
    go_at: datetime | None
    used: bool
    since: datetime | None


def at_gate(
    desk: Desk, decision: planner.Decision, queued: Queued | None = None, room: Room | None = None
) -> planner.Decision | Queue | Parked:
    """The decision itself where its calls may go out now; else to ask for a turn, to wait for it, or to hand over.

    `queued`: what the gate has just said, so that it is not asked again at once.
    """
    match decision:
        case planner.Send(action=action) | planner.ReadPrior(action=action):
            pass
        case planner.Query(action=action) | planner.Check(action=action):
            pass
        case _:
            return decision
    called = _called(desk, decision)
    if room is not None and not all(room.take(contract) for contract in called.values()):
        # A run without a slot is given back, not held.
        desk.slow = True
        return Parked(action_id=action.id, until=desk.now + _SLOT_AGAIN)
    contracts = {tool: contract for tool, contract in called.items() if _bounded(desk, contract)}
    if not contracts:
        return decision
    places = _places(action.id, contracts)
    turns = []
    for tool in sorted(contracts):
        contract, place = contracts[tool], places.get(tool)
        if place is not None and place.turn is not None and not place.used and place.go_at is not None:
            if place.go_at > desk.now:
                return Parked(action_id=action.id, until=place.go_at)
            fresh = place.go_at + timedelta(seconds=pacing.USE_WITHIN_S) >= desk.now
            if fresh and not place.closed:
                turns.append(place.turn)
                continue
        if queued is not None and queued.until is not None and _same(queued.order, action, contract):
            return Parked(action_id=action.id, until=queued.until)
        return _wait(desk, decision, action, contract, place)
    _use(turns)
    return decision


def _same(order: Queue, action: ActionFacts, contract: Contract) -> bool:
    return order.action_id == action.id and order.contract.tool == contract.tool


def _called(desk: Desk, decision: planner.Decision) -> dict[str, Contract]:
    """The contracts of the calls that carrying out a decision makes, by tool."""
    match decision:
        case planner.Send(action=action):
            return {action.contract.tool: action.contract}
        case planner.ReadPrior(action=action) if action.contract.prior_state is not None:
            return _read(desk, action.contract.prior_state.tool)
        case planner.Check(action=action, compensation=compensation):
            declared = planner.declared_compensation(action)
            looks = _looked_at(desk, (*declared.preconditions, declared.already_done))
            tried = compensation.contract.dry_run
            looks |= _read(desk, tried.tool) if tried is not None else {}
            return {compensation.contract.tool: compensation.contract, **looks}
        case planner.Query(action=action, compensation=compensation):
            asked = compensation.contract if compensation is not None else action.contract
            if asked.status_query is not None:
                return _read(desk, asked.status_query.tool)
            declared = planner.declared_compensation(action)
            return _looked_at(desk, (declared.already_done or declared.verify,))
    return {}


def _read(desk: Desk, tool: str) -> dict[str, Contract]:
    return {tool: desk.tool(tool)[1]}


def _looked_at(desk: Desk, conditions: Iterable[Condition | None]) -> dict[str, Contract]:
    names = {condition.read for condition in conditions if condition is not None and condition.read}
    return {name: desk.tool(name)[1] for name in names}


def _places(action_id: int, tools: Iterable[str]) -> dict[str, _Place]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT g.tool, coalesce(g.not_before > now_(), false) OR g.paused_at IS NOT NULL, "
            "g.paused_at IS NOT NULL, t.id, t.go_at, t.used_at IS NOT NULL, t.waiting_since "
            "FROM sagas_gate g LEFT JOIN sagas_turn t ON t.tool = g.tool AND t.action_id = %s "
            "WHERE g.tool = ANY(%s)",
            [action_id, list(tools)],
        )
        return {
            row[0]: _Place(
                closed=row[1],
                paused=row[2],
                turn=row[3],
                go_at=row[4],
                used=row[5],
                since=row[6],
            )
            for row in cursor.fetchall()
        }


def _bounded(desk: Desk, contract: Contract) -> bool:
    rate = contract.rate
    return rate.per_second is not None or rate.at_once is not None or contract.tool in desk.gated


def _wait(
    desk: Desk, decision: planner.Decision, action: ActionFacts, contract: Contract, place: _Place | None
) -> planner.Decision | Queue:
    """Ask for a turn, or hand over what has waited too long. A query waits on: its own time limit bounds it."""
    query = isinstance(decision, planner.Query)
    undo = desk.run.direction == Direction.UNDO
    sent_away = _sent_away(action, undo)
    give_up_at = None
    if place is not None and place.since is not None and not query and (not place.used or sent_away):
        give_up_at = place.since + timedelta(seconds=contract.rate.longest_wait_s)
        if give_up_at <= desk.now and not place.paused:
            _forget(place)
            waited = f"{contract.tool} has let this call wait since {place.since:%H:%M:%S}"
            return planner.HandOver(reason=Reason.THROTTLED, action=action, detail=waited)
    return Queue(
        run_id=desk.run.pk,
        action_id=action.id,
        contract=contract,
        flow=f"{desk.run.team}/{desk.definition.name}",
        reserved=query or undo,
        compensation_id=action.compensation.id if undo and action.compensation else None,
        sent_away=sent_away,
        give_up_at=give_up_at,
    )


def _sent_away(action: ActionFacts, undo: bool) -> bool:
    """Whether the last try was refused for speed, so that the wait is one and the same."""
    row = action.compensation if undo and action.compensation is not None else action
    return row.error_class == ErrorClass.THROTTLED


def _use(turns: list[int]) -> None:
    if turns:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE sagas_turn SET used_at = now_() WHERE id = ANY(%s)", [turns])


def _forget(place: _Place) -> None:
    """A person decides now; whatever is called afterwards waits anew."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_turn SET used_at = now_(), waiting_since = NULL WHERE id = %s", [place.turn]
        )
