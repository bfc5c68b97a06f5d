"""The ground that drills are played on: one arena for many of them, set right again after each."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import ExitStack, suppress
from typing import Any, Self

import psycopg

from sagas import api
from tools.drills.drill import Drill
from tools.drills.translate import SYSTEM
from workbench.labs.arena import Arena
from workbench.labs.drills.hours import Hours

SECRET = "AMENDS_CALLBACK_SECRETS"  # noqa: S105  the name of a variable
CALLBACKS = "AMENDS_CALLBACK_URL"
POINTS = "AMENDS_FAULT_POINTS"


class Ground:
    """An arena with workers, sweep and relay. Must be entered and used from the main thread."""

    def __init__(self, *, workers: int = 2) -> None:
        self._workers = workers
        self._stack = ExitStack()
        self._played = 0
        self._extra: list[str] = []
        self._mark = secrets.token_hex(2)
        self.arena: Arena
        self.hours: Hours
        self.secret = secrets.token_hex(16)

    def __enter__(self) -> Self:
        before = {name: os.environ.get(name) for name in (SECRET, CALLBACKS)}
        os.environ |= {SECRET: json.dumps({SYSTEM: self.secret}), CALLBACKS: "http://127.0.0.1:9/callbacks"}
        self._stack.callback(_put_back, before)
        self.arena = self._stack.enter_context(Arena(workers=self._workers, sweeps=1, relays=1))
        api.another_database()
        _ = self.arena.clock
        self.hours = Hours(self.arena.connection_url_owner)
        self.arena.wait_until_ready()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def prefix(self) -> str:
        """A prefix that no other drill of this arena has had."""
        self._played += 1
        return f"d{self._played}{self._mark}"

    def arm(self, plans: list[dict[str, Any]]) -> None:
        """Start what drives runs anew with these fault points; an empty list disarms it."""
        self._with(POINTS, json.dumps(plans) if plans else None)
        self.renew("worker")
        self.renew("sweep")  # it drives what no worker has taken in time

    def _with(self, name: str, value: str | None) -> None:
        if value is None:
            self.arena.environment.pop(name, None)
        else:
            self.arena.environment[name] = value

    def renew(self, kind: str) -> None:
        """Stop and start every process of a kind."""
        for name in self.arena.names(kind):
            self.arena.stop(name)
            self.arena.start(name)
        self.arena.wait_until_ready()

    def one_more(self, kind: str) -> str:
        """Start one more process of a kind; it stays until the ground is set right."""
        number = len(self.arena.names(kind)) + 1
        name = f"{kind}-{number}"
        self.arena.add(kind, name)
        self._extra.append(name)
        return name

    def set_right(self) -> None:
        """Have everything run that should: what a drill broke does not reach the next one."""
        for name in self.arena.names():
            self.arena.wake(name)
        for name in self._extra:
            self.arena.stop(name)
        extra, running = set(self._extra), self._running()
        for name in ("database", "broker"):
            if name not in running:
                self.arena.start(name)
        for kind in ("worker", "sweep", "relay"):
            for name in self.arena.names(kind):
                if name not in running and name not in extra:
                    with suppress(KeyError):
                        self.arena.start(name)
        self.arena.outside.bring_up()
        self.arena.wait_until_ready()

    def _running(self) -> set[str]:
        found = set()
        for name in self.arena.names():
            with suppress(KeyError):
                self.arena.pid(name)
                found.add(name)
        return found

    def down(self) -> list[str]:
        """Processes that should run and do not."""
        running = self._running()
        return [name for name in self.arena.names() if name not in running and name not in self._extra]

    def name_of_owner(self, place: str) -> str:
        """The process whose child holds a run; `place` is host:pid of the incarnation."""
        pid = int(place.rpartition(":")[2])
        for name in self.arena.names():
            with suppress(KeyError):
                if pid == self.arena.pid(name) or pid in self.arena.children_of(name):
                    return name
        return ""

    def owner(self) -> psycopg.Connection[Any]:
        """A connection as the owner of the database."""
        return psycopg.connect(self.arena.connection_url_owner, autocommit=True)

    def logs(self) -> str:
        """What the product's processes have said so far."""
        kinds = ("worker", "sweep", "relay", "web")
        return "\n".join(self.arena.log(name) for kind in kinds for name in self.arena.names(kind))


def needs_own_ground(drill: Drill) -> bool:
    """Whether a drill leaves an arena behind that no other one should be played on."""
    far = (fault["what"] == "clock_forward" and fault["seconds"] > 86_400 for fault in drill.faults)
    return bool(drill.begins_at) or any(far)


def pause(seconds: float = 0.05) -> None:
    """Let the processes go on for a moment of the wall clock."""
    time.sleep(seconds)


def _put_back(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
