"""Named places where a test may end, stop or disturb this process: the closed list and what happens there.

They exist only in a process that was started with AMENDS_FAULT_POINTS; settings for production refuse that variable.
Decides nothing for the product, and imports nothing of it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "AMENDS_FAULT_POINTS"
ARMED = bool(os.environ.get(VARIABLE))
"""Whether this process was started so that something may be planned at its fault points."""

FOR_EVER_S = 3600.0
_REPLY_S = 10.0
_READY = b"Z\x00\x00\x00\x05I"
"""The end of every answer of the server outside of a transaction."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place. `crash_points`: its ids in the catalogue of faults, of a forward call and of a compensation."""

    name: str
    crash_points: tuple[str, ...]
    sentence: str


_PLACES = (
    ("step.begun", "CP-F0 CP-C0", "a run is claimed or its result taken in, nothing of this step is decided"),
    (
        "desk.fetched",
        "CP-F1 CP-C2",
        "rows are written and their counts read back, the last write and COMMIT are to come",
    ),
    (
        "pool.claimed",
        "CP-F2 CP-C2",
        "a run is claimed in the pool, its first order is on record, nothing is done of it",
    ),
    ("call.before_connect", "CP-F3 CP-C3", "the call is marked as sent, no connection is open"),
    (
        "call.before_first_byte",
        "CP-F4 CP-C4",
        "connected, no byte has left; the dispatch window is checked after this",
    ),
    ("call.awaiting_answer", "CP-F5 CP-C5", "the whole request has left, nothing is read"),
    ("call.answered", "CP-F6 CP-C6", "the answer is read and judged, its transaction has not begun"),
    ("read.before", "CP-C0", "a read is ordered (prior state, precondition, status query), nothing has left"),
    ("read.answered", "CP-C1", "a read is answered, what it means is not yet recorded"),
    (
        "abandon.begun",
        "CP-F8 CP-C8",
        "a commit failed or its answer was lost, the run is about to be given back",
    ),
    ("bell.before_ring", "CP-F9 CP-O4", "committed, the bell is not rung"),
    ("command.begun", "CP-O1", "a command is accepted at the door, its transaction has not begun"),
    ("callback.verified", "CP-W2", "an answer from outside is proved genuine and not yet stored"),
    ("relay.read", "CP-R1", "pending events are read, none is published"),
    ("relay.published", "CP-R2", "an event is published and not yet marked"),
    ("sweep.between_runs", "CP-S1", "one run of a dead worker is freed, the next is not"),
    ("reconcile.before_query", "CP-Q1", "a comparison is about to ask a system"),
    ("reconcile.answered", "CP-Q2", "a system has answered a comparison, nothing is recorded"),
)

_COMMITS = (
    # what the commit holds, crash points before it, after it, and with its answer lost
    ("start", "", "CP-F0", "CP-O3", "a run with all its actions"),
    ("claim", "CP-F1", "CP-F2", "CP-F8", "a claim on a run"),
    ("prepare", "CP-F1 CP-C1", "CP-F2 CP-C2", "CP-F8 CP-C8", "an action prepared, or a compensation due"),
    ("sent", "CP-F2 CP-C2", "CP-F3 CP-C3", "CP-F8 CP-C8", "the mark that a call leaves now"),
    ("confirm", "CP-F7 CP-C7", "CP-F9 CP-C9", "CP-F8 CP-C8", "that a call took effect"),
    ("reject", "CP-F7 CP-C10", "CP-F9 CP-C10", "CP-F8 CP-C8", "that a call definitely had no effect, or no more tries"),
    ("unknown", "CP-F7 CP-C7", "CP-F9 CP-C7", "CP-F8 CP-C8", "that nobody knows what became of a call"),
    ("again", "CP-F7 CP-C7", "CP-F9 CP-C7", "CP-F8 CP-C8", "that the same call is to be made again"),
    ("accepted", "CP-F7", "CP-F9", "CP-F8", "that an answer was promised for later"),
    ("turn_back", "CP-F10", "CP-F10", "CP-F10", "that the run turns back"),
    ("compensated", "CP-C7", "CP-C9", "CP-C8", "that an action is made up for"),
    ("handoff", "CP-C10", "CP-C10", "CP-C10", "a handoff to a person"),
    ("finish", "CP-F7 CP-C7", "CP-F9 CP-C9", "CP-F8 CP-C8", "the end of a run"),
    ("grant", "CP-O2", "CP-O4", "CP-O3", "that a request to sign is decided"),
    ("permit", "CP-O5", "CP-O5", "CP-O5", "a permit used up"),
    ("command", "CP-O2", "CP-O3", "CP-O3", "a command and what it does"),
    ("callback", "CP-W2", "CP-W2", "CP-W2", "an answer from outside"),
    ("relay", "CP-R2", "CP-R2", "CP-R2", "which events are published"),
    ("sweep", "CP-S1", "CP-S1", "CP-S1", "that a dead worker's run is free"),
    ("reconcile", "CP-Q3", "CP-Q3", "CP-Q3", "that the outside says otherwise than the record"),
    ("publish", "CP-D1", "CP-D1", "CP-D1", "a contract or a definition"),
)  # fmt: skip


