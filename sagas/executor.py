"""The executor: carries out what the ledger orders, outside any transaction, and reports what was seen.

Decides nothing. One run is driven through its consecutive steps until the ledger says that nothing is to be done.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Self

import structlog
from django.conf import settings
from django.db import close_old_connections, connection

from sagas import faultpoints, gates, lanes
from sagas.errors import CannotStep, ClaimLost
from sagas.ledger import advance as ledger
from sagas.ledger import ears, quarantine, workers
from sagas.ledger.asking import DISPATCH_WINDOW_S
from sagas.looking import look_at, try_out, version_in
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
    Room,
    Seen,
    Together,
    Waiting,
)
from sagas.planner import MOST_TOGETHER
from sagas.tx import outside_transaction, retrying
from tools.contract import Contract
from tools.outcome import Observation, OutcomeKind, QueryAnswer, Verdict, classify, classify_query
from tools.world import World

log = structlog.get_logger(__name__)

DRAIN_S = 20.0
"""Seconds that one drain goes on claiming; it ends within its longest tool limit after that."""

_NOTHING_DUE_S = 0.05

LOOK_S = 0.1
"""Seconds between two looks at whether this process has been told to stop: shorter than any call."""

HANG_UP_S = 5.0
"""Seconds that the threads of a drain wait for each other when it ends."""

LINGER_S = 1.0
"""Seconds that a drain stays after the last thing was due: the next query or retry is often near."""

IN_FLIGHT = 8
"""Runs that one drain drives at the same time."""


def perform(order: Call | Ask | Queue, world: World) -> Seen:
    """Do one thing outside: a call, the reads of an `Ask`, or asking a gate. Never inside a transaction (law 3)."""
    outside_transaction()
    if isinstance(order, Queue):
        return retrying(partial(gates.ask, order))
    about, ears = _about(order), _Ears(world)
    seen: Answered | PriorRead | Checked | Queried
    if isinstance(order, Ask):
        faultpoints.reach("read.before", **about)
        seen = _ask(order, ears)
        faultpoints.reach("read.answered", **about)
    else:
        faultpoints.reach("call.before_connect", **about)
        seen = _call(order, ears)
        faultpoints.reach("call.answered", **about)
    return replace(seen, heard=retrying(partial(gates.heard, ears.refusals))) if ears.refusals else seen


class _Ears(World):
    """The world, with every answer kept that is no plain success: the gates want to know of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.refusals: list[tuple[Contract, Observation]] = []

    def call(self, contract: Contract, **how: Any) -> Observation:
        observation = self._world.call(contract, **how)
        plain = observation.status is None or 200 <= observation.status <= 299
        if not plain or contract.errors.codes:
            self.refusals.append((contract, observation))
        return observation


def _about(order: Call | Ask) -> dict[str, str]:
    """What an order is about, for the fault points."""
    direction = "forward" if order.compensation_id is None else "compensation"
    about = order.asked_of if isinstance(order, Ask) and order.asked_of is not None else order.contract
    return {"run": order.key.partition(".")[0], "tool": about.tool, "direction": direction}


def _call(order: Call, world: World) -> Answered:
    observation = world.call(
        order.contract,
        args=order.args,
        key=order.key,
        headers=order.headers,
        send_before=order.committing_since + DISPATCH_WINDOW_S,
        passing=lambda stage: faultpoints.reach(f"call.{stage}", **_about(order)),
    )
    compensating = order.compensation_id is not None
    outcome = classify(order.contract, observation, compensating=compensating, in_part=True)
    verified = None
    if compensating and outcome.kind is OutcomeKind.CONFIRMED and order.verify is not None:
        # "Done" means read back, not accepted.
        verified = look_at(order.verify, world, order.reads, order.scope)
    return Answered(call=order, outcome=outcome, verified=verified)


def _ask(order: Ask, world: World) -> PriorRead | Checked | Queried:
    match order.purpose:
        case Purpose.PRIOR:
            observation = world.call(order.contract, args=order.args, key="")
            outcome = classify(order.contract, observation)
            return PriorRead(ask=order, outcome=outcome, version=version_in(order, outcome))
        case Purpose.CHECK:
            done = order.already_done
            already = look_at(done, world, order.reads, order.scope) if done else None
            if already is not None and already.met:
                return Checked(ask=order, already_done=already, conditions=())
            conditions = tuple(look_at(c, world, order.reads, order.scope) for c in order.conditions)
            if all(condition.met for condition in conditions):
                # Only a refusal counts: a test mode that does not answer must not hold a compensation up.
                tried = try_out(order.contract, order.args, world, order.reads)
                conditions += (tried,) if tried is not None and tried.met is False else ()
            return Checked(ask=order, already_done=already, conditions=conditions)
        case Purpose.QUERY:
            return Queried(ask=order, answer=_query(order, world))


def _query(order: Ask, world: World) -> QueryAnswer:
    if order.asked_of is None:
        return _query_by_looking(order, world)
    query = order.asked_of.status_query
    if query is None:
        return QueryAnswer(verdict=Verdict.NO_ANSWER, detail="the tool offers no status query")
    observation = world.call(order.contract, args=order.args, key="")
    return classify_query(query, observation, order.scope, contract=order.contract)


