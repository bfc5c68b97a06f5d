"""The driver starts runs while everything around is being ended: half through HTTP, half through the engine's door."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from django.db import connection

from sagas import api
from sagas.facts import AdHocStep
from workbench.commands.tokens import issue
from workbench.labs import story
from workbench.labs.browser import Visitor
from workbench.labs.chaos.jobs import Job, job
from workbench.labs.chaos.traffic import LOST, PAUSE_S, Log, forget_connection, insist
from workbench.labs.world import Outside
from workbench.models import User
from workbench.queries.people import actor_of
from workbench.queries.tokens import bearer
from workbench.roles import Scope, TokenKind


@dataclass
class Agents:
    """Starts the jobs of a seed, one after another, with a bounded number of runs that are on their way."""

    seed: int
    web_url: str
    outside: Outside
    log: Log
    in_flight: int

    def __post_init__(self) -> None:
        owner = User.objects.get(username="maya")
        maker = actor_of(owner)
        token = issue(
            actor=maker,
            owner=owner,
            kind=TokenKind.AGENT,
            name="soak",
            scopes=[Scope.START_RUNS, Scope.READ_RUNS],
        )
        caller = bearer(token.secret)
        assert caller is not None  # noqa: S101  it was issued a moment ago
        self._actor = caller.actor
        self._secret = token.secret
        self._number = 0
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._going: set[str] = set()
        self.stopping = threading.Event()
        self.closing = threading.Event()

    def run(self) -> None:
        """One thread's work, until `stopping` is set: half of the starts come through HTTP."""
        visitor = Visitor(self.web_url)
        while not self.stopping.is_set():
            if self._full():
                time.sleep(PAUSE_S)
                continue
            with self._lock:
                self._number += 1
                number = self._number
            self._start(visitor, job(self.seed, number))
        connection.close()

    def _full(self) -> bool:
        with self._lock:
            going = list(self._going)
            if len(going) < self.in_flight:
                return False
        # One thread asks for all: what the driver costs is not what is measured.
        if not self._asking.acquire(blocking=False):
            return True
        try:
            ended = story.resting(going)
        except LOST:
            forget_connection()
            return True
        finally:
            self._asking.release()
        with self._lock:
            self._going.difference_update(ended)
            return len(self._going) >= self.in_flight

    def _start(self, visitor: Visitor, wanted: Job) -> None:
        key = f"soak-{self.seed}-{wanted.number}"
        ref = api.run_ref(self._actor, key)
        if wanted.rules:
            self.outside.plan(*({**rule, "match": ref} for rule in wanted.rules))
        with self._lock:
            self._going.add(ref)

        def by_http() -> tuple[int, Any]:
            head = {"Authorization": f"Bearer {self._secret}", "Idempotency_Key": key}
            return visitor.ask("POST", "api/v1/runs", wanted.body, **head)

        def by_engine() -> tuple[int, Any]:
            body = dict(wanted.body)
            if "steps" in body:
                body["steps"] = [AdHocStep(**step) for step in body["steps"]]
                started = api.start_steps(actor=self._actor, start_key=key, **body)
            else:
                started = api.start_run(actor=self._actor, start_key=key, **body)
            api.ring(started.run_ref)
            return 201 if started.created else 200, {"run": started.run_ref}

        ask = by_http if wanted.number % 2 else by_engine
        outcome, status, document, tries = insist(ask, self.closing.is_set)
        detail = "" if outcome == "ok" else str(document)[:300]
        self.log.say(
            kind="start", id=key, outcome=outcome, ref=ref, status=status, detail=detail, tries=tries
        )
        if outcome != "ok":
            with self._lock:
                self._going.discard(ref)
        elif wanted.number % 20 == 0:  # the same request once more: it must be the same run
            again = insist(ask, self.closing.is_set)
            same = again[0] != "ok" or (again[2] or {}).get("run") == ref
            self.log.say(
                kind="replay", id=key, outcome=again[0] if same else "wrong", ref=ref, status=again[1]
            )