def _point(name: str, crash_points: str, sentence: str) -> Point:
    return Point(name=name, crash_points=tuple(crash_points.split()), sentence=sentence)


def _points() -> Iterable[Point]:
    for place in _PLACES:
        yield _point(*place)
    for what, before, after, lost, holds in _COMMITS:
        yield _point(f"{what}.before_commit", before, f"all is written, COMMIT is not issued: {holds}")
        yield _point(
            f"{what}.after_commit", after, f"COMMIT is acknowledged, nothing more has happened: {holds}"
        )
        yield _point(f"{what}.commit_lost", lost, f"COMMIT is applied, its acknowledgement is lost: {holds}")


POINTS: Mapping[str, Point] = {point.name: point for point in _points()}
"""Every fault point there is."""

COMMITS: tuple[str, ...] = tuple(what for what, *_ in _COMMITS)

# Which moves of which machine belong to which commit point.
_MOVES: Mapping[tuple[str, str], str] = {
    **{("action", verb): "sent" for verb in ("send", "repeat", "retry_items")},
    **{("action", verb): "confirm" for verb in ("confirm", "find", "late_found", "all_settled")},
    **{("action", verb): "reject" for verb in ("reject", "refuse", "deny", "nothing_applied")},
    **{("action", verb): "again" for verb in ("again", "absent", "retry")},
    ("action", "prepare"): "prepare",
    ("action", "lose"): "unknown",
    ("action", "await_answer"): "accepted",
    ("action", "compensated"): "compensated",
    ("compensation", "turn"): "prepare",
    ("compensation", "send"): "sent",
    **{("compensation", verb): "confirm" for verb in ("confirm", "find", "late_found", "already_done")},
    **{("compensation", verb): "reject" for verb in ("fail", "stop")},
    **{("compensation", verb): "again" for verb in ("again", "absent", "order")},
    ("compensation", "lose"): "unknown",
    ("permit", "decide"): "grant",
    ("permit", "consume"): "permit",
}


class Injected(RuntimeError):
    """What a plan that says `raise` raises."""


class BadPlan(ValueError):
    """A plan that names no point, or asks for what cannot happen there."""


DOINGS = ("kill", "stop", "hang", "raise", "lose")
_FIELDS = {"point", "do", "tool", "run", "direction", "nth", "once_file"}


@dataclass(kw_only=True)
class Plan:
    """What is to happen where. Empty `tool`, `run` and `direction` mean any; `nth` counts what fits, from 1.

    `do`: kill (SIGKILL), stop (SIGSTOP), hang, raise; `lose` at a point `*.commit_lost` and only there. `once_file`:
    whoever makes this file is the one process in which it happens. `call` instead is for tests in this very process.
    """

    point: str
    do: str = "kill"
    tool: str = ""
    run: str = ""
    direction: str = ""
    nth: int = 1
    once_file: str = ""
    call: Callable[[], None] | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise BadPlan(f"there is no fault point {self.point!r}")
        if self.do not in DOINGS:
            raise BadPlan(f"do is one of {', '.join(DOINGS)}, not {self.do!r}")
        if (self.do == "lose") is not self.point.endswith(".commit_lost"):
            raise BadPlan(
                f"lose goes with *.commit_lost and with nothing else, not {self.do!r} at {self.point}"
            )

    def fits(self, point: str, about: Mapping[str, str]) -> bool:
        """Whether this is the place, and the time that was asked for."""
        if point != self.point or any(
            getattr(self, name) and getattr(self, name) != about.get(name, "")
            for name in ("tool", "run", "direction")
        ):
            return False
        self.seen += 1
        return self.seen == self.nth and self._first()

    def _first(self) -> bool:
        if not self.once_file:
            return True
        try:
            Path(self.once_file).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def read(text: str) -> list[Plan]:
    """Plans as the environment gives them: a JSON list of objects. Raises `BadPlan`."""
    try:
        given = json.loads(text or "[]")
    except ValueError as error:
        raise BadPlan(f"{VARIABLE} is not JSON: {error}") from None
    if not isinstance(given, list) or not all(isinstance(one, dict) and "point" in one for one in given):
        raise BadPlan(f"{VARIABLE} is a JSON list of objects that name a point")
    for one in given:
        if extra := sorted(set(one) - _FIELDS):
            raise BadPlan(f"a plan has no field {extra[0]!r}")
    return [Plan(**one) for one in given]


