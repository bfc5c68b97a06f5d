"""The driver: starts runs and gives commands while everything around is being ended, and keeps a log of its own (H1).

Agents come through HTTP; of the people some come through HTTP with a session and some through the commands themselves.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from sagas import api
from sagas.errors import NotFound
from sagas.facts import AdHocStep, RunFacts
from workbench.commands import Offer, available, dispatch, make_preview
from workbench.commands.tokens import issue
from workbench.errors import Refused
from workbench.labs import cast
from workbench.labs.browser import Visitor
from workbench.labs.chaos.jobs import Job, job
from workbench.labs.checker.histories import Said
from workbench.labs.world import Outside
from workbench.models import User
from workbench.queries.people import actor_of
from workbench.queries.tokens import bearer
from workbench.roles import Scope, TokenKind

PATIENCE_S = 60.0
PAUSE_S = 0.25
REASON = "Looked at the system outside before deciding."
WEIGHTS: Mapping[str, float] = {
    "query_status": 3,
    "retry": 3,
    "compensate": 3,
    "resume": 2,
    "resolve_happened": 2,
    "resolve_not_happened": 2,
    "stop_and_compensate": 1.5,
    "comment": 1,
    "claim": 1,
    "release": 1,
    "mark_acceptable": 0.7,
    "escalate": 0.3,
}
"""How often each verb is chosen among those that are offered; others are left alone."""

_LOST = (OSError, HTTPException, DatabaseError, InterfaceError)


class Log:
    """H1, written by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[Said] = []

    def say(self, **what: Any) -> None:
        with self._lock:
            self._said.append(Said(**what))

    def all(self) -> tuple[Said, ...]:
        """What was said so far."""
        with self._lock:
            return tuple(self._said)


def insist(ask: Callable[[], tuple[int, Any]], over: Callable[[], bool]) -> tuple[str, int, Any, int]:
    """Ask until there is a definite answer: outcome, status, document, tries. The key makes repeats harmless."""
    began, tries, status, document = time.monotonic(), 0, 0, None
    while time.monotonic() - began < PATIENCE_S and not (tries and over()):
        tries += 1
        try:
            status, document = ask()
        except _LOST:
            forget_connection()
            status = 0
        code = (document or {}).get("code", "") if isinstance(document, dict) else ""
        if status and status < 500 and status != 429 and code != "busy":
            return ("ok" if status < 300 else "refused"), status, document, tries
        time.sleep(PAUSE_S)
    return "info", status, document, tries


def forget_connection() -> None:
    """Let go of this thread's connection, which may be dead; the next query makes another."""
    connection.close()
    close_old_connections()


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
        try:
            ended = [ref for ref in going if _rests(ref)]
        except (*_LOST, NotFound):
            forget_connection()
            return True
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


def _rests(ref: str) -> bool:
    facts = api.run_facts(ref)
    return facts.finished_at is not None or facts.state.value == "handoff"