def _query_by_looking(order: Ask, world: World) -> QueryAnswer:
    """A compensation without a query is judged by the effect: gone = found, still there = denied for now."""
    if order.already_done is None:
        return QueryAnswer(verdict=Verdict.NO_ANSWER, detail="there is nothing to look at")
    seen = look_at(order.already_done, world, order.reads, order.scope)
    verdict = {True: Verdict.FOUND, False: Verdict.ABSENT, None: Verdict.NO_ANSWER}[seen.met]
    return QueryAnswer(verdict=verdict, detail=f"{seen.text}: {seen.detail}", result=seen.body)


def drive(
    claim: Claim,
    order: Order,
    world: World,
    *,
    over: Callable[[], bool] = lambda: False,
    room: Room | None = None,
) -> None:
    """Drive one claimed run until nothing is to be done, the claim is lost, or `over` says that time is up.

    Then what is in flight is waited for and recorded, nothing more is ordered, and the run is due for anybody.
    `room`: the slots for its calls.
    """
    with Hands(world) as hands:
        while not isinstance(order, Done):
            seen = hands.work(order)
            try:
                order = retrying(partial(ledger.advance, claim, seen, last=over(), out=hands.out, room=room))
            except ClaimLost:
                log.info("claim.lost", run=claim.run_ref, fence=claim.fence)
                break
            except Exception as error:
                # Whether that commit was applied is not known. What was seen is kept as evidence and what may have
                # been marked as sent becomes unknown: the write is never repeated blindly, the call never at all.
                log.exception("advance.failed", run=claim.run_ref)
                close_old_connections()
                retrying(partial(workers.abandon, claim, seen, why=repr(error)))
                break
            if isinstance(seen, Answered) and seen.call.contract.rate.at_once is not None:
                retrying(partial(gates.hand_out, seen.call.contract.tool))  # there is room for the next one
        for late in hands.rest():
            # The claim is gone, not what was seen: it is kept as evidence.
            with contextlib.suppress(ClaimLost):
                retrying(partial(ledger.advance, claim, late))