type Listener = Callable[[str, Mapping[str, str]], None]

_listeners: list[Listener] = []
_plans: list[Plan] = read(os.environ[VARIABLE]) if ARMED else []
_lock = threading.Lock()


def plan(*plans: Plan) -> None:
    """Put these plans in the place of all others. Raises `BadPlan` in a process that was not started armed."""
    if not ARMED:
        raise BadPlan(f"this process was started without {VARIABLE}")
    with _lock:
        _plans[:] = plans


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Have everything that is reached told to `listener` for the length of a block: point, and what it is about."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@dataclass
class _Transaction(threading.local):
    """What the transaction of this thread holds so far: commit points and what they are about."""

    marks: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)


_transaction = _Transaction()


def reach(point: str, **about: str) -> None:
    """This place is reached, in words of `tool`, `run` and `direction` (forward or compensation)."""
    if ARMED:
        _reached(point, about)


def mark(what: str, **about: str) -> None:
    """The transaction that is open will commit this; one of `COMMITS`."""
    if ARMED:
        _transaction.marks.append((what, about))


def moved(machine: str, verb: str, **about: str) -> None:
    """The transaction that is open makes this move."""
    if ARMED and (machine, verb) in _MOVES:
        mark(
            _MOVES[machine, verb],
            direction="compensation" if machine == "compensation" else "forward",
            **about,
        )


def begin() -> None:
    """A transaction begins."""
    if ARMED:
        _transaction.marks = []


def before_commit(connection: Any) -> None:
    """All is written on `connection` (of psycopg), COMMIT is about to be issued."""
    if ARMED:
        for what, about in _transaction.marks:
            _reached(f"{what}.before_commit", about)
        if any(_planned(f"{what}.commit_lost", about) for what, about in _transaction.marks):
            _commit_and_lose_the_answer(connection)


def after_commit() -> None:
    """COMMIT is acknowledged."""
    if ARMED:
        for what, about in _transaction.marks:
            _reached(f"{what}.after_commit", about)


def _planned(point: str, about: Mapping[str, str]) -> Plan | None:
    for listener in _listeners:
        listener(point, about)
    with _lock:
        return next((one for one in _plans if one.fits(point, about)), None)


def _reached(point: str, about: Mapping[str, str]) -> None:
    planned = _planned(point, about)
    if planned is None:
        return
    if planned.call is not None:
        return planned.call()
    match planned.do:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(FOR_EVER_S)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            time.sleep(FOR_EVER_S)
        case "raise":
            raise Injected(point)
    return None


def _commit_and_lose_the_answer(connection: Any) -> None:
    """Have the server apply COMMIT, then cut the line: the driver sees a dead server where its answer would be.

    The answer is taken off the line first, so that whoever shares the connection with this process may go on with it.
    """
    wire = connection.pgconn.socket
    # Past the driver, as the message of the protocol that it is: what the driver sends next meets a dead line.
    os.write(wire, b"Q\x00\x00\x00\x0bCOMMIT\x00")
    answer = b""
    while not answer.endswith(_READY) and select.select([wire], [], [], _REPLY_S)[0]:
        more = os.read(wire, 4096)
        if not more:
            break
        answer += more
    ours, theirs = socket.socketpair()
    theirs.close()
    os.dup2(ours.fileno(), wire)
    ours.close()