class Person:
    """Somebody who looks into the queue again and again and does something about what is there."""

    def __init__(
        self,
        member: cast.Member,
        *,
        seed: int,
        web_url: str,
        outside: Outside,
        log: Log,
        over: threading.Event,
    ) -> None:
        self._user = User.objects.get(username=member.username)
        self._actor = actor_of(self._user)
        self._member, self._web_url = member, web_url
        self._chance = random.Random(f"{member.username} {seed}")  # noqa: S311  replayable, not secret
        self._outside, self._log, self.over = outside, log, over
        self._visitor: Visitor | None = None
        self._count = 0

    def run(self) -> None:
        """One thread's work, until it is over. A person without an address uses the commands themselves."""
        while not self.over.wait(self._chance.uniform(0.2, 0.6)):
            try:
                self._turn()
            except (*_LOST, NotFound, Refused, PermissionError):
                forget_connection()
        connection.close()

    def _turn(self) -> None:
        if any(str(role) == "approver" for role in self._member.roles):
            self._sign()
            return
        if self._web_url and self._visitor is None:
            visitor = Visitor(self._web_url)
            visitor.log_in(self._member.username, self._member.password)
            self._visitor = visitor
        rows = api.queue(limit=50).rows
        if not rows:
            return
        facts = api.handoff_facts(self._chance.choice(rows).ref)
        offers = [
            one for one in available(facts, self._actor, self._user) if one.allowed and one.verb in WEIGHTS
        ]
        if offers:
            offer = self._chance.choices(offers, [WEIGHTS[one.verb] for one in offers])[0]
            self._take(facts, offer)

    def _take(self, facts: RunFacts, offer: Offer) -> None:
        arguments = self._arguments(facts, offer)
        if arguments is None or facts.handoff is None:
            return
        self._count += 1
        ref = facts.handoff.ref
        command_id = f"{self._member.username}-{self._count}-{facts.ref}"[:100]
        ask = self._by_http if self._visitor is not None else self._by_command
        outcome, status, document, tries = insist(
            ask(ref, facts, offer, arguments, command_id), self.over.is_set
        )
        self._log.say(
            kind="command",
            id=command_id,
            outcome=outcome,
            ref=facts.ref,
            verb=offer.verb,
            status=status,
            tries=tries,
            detail="" if outcome == "ok" else str((document or {}).get("detail", ""))[:200],
        )

    def _by_http(
        self, ref: str, facts: RunFacts, offer: Offer, arguments: dict[str, Any], command_id: str
    ) -> Callable[[], tuple[int, Any]]:
        visitor = self._visitor
        assert visitor is not None  # noqa: S101  the caller looked

        def ask() -> tuple[int, Any]:
            seen: dict[str, Any] = {}
            if offer.needs_preview:
                wanted = {"verb": offer.verb, "step": offer.step}
                status, shown = visitor.ask("POST", f"api/v1/handoffs/{ref}/previews", wanted)
                if status != 201:
                    return (status if status != 409 else 404), shown
                seen = {"preview": shown["preview"], "saw_version": shown["version"]}
            path = f"api/v1/handoffs/{ref}/commands/{offer.verb}"
            return visitor.ask("POST", path, {**arguments, **seen}, Idempotency_Key=command_id)

        return ask

    def _by_command(
        self, ref: str, facts: RunFacts, offer: Offer, arguments: dict[str, Any], command_id: str
    ) -> Callable[[], tuple[int, Any]]:
        def ask() -> tuple[int, Any]:
            preview_id, version = "", None
            if offer.needs_preview:
                try:
                    preview = make_preview(
                        actor=self._actor,
                        person=self._user,
                        facts=api.handoff_facts(ref),
                        verb=offer.verb,
                        step=offer.step,
                    )
                except Refused as error:
                    return 404, {"detail": error.refusal.code}
                preview_id, version = preview.id, preview.version
            result = dispatch(
                actor=self._actor,
                person=self._user,
                verb=offer.verb,
                handoff_ref=ref,
                command_id=command_id,
                saw_version=version,
                preview_id=preview_id,
                arguments=arguments,
                door="command",
            )
            return result.http_status, {"code": result.code, "detail": str(result.sentence)}

        return ask

    def _arguments(self, facts: RunFacts, offer: Offer) -> dict[str, Any] | None:
        """What the verb wants to know, or None when this person cannot say it truthfully."""
        given: dict[str, Any] = {}
        for wanted in offer.fields:
            match wanted.kind.value:
                case "step":
                    given[wanted.name] = offer.step
                case "reason":
                    given[wanted.name] = REASON
                case "end_state":
                    ends = [state.id for state in facts.definition.end_states]
                    given[wanted.name] = self._chance.choice(ends) if ends else ""
                case "text":
                    given[wanted.name] = "The customer was called."
                case "choice":
                    given[wanted.name] = wanted.choices[0]
                case "reference":
                    reference = self._seen_outside(facts, offer.step)
                    if not reference:
                        return None
                    given[wanted.name] = reference
        if offer.verb == "resolve_not_happened" and self._seen_outside(facts, offer.step) != "":
            return None
        return given

    def _seen_outside(self, facts: RunFacts, step: str) -> str:
        """The reference of a step's effect in the world; "" when there is none."""
        key = facts.action(step).key
        records = self._outside.ledger(key=key, kind="effect")
        return next((str(value) for one in records for value in one["detail"].values() if value), "")

    def _sign(self) -> None:
        """Sign what waits for it; now and then refuse."""
        for row in api.signoffs().rows[:3]:
            found = api.signoff_facts(row.ref)
            verb = "sign" if self._chance.random() < 0.85 else "reject"
            self._count += 1
            command_id = f"{self._member.username}-{self._count}-{row.ref}"
            given = {"reason": REASON, **({"digest": found.permit.digest} if verb == "sign" else {})}

            def ask(verb: str = verb, ref: str = row.ref, id_: str = command_id) -> tuple[int, Any]:
                result = dispatch(
                    actor=self._actor,
                    person=self._user,
                    verb=verb,
                    signoff_ref=ref,
                    command_id=id_,
                    arguments=given,  # noqa: B023  asked before the next one
                    door="command",
                )
                return result.http_status, {"code": result.code, "detail": str(result.sentence)}

            outcome, status, document, tries = insist(ask, self.over.is_set)
            self._log.say(
                kind="command",
                id=command_id,
                outcome=outcome,
                ref=row.run_ref,
                verb=verb,
                status=status,
                tries=tries,
                detail="" if outcome == "ok" else str((document or {}).get("detail", ""))[:200],
            )
