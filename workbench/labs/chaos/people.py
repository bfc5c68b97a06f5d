"""The driver gives commands while everything around is being ended: through HTTP with a session, and by the commands
themselves.
"""

from __future__ import annotations

import itertools
import random
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from django.db import connection

from sagas import api
from sagas.errors import NotFound
from sagas.facts import RunFacts
from workbench.commands import Offer, available, dispatch, make_preview
from workbench.errors import Refused
from workbench.labs import cast
from workbench.labs.browser import Visitor
from workbench.labs.chaos.traffic import LOST, Log, forget_connection, insist, said
from workbench.labs.world import Outside
from workbench.models import User
from workbench.queries.people import actor_of

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

PACE_S = (0.5, 1.2)
"""Seconds between two looks of one person."""

OWN = 0.9
"""How often somebody looks at the cases that are theirs, and not into everybody else's."""


class Person:
    """Somebody who looks into the queue again and again and does something about what is there.

    `place` among `people` says which cases are theirs: people who all act on every case do little but refuse each other.
    """

    def __init__(
        self,
        member: cast.Member,
        *,
        seed: int,
        web_url: str,
        outside: Outside,
        log: Log,
        over: threading.Event,
        place: int = 0,
        people: int = 1,
    ) -> None:
        self._place, self._people = place, people
        self._user = User.objects.get(username=member.username)
        self._actor = actor_of(self._user)
        self._member, self._web_url = member, web_url
        self._chance = random.Random(f"{member.username} {seed}")  # noqa: S311  replayable, not secret
        self._outside, self._log, self.over = outside, log, over
        self._visitor: Visitor | None = None
        self._count = 0

    def run(self) -> None:
        """One thread's work, until it is over. A person without an address uses the commands themselves."""
        while not self.over.wait(self._chance.uniform(*PACE_S)):
            try:
                self._turn()
            except (*LOST, NotFound, Refused, PermissionError):
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
        own = [row for row in rows if zlib.crc32(row.ref.encode()) % self._people == self._place]
        if not own or self._chance.random() >= OWN:
            own = list(rows)
        facts = api.handoff_facts(self._chance.choice(own).ref)
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
            detail="" if outcome == "ok" else said(document),
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
                    # No command was given: what refuses a preview leaves no entry, and is no answer to a command.
                    return (404 if 400 <= status < 500 and status != 429 else status), shown
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
                    return 404, {"code": error.refusal.code}
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
            if wanted.in_plan:
                continue  # what a plan leaves out is shown before: everything is compensated here
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
                case "line":
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
            own = {"digest": found.permit.digest} if verb == "sign" else {"reason_code": "wrong_time"}
            given = {"reason": REASON, **own}

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
                detail="" if outcome == "ok" else said(document),
            )


class Lead:
    """Freezes and lifts freezes, so that it can be seen whether stop means stop."""

    def __init__(self) -> None:
        self._number = itertools.count()

    def freeze(self) -> bool:
        """Hold back every forward call."""
        return self._give("freeze", {"scope": "forward", "applies_to": "all"}, "lin")

    def unfreeze(self) -> bool:
        """Lift every freeze; where that takes two people the second one follows. False: something is still frozen."""
        try:
            for name in ("lin", "ada"):
                for freeze in api.freezes():
                    self._give("unfreeze", {"freeze": str(freeze.id)}, name)
            return not api.freezes()
        except Exception:  # noqa: BLE001  the database may be away; whoever asks comes again
            forget_connection()
            return False

    def _give(self, verb: str, arguments: dict[str, Any], name: str) -> bool:
        try:
            person = User.objects.get(username=name)
            result = dispatch(
                actor=actor_of(person),
                person=person,
                verb=verb,
                command_id=f"{verb}-{name}-{next(self._number)}",
                arguments={**arguments, "reason": "The soak looks whether stop means stop."},
                door="command",
            )
        except Exception:  # noqa: BLE001  the database may be away; a freeze is not what is counted here
            forget_connection()
            return False
        return result.http_status < 300