class Hands:
    """What is out of one run at the same time: the calls and reads of a group, each in a thread of its own.

    A call by itself is made in the thread of whoever asks for it.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._flying: dict[Future[Seen], int] = {}
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    @property
    def out(self) -> frozenset[int]:
        """The actions that something is out for."""
        return frozenset(self._flying.values())

    def work(self, order: Call | Ask | Queue | Together | Waiting) -> Seen | None:
        """Set going what is ordered and return the next thing seen. None: nothing came in the time to wait."""
        match order:
            case Waiting(for_s=for_s):
                return self._next(for_s)
            case Together(orders=orders):
                for one in orders:
                    self._send_out(one)
            case _ if not self._flying:
                return perform(order, self._world)
            case _:
                self._send_out(order)
        return self._next(None)

    def rest(self) -> Iterator[Seen]:
        """Everything that is still to come, as it comes."""
        while self._flying:
            seen = self._next(None)
            if seen is not None:
                yield seen

    def _send_out(self, order: Call | Ask | Queue) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST_TOGETHER, thread_name_prefix="group")
        self._flying[self._pool.submit(perform, order, self._world)] = order.action_id

    def _next(self, for_s: float | None) -> Seen | None:
        ready, _ = wait(self._flying, timeout=for_s, return_when=FIRST_COMPLETED)
        if not ready:
            return None
        first = next(iter(ready))
        del self._flying[first]
        return first.result()


class Drain:
    """A process's hold on work: claims due runs, drives a bounded number of them at once, keeps its own lease."""

    def __init__(self, kind: str, *, in_flight: int = IN_FLIGHT) -> None:
        self.kind = kind
        self.in_flight = in_flight
        self.owner = workers.enrol(kind)
        self.world = World(settings.TOOL_SYSTEMS)
        self.stopping = threading.Event()
        self.broken = threading.Event()
        self._claims = itertools.count()
        self._slots = _Slots(slow=max(in_flight // 4, 1))
        self._pool = ThreadPoolExecutor(in_flight, thread_name_prefix=f"drive-{kind}")

    def run(
        self,
        *,
        seconds: float = DRAIN_S,
        not_due_before: timedelta = timedelta(0),
        linger_s: float = 0.0,
        on_look: Callable[[], None] = lambda: None,
    ) -> int:
        """Drain for at most `seconds`; end once nothing has been due for `linger_s`. Returns the runs driven.

        The lease is renewed by this loop itself: a loop that hangs loses it, however alive its process looks.
        """
        driven, idle_since, next_beat = 0, time.monotonic(), 0.0
        until = time.monotonic() + seconds

        def over() -> bool:
            return time.monotonic() > until or self.stopping.is_set()

        flying: set[Future[bool]] = set()
        claimed = threading.Event()
        claimed.set()
        next_claim = next_look = 0.0
        while True:
            now = time.monotonic()
            if now >= next_beat:
                self._beat()
                next_beat = now + workers.LEASE_S / 4
            if now >= next_look:
                on_look()
                next_look = now + LOOK_S
            claiming = not over()
            if claiming and claimed.is_set() and now >= next_claim and len(flying) < self.in_flight:
                claimed.clear()
                flying.add(self._pool.submit(self._claim_and_drive, claimed, not_due_before, over))
            for future in [one for one in flying if one.done()]:
                flying.discard(future)
                if future.result():
                    driven, idle_since = driven + 1, time.monotonic()
                else:
                    next_claim = now + _NOTHING_DUE_S
            if not flying and (not claiming or time.monotonic() - idle_since >= linger_s):
                return driven
            if claimed.is_set():
                time.sleep(0.01)
            else:
                claimed.wait(0.05)

    def close(self) -> None:
        """End this incarnation in good order."""
        # Each thread keeps its connection from one run to the next, and only the thread itself may close it.
        all_here = threading.Barrier(self.in_flight)
        for _ in range(self.in_flight):
            self._pool.submit(_hang_up, all_here)
        self._pool.shutdown(wait=True)
        workers.sign_off(self.owner)
        self.world.close()

    def _beat(self) -> None:
        # A run that could not even be given back hangs on this incarnation: let it end, so that recovery comes.
        if self.broken.is_set() or not workers.beat(self.owner):
            log.warning("lease.lost", owner=self.owner)
            self.owner = workers.enrol(self.kind)
            self.broken.clear()

    def _claim_and_drive(
        self, claimed: threading.Event, not_due_before: timedelta, over: Callable[[], bool]
    ) -> bool:
        """Claim one run, say that the next one may be claimed, and drive it. False: nothing was due.

        A thread of the pool does all of it, the first step included: the loop that keeps the lease never waits for
        a run, however large.
        """
        close_old_connections()
        run, seat = "", _Seat(self._slots)
        try:
            try:
                found = retrying(partial(self._claim, not_due_before, seat))
            except CannotStep as error:
                log.exception("step.impossible", run=error.ref)
                quarantine.put_off(error.run_id, repr(error.__cause__))
                return True
            finally:
                claimed.set()
            if found is None:
                return False
            claim, order = found
            run = claim.run_ref
            faultpoints.reach("pool.claimed", run=run)
            drive(claim, order, self.world, over=over, room=seat)
            return True
        except Exception:
            # Not even giving the run back worked (no database?): the lease runs out and recovery takes it.
            log.exception("drive.failed", run=run)
            self.broken.set()
            connection.close()
            return False
        finally:
            seat.leave()

    def _claim(self, not_due_before: timedelta, seat: _Seat) -> tuple[Claim, Order] | None:
        """Claims of one process come one after the other, so that a slot seen free is still free after it."""
        slots = self._slots
        lanes_now = lanes.order(next(self._claims), slow=slots.slow > 0, alone=slots.alone > 0)
        found = ledger.claim_next(self.owner, not_due_before=not_due_before, lanes=lanes_now, room=seat)
        if found is not None and found[0].lane is lanes.Lane.ALONE:
            seat.alone()
        return found


def _hang_up(all_here: threading.Barrier) -> None:
    """Close this thread's connection. Waits for its siblings, so that none of them does it twice and another never."""
    with contextlib.suppress(threading.BrokenBarrierError):
        all_here.wait(HANG_UP_S)
    connection.close()


class _Slots:
    """How many slots for long calls and for suspects this process has left. The others are its threads themselves."""

    def __init__(self, *, slow: int, alone: int = 1) -> None:
        self.slow, self.alone = slow, alone
        self.lock = threading.Lock()


class _Seat:
    """What one run has of the slots, until it is given back."""

    def __init__(self, slots: _Slots) -> None:
        self._slots = slots
        self._slow = self._alone = 0

    def take(self, contract: Contract) -> bool:
        """Whether there is a slot for a call under this contract."""
        if contract.limits.total_s <= lanes.SLOW_OVER_S or self._slow:
            return True
        with self._slots.lock:
            if self._slots.slow <= 0:
                return False
            self._slots.slow, self._slow = self._slots.slow - 1, 1
        return True

    def alone(self) -> None:
        """Take the slot for suspects."""
        with self._slots.lock:
            self._slots.alone, self._alone = self._slots.alone - 1, 1

    def leave(self) -> None:
        """Give everything back."""
        with self._slots.lock:
            self._slots.slow += self._slow
            self._slots.alone += self._alone
            self._slow = self._alone = 0


def drain_due(kind: str = "worker", *, stopping: Callable[[], bool] = lambda: False) -> int:
    """Drain what is due in an incarnation of its own; returns the runs driven. Nothing due: nothing enrolled.

    Once `stopping` says so nothing more is claimed or ordered; what is in flight is waited for.
    """
    ears.heard()
    if stopping() or not workers.anything_due():
        return 0
    drain = Drain(kind)

    def listen() -> None:
        ears.heard()
        if stopping():
            drain.stopping.set()

    try:
        return drain.run(linger_s=LINGER_S, on_look=listen)
    finally:
        drain.close()
