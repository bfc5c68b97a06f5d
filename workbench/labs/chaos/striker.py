"""Carries out the faults of a schedule: who is struck, who is down and until when. What is counted has happened."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from redis.exceptions import RedisError

from workbench.labs.arena import Arena
from workbench.labs.chaos.schedule import Fault
from workbench.labs.chaos.watch import Watch

PUT_OFF_S = 0.4
"""A fault that finds nobody to strike is tried again after so many seconds."""


class Striker:
    """Strikes an arena. Must be used from the main thread, where children are started."""

    def __init__(self, arena: Arena, watch: Watch, faults: Iterable[Fault]) -> None:
        self._arena, self._watch = arena, watch
        self._waiting = sorted(faults)
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._down: set[str] = set()
        self._began: dict[str, float] = {}
        self.done: Counter[str] = Counter()

    @property
    def left(self) -> int:
        """Faults that are still to come."""
        return len(self._waiting)

    def strike(self, elapsed: float) -> None:
        """Carry out what is due after so many seconds, and end what has lasted long enough."""
        while self._waiting and self._waiting[0].at <= elapsed:
            fault = heapq.heappop(self._waiting)
            if self._carry_out(fault):
                self.done[fault.kind] += 1
                self._watch.struck(fault.kind)
            else:
                heapq.heappush(self._waiting, replace(fault, at=elapsed + PUT_OFF_S))
            self._pending()
        self._pending()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Have something done in so many seconds, between two faults."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._number), do))

    def heal(self) -> None:
        """End everything that still lasts, and start whatever is down."""
        self._waiting.clear()
        for _, _, do in sorted(self._later):
            do()
        for name in self._arena.names():
            self._arena.wake(name)
            self._arena.start(name)

    def _pending(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()

    def _carry_out(self, fault: Fault) -> bool:
        """Do it. False: who is to be struck is not there, or down already."""
        match fault.kind:
            case "database":
                return self._kill_the_database(fault)
            case "broker":
                return self._kill_the_broker(fault)
            case "empty":
                return self._empty_the_broker()
            case "child":
                return self._kill_a_child(fault)
            case "pause":
                return self._pause_a_worker(fault)
            case _:
                return self._kill_a_process(fault)

    def _kill_the_database(self, fault: Fault) -> bool:
        if "database" in self._down:
            return False
        self._down.add("database")
        self._arena.kill_database()
        self.after(fault.down_s, self._database_back)
        return True

    def _database_back(self) -> None:
        self._arena.start_database()
        self._watch.struck("database back")
        self._down.discard("database")
        self._watch.covers_all()

    def _kill_the_broker(self, fault: Fault) -> bool:
        if "broker" in self._down:
            return False
        self._down.add("broker")
        self._arena.kill_broker()
        self._watch.emptied()
        self.after(fault.down_s, self._broker_back)
        return True

    def _broker_back(self) -> None:
        self._arena.start_broker()
        self._watch.struck("broker back")
        self._down.discard("broker")
        self._watch.covers_all()

    def _empty_the_broker(self) -> bool:
        if "broker" in self._down:
            return False
        try:
            self._arena.empty_broker()
        except RedisError:
            return False
        self._watch.emptied()
        return True

    def _kill_a_process(self, fault: Fault) -> bool:
        arena, name = self._arena, self._pick(fault, fault.kind)
        if not arena.runs(name):
            return False
        doomed = [arena.pid(name), *(arena.children_of(name) if fault.group else [])]
        arena.kill(name, group=fault.group)
        self._down.discard(name)
        self._watch.killed(doomed)
        if fault.kind == "sweep":
            others = [one for one in arena.names("sweep") if one != name and arena.runs(one)]
            self._watch.sweep_killed(self._began.get(one, 0.0) for one in others)
        arena.start(name)
        self._began[name] = time.monotonic()
        return True

    def _kill_a_child(self, fault: Fault) -> bool:
        arena = self._arena
        children = [pid for name in arena.names("worker") for pid in arena.children_of(name)]
        if not children:
            return False
        pid = children[int(fault.pick * len(children))]
        try:
            arena.kill_child(pid)
        except ProcessLookupError:
            return False
        self._watch.killed([pid])
        return True

    def _pause_a_worker(self, fault: Fault) -> bool:
        arena, name = self._arena, self._pick(fault, "worker")
        if name in self._down or not arena.children_of(name):
            return False
        self._down.add(name)
        arena.pause(name)
        self._watch.killed(arena.children_of(name))
        self.after(fault.down_s, lambda: self._wake(name))
        return True

    def _wake(self, name: str) -> None:
        self._arena.wake(name)
        self._down.discard(name)
        self._watch.struck("pause over")

    def _pick(self, fault: Fault, kind: str) -> str:
        names = self._arena.names(kind)
        return names[int(fault.pick * len(names))]
