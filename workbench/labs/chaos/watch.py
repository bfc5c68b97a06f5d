"""How long it takes until somebody goes on with what a killed worker held, and with what an emptied broker forgot.

Times count from the last fault that covers the run: who is killed twice is recovered once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

POLL_S = 0.2
SLOW_S = 6.0
"""A recovery that takes so long is told with its story."""
_OWNED = """
SELECT r.id, r.fence, r.owner FROM sagas_run r JOIN sagas_worker w ON w.id = r.owner
WHERE w.ended_at IS NULL AND split_part(w.place, ':', 2)::int = ANY(%s)
"""
_DUE = "SELECT id, fence, owner FROM sagas_run WHERE owner = '' AND due_at <= now_() ORDER BY due_at LIMIT 20"
_NOW = """
SELECT id, fence, owner, coalesce(due_at > now_(), true) AS later, finished_at IS NOT NULL AS ended
FROM sagas_run WHERE id = ANY(%s)
"""


@dataclass
class _Case:
    """A run that somebody has to go on with. `since`: the last fault that covers it."""

    run: int
    fence: int
    owner: str
    since: float
    found: bool = False
    found_s: float | None = None


@dataclass(frozen=True)
class Slow:
    """A recovery that took long: the run, when its owner was found dead (None: only its bell was lost), when it was
    taken, and what was struck.

    Seconds count from the last fault that covers the run; `struck` are the faults since five seconds before it.
    """

    run: int
    found_s: float | None
    taken_s: float
    struck: tuple[tuple[float, str], ...]

    def __str__(self) -> str:
        found = "bell lost" if self.found_s is None else f"found after {self.found_s:.1f} s"
        struck = ", ".join(f"{kind} {at:+.1f}" for at, kind in self.struck)
        return f"run {self.run}: {found}, taken after {self.taken_s:.1f} s; struck: {struck}"


@dataclass
class Figures:
    """Seconds, a list for each thing measured; the slowest recoveries with what happened around them."""

    worker: list[float] = field(default_factory=list)
    slow: list[Slow] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    broker: list[float] = field(default_factory=list)


class Watch:
    """Asks the database five times a second about the runs that a fault has hit. A thread of its own."""

    def __init__(self, owner_url: str) -> None:
        self._url = owner_url
        self._lock = threading.Lock()
        self._held: list[_Case] = []
        self._forgotten: list[_Case] = []
        self._own = threading.local()
        self._struck: list[tuple[float, str]] = []
        self.figures = Figures()
        self.stopping = threading.Event()

    def struck(self, kind: str) -> None:
        """A fault has just been carried out, or is over: kept for the story of what took long."""
        self._struck.append((time.monotonic(), kind))

    def killed(self, pids: Iterable[int]) -> None:
        """These processes have just ended, or been stopped for long; what they held counts from now."""
        rows = self.ask(_OWNED, [list(pids)])
        self._add(self._held, rows)

    def emptied(self) -> None:
        """The broker has just forgotten every bell; what is due counts from now."""
        self._add(self._forgotten, self.ask(_DUE))

    def sweep_killed(self, others: Iterable[float]) -> None:
        """A sweep has just been killed. `others`: since when each of those that live runs.

        It covers a run whose worker is not found dead yet when nobody else has listened to that worker since it fell
        silent: whoever listens now has to begin anew.
        """
        since = list(others)
        with self._lock:
            for case in self._held:
                if not case.found and not any(began <= case.since for began in since):
                    case.since = time.monotonic()

    def covers_all(self) -> None:
        """A fault that nobody could work through is over: everything counts from now."""
        with self._lock:
            for case in (*self._held, *self._forgotten):
                case.since = time.monotonic()

    def run(self) -> None:
        """The thread's work, until `stopping` is set."""
        while not self.stopping.wait(POLL_S):
            self.look()

    def look(self) -> None:
        """One look at every run that waits for somebody."""
        with self._lock:
            cases = [*self._held, *self._forgotten]
        rows: Sequence[tuple[int, int, str, bool, bool]] = (
            self.ask(_NOW, [[case.run for case in cases]]) if cases else ()
        )
        now, seen = time.monotonic(), {row[0]: row for row in rows}
        with self._lock:
            for case in self._held:
                if case.run in seen and not case.found and seen[case.run][2] != case.owner:
                    case.found = True
                    case.found_s = now - case.since
                    self.figures.found.append(case.found_s)
            for cases, into in ((self._held, self.figures.worker), (self._forgotten, self.figures.broker)):
                done = [case for case in cases if case.run in seen and _resumed(case, seen[case.run])]
                into += [now - case.since for case in done]
                self.figures.slow += [self._told(case, now) for case in done if now - case.since >= SLOW_S]
                cases[:] = [case for case in cases if case not in done]

    def _told(self, case: _Case, now: float) -> Slow:
        struck = tuple((at - case.since, kind) for at, kind in self._struck if case.since - 5 <= at <= now)
        return Slow(run=case.run, found_s=case.found_s, taken_s=now - case.since, struck=struck)

    def _add(self, cases: list[_Case], rows: Sequence[tuple[int, int, str]]) -> None:
        now = time.monotonic()
        with self._lock:
            again = {row[0] for row in rows}
            # A second fault that covers the run before it was recovered: it counts from there.
            cases[:] = [case for case in cases if case.run not in again]
            cases += [_Case(run=run, fence=fence, owner=owner, since=now) for run, fence, owner in rows]

    def ask(self, query: LiteralString, values: Sequence[object] = ()) -> Sequence[Any]:
        """What the database says; nothing while it is away. Each thread keeps a connection of its own."""
        for _ in range(2):  # the connection may have died with the server that it belonged to
            try:
                if getattr(self._own, "connection", None) is None:
                    self._own.connection = psycopg.connect(self._url, autocommit=True, connect_timeout=2)
                rows: Sequence[Any] = self._own.connection.execute(query, values or None).fetchall()
            except psycopg.Error:
                self._own.connection = None
            else:
                return rows
        return []


def _resumed(case: _Case, row: tuple[int, int, str, bool, bool]) -> bool:
    """Whether somebody took it: it is claimed anew, at its end, or let go again until a time of its own or a person."""
    _, fence, owner, later, ended = row
    taken = owner not in ("", case.owner) and fence > case.fence
    put_off = owner == "" and fence > case.fence and bool(later)
    return taken or put_off or ended or fence > case.fence + 1


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies; 0.0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
