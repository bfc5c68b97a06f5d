"""What a scene is played with: runs, the world, the clock, people; and what was found wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from sagas import api
from sagas.errors import CannotStep
from sagas.executor import drive, perform
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import quarantine, workers
from sagas.models import Run
from sagas.orders import Ask, Call, Claim, Order
from sagas.relay import Event, relay_once
from sagas.tx import retrying
from tests.integration.sagas.stage import INPUTS
from tools.contract import Json
from tools.world import World
from workbench.commands import COMMANDS, dispatch, fields_of, make_preview
from workbench.labs import cast
from workbench.labs.checker.gather import gather
from workbench.labs.checker.histories import Said
from workbench.labs.checker.invariants import judge
from workbench.labs.clock import Clock
from workbench.labs.world import Outside
from workbench.models import User
from workbench.queries.people import actor_of

AGENT = Actor(kind=ActorKind.AGENT, id="agent:mutants", name="Agent", role="agent")
REASON = "Looked at the system outside before deciding."
BANK_STEPS = {"application": "A-1", "name": "Ada Example", "id_no": "ID0001", "limit": "500.00"}


class Scene:
    """Runs, the world and the clock, and what was found wrong."""

    def __init__(self) -> None:
        self.owner_url = os.environ["DATABASE_OWNER_URL"]
        self.outside = Outside(os.environ["SIMULATOR_ADMIN_URL"])
        self.clock = Clock(self.owner_url)
        self.world = World(dict(_systems()))
        self.wrong: list[str] = []
        self.said: list[Said] = []
        self.seen: list[tuple[str, int]] = []
        self._moved = False

    def must(self, so: object, otherwise: str) -> None:
        """Keep a sentence about what is wrong unless it is so."""
        if not so:
            self.wrong.append(otherwise)

    def start(self, definition: str, number: int, *rules: dict[str, Any], given: Json = None) -> str:
        """Start a run at which the world misbehaves by these rules; returns its reference."""
        key = f"scene-{number}"
        ref = api.run_ref(AGENT, key)
        if rules:
            self.outside.plan(*({**rule, "match": ref} for rule in reversed(rules)))
        given = INPUTS[definition](number) if given is None else given
        api.start_run(actor=AGENT, definition=definition, input=given, start_key=key)
        self.said.append(Said(kind="start", id=key, outcome="ok", ref=ref))
        return ref

    def facts(self, ref: str) -> RunFacts:
        return api.run_facts(ref)

    def run_id(self, ref: str) -> int:
        return int(Run.objects.values_list("pk", flat=True).get(ref=ref))

    def forward(self, seconds: float) -> None:
        """Put the database's clock forward."""
        self._moved = True
        self.clock.put_forward(seconds)

    def at(self, moment: datetime | None, *, before: float = -0.02) -> None:
        """Set the database's clock to so many seconds before a moment, however long this machine took so far."""
        if moment is not None:
            self.forward((moment - api.now()).total_seconds() - before)

    def drain(self) -> None:
        """Drive what is due now, one run after another, in this thread: what a drain does, without its threads."""
        owner = workers.enrol("scene")
        for _ in range(200):
            try:
                found = retrying(lambda: ledger.claim_next(owner))
            except CannotStep as error:
                quarantine.put_off(error.run_id, repr(error.__cause__))
                continue
            if found is None:
                break
            drive(*found, self.world)
        workers.sign_off(owner)

    def settle(self) -> None:
        """Go on until every run is with a person, waits for a signature or is at its end; jump over other waits."""
        for _ in range(40):
            self.drain()
            with_people = ("handoff", "awaiting_approval")
            waiting = Run.objects.exclude(state__in=with_people).exclude(due_at=None).order_by("due_at")
            first = waiting.values_list("due_at", flat=True).first()
            if first is None:
                return
            self.forward(max((first - api.now()).total_seconds(), 0.0) + 0.05)

    def claim(self, ref: str, owner: str) -> tuple[Claim, Order] | None:
        return retrying(lambda: ledger.claim_run(self.run_id(ref), owner))

    def die(self, owner: str) -> None:
        """The incarnation is dead by every clock, and is buried."""
        self.forward(workers.LEASE_S + 1)
        workers.bury(owner)

    def drive(
        self, claim: Claim, order: Order, *, until: Callable[[Order], bool] = lambda order: False
    ) -> Order:
        """Drive a claimed run until it is done or `until` says so of the next order."""
        while isinstance(order, Call | Ask) and not until(order):
            order = ledger.advance(claim, perform(order, self.world))
        return order

    def command(
        self,
        who: cast.Member,
        ref: str,
        verb: str,
        *,
        step: str = "",
        id_: str = "",
        saw: int | None = None,
        **more: Any,
    ) -> int:
        """A person runs a verb on the case of a run, after its preview; the status that a door would answer with."""
        person = User.objects.get(username=who.username)
        actor = actor_of(person)
        facts = self.facts(ref)
        assert facts.handoff is not None
        preview = None
        with suppress(Exception):  # what is refused has no preview; the verb itself says why
            preview = make_preview(actor=actor, person=person, facts=facts, verb=verb, step=step)
        id_ = id_ or f"{who.username}-{len(self.said)}"
        known = {field.name for field in fields_of(COMMANDS[verb])}
        arguments = {
            name: value for name, value in {"reason": REASON, "step": step}.items() if name in known
        } | more
        try:
            result = dispatch(
                actor=actor,
                person=person,
                verb=verb,
                handoff_ref=facts.handoff.ref,
                command_id=id_,
                saw_version=saw if saw is not None else (preview.version if preview else None),
                preview_id=preview.id if preview else "",
                arguments=arguments,
                door="scene",
            )
        except Exception as error:  # noqa: BLE001  a door would answer 500
            self.wrong.append(f"{verb} broke: {error!r}"[:300])
            return 500
        outcome = "ok" if result.http_status < 300 else "refused"
        self.said.append(
            Said(kind="command", id=id_, outcome=outcome, ref=ref, verb=verb, status=result.http_status)
        )
        return result.http_status

    def publish(self) -> None:
        """Let everything that is pending leave, and remember the order."""

        def publish(event: Event) -> None:
            ref, _, seq = event.id.rpartition(":")
            self.seen.append((ref, int(seq)))

        for _ in range(20):
            if not relay_once(publish, limit=50):
                return

    def judged(self) -> list[str]:
        """Everything that is wrong by now."""
        self.publish()
        histories = gather(
            outside=self.outside,
            owner_url=self.owner_url,
            said=self.said,
            seen=self.seen,
            clock_moved=self._moved,
        )
        found = [f"{name}: {wrong}" for name, one in judge(histories).items() for wrong in one.wrong]
        return [*self.wrong, *found]


def _systems() -> dict[str, str]:
    from django.conf import settings

    return dict(settings.TOOL_SYSTEMS)
