"""When the next calls of a tool may go out, and whose they are: pure functions over values.

Reads no clock and no table; `sagas.gates` asks under the gate's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

HORIZON_S = 1.0
"""Turns are handed out this far ahead, so that whoever has one is there when it comes."""

USE_WITHIN_S = 1.0
"""A turn that is not used this long after it came is forfeited, and asked for again."""

FIRST_PACE = 10.0
"""Calls a second that a tool without a declared rate is called with at most once it has asked us to slow down."""

DOUBLES_EVERY_S = 10.0
"""A pace that was learned from a 429 doubles in this time after the gate opens, until it bounds nothing."""

PACE_ENDS_AT = 200.0
SLOWEST_PACE = 0.1
LONGEST_CLOSED_S = 3600.0
"""No answer, however absurd its Retry-After, closes a gate for longer than this."""

RESERVED_EVERY = 4
"""One turn in so many is for new work, however much of what makes up for things and finds out is waiting."""


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """A run that waits for its turn. `flow` is what turns are shared between; `reserved`: it makes up for something
    or finds something out, and goes before new work.
    """

    id: int
    run_id: int
    flow: str
    reserved: bool
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What every flow had so far, in turns: `served` is the level of the flow served last, `handed` how many in all."""

    flows: Mapping[str, float]
    served: float
    handed: int


def pace(
    per_second: float | None, learned: float | None, opened_at: datetime | None, now: datetime
) -> float | None:
    """Calls a second that may go out now; None = as many as come. A learned pace grows back from the opening on."""
    if learned is None or opened_at is None:
        return per_second
    since = max((now - opened_at).total_seconds(), 0.0)
    grown: float = learned * 2.0 ** min(since / DOUBLES_EVERY_S, 60.0)
    if grown >= PACE_ENDS_AT:
        return per_second
    return grown if per_second is None else min(grown, per_second)


def slower(current: float | None) -> float:
    """The pace after another 429: half of what it was."""
    return max((current if current is not None else 2 * FIRST_PACE) / 2, SLOWEST_PACE)


def slots(
    *,
    opens_at: datetime,
    until: datetime,
    next_at: datetime | None,
    rate: float | None,
    burst: int,
    most: int,
) -> tuple[list[datetime], datetime | None]:
    """The times of the next turns, at most `most` and none after `until`, and when the one after them could be.

    Evenly spaced by the rate; after a rest up to `burst` of them come at once. No rate: all at `opens_at`.
    """
    if rate is None:
        return ([opens_at] * most if opens_at <= until else []), None
    gap = timedelta(seconds=1 / rate)
    spare = gap * (burst - 1)
    due = next_at if next_at is not None else opens_at
    times: list[datetime] = []
    while len(times) < most:
        at = max(opens_at, due - spare)
        if at > until:
            break
        times.append(at)
        due = max(due, at) + gap
    return times, due


def pick(tickets: Iterable[Ticket], shares: Shares, number: int) -> tuple[list[Ticket], Shares]:
    """Whose turn it is, `number` of them: every flow in its turn, within a flow whoever has waited longest.

    A flow that was away starts level with the others; it saves nothing up.
    """
    waiting: dict[bool, dict[str, list[Ticket]]] = {True: {}, False: {}}
    for ticket in sorted(tickets, key=lambda one: (one.since, one.id), reverse=True):
        waiting[ticket.reserved].setdefault(ticket.flow, []).append(ticket)
    flows, served, handed = dict(shares.flows), shares.served, shares.handed
    chosen: list[Ticket] = []
    while len(chosen) < number and (waiting[True] or waiting[False]):
        first = handed % RESERVED_EVERY != RESERVED_EVERY - 1
        queues = waiting[first] or waiting[not first]
        flow = min(queues, key=lambda name: (max(flows.get(name, served), served), queues[name][-1].since))
        chosen.append(queues[flow].pop())
        if not queues[flow]:
            del queues[flow]
        level = max(flows.get(flow, served), served)
        served, flows[flow], handed = level, level + 1, handed + 1
    ahead = {name: level for name, level in flows.items() if level > served}
    return chosen, Shares(flows=ahead, served=served, handed=handed)


def estimate(*, opens_at: datetime, next_at: datetime | None, rate: float | None, before: int) -> datetime:
    """About when a turn comes that `before` others wait for: when its run looks again, if nobody wakes it sooner."""
    start = max(opens_at, next_at) if next_at is not None else opens_at
    return start + timedelta(seconds=max(before, 1) / rate if rate else 0.25)
