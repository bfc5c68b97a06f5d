"""What people, agents and providers ask for in a drill, through the product's own doors."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db import connections
from django.test import Client

from sagas import api
from sagas.errors import EngineError
from sagas.facts import Actor, RunFacts
from tools.callbacks import signature
from tools.contract import Json
from tools.drill_words import VERBS
from tools.drills.translate import about, input_of
from workbench.commands import COMMANDS, SIGNOFF_COMMANDS, dispatch, fields_of, make_preview
from workbench.errors import Refused
from workbench.labs.drills import bulking
from workbench.labs.drills.bulking import REASON
from workbench.labs.drills.casting import person_of
from workbench.labs.drills.cue import AGENT, Answered, Part, Score
from workbench.labs.drills.ground import Ground
from workbench.labs.drills.inside import rows
from workbench.labs.drills.outside import reference
from workbench.models import User

HOST = "localhost"
_OUTCOMES = {"done": "done", "failed": "denied", "withdrawn": "denied"}


def begin(score: Score, part: Part) -> None:
    """Start a run as an agent would."""
    part.start_key = part.start_key or part.case
    started = api.start_run(
        actor=AGENT,
        definition=score.names.tool("flow"),
        input=input_of(part.case, score.drill.steps),
        intent="A drill",
        start_key=part.start_key,
    )
    part.ref = started.run_ref
    api.ring(part.ref)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What somebody has before them: a preview and the version that it shows."""

    preview_id: str
    version: int
    digest: str = ""


class Asker:
    """Gives the commands of one drill."""

    def __init__(self, score: Score, ground: Ground) -> None:
        self._score, self._ground = score, ground
        self._pages: dict[tuple[int, str], Page] = {}
        self._tokens: dict[tuple[str, str], str] = {}

    def together(self, orders: list[tuple[Mapping[str, Json], Part | None]]) -> list[Answered]:
        """Give commands at the same moment; a single one as it is."""
        asked = [one for order in orders for one in [order] * int(order[0].get("times", 1))]
        acts = [self._ready(command, part) for command, part in asked]
        answers: list[Answered | None] = [None] * len(acts)
        barrier = threading.Barrier(len(acts))

        def ask(number: int) -> None:
            barrier.wait(30)
            try:
                answers[number] = acts[number]()
            finally:
                if len(acts) > 1:
                    connections.close_all()

        if len(acts) == 1:
            ask(0)
        else:
            threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(acts))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        return [one for one in answers if one is not None]

    def open_pages(self, before: int, run: Part) -> None:
        """Have everybody look who saw the page before this command."""
        for command in self._score.drill.commands:
            if command.get("page_of") == before:
                self._pages[int(command["order"]), run.case] = self._look(command, run)

    def _look(self, command: Mapping[str, Json], part: Part) -> Page:
        verb = VERBS.get(command["command"], command["command"])
        facts = api.run_facts(part.ref)
        if verb not in COMMANDS:
            return Page(preview_id="", version=facts.version, digest=self._digest(part))
        actor, person = self._author(command)
        try:
            step = self._step(command).partition("/")[0]
            given = self._arguments(command, verb, facts)
            shown = make_preview(
                actor=actor, person=person, facts=facts, verb=verb, step=step, arguments=given
            )
        except Refused:
            return Page(preview_id="", version=facts.version)
        return Page(preview_id=shown.id, version=shown.version)

    def _ready(self, command: Mapping[str, Json], part: Part | None) -> Callable[[], Answered]:
        """What has to be known is looked up now, so that only the command itself is left for the moment."""
        kind = str(command["command"])
        if kind == "callback" and part is not None:
            return self._callback(command, part, dict(command.get("args", {})), str(command["target"]))
        if kind == "start" and part is not None:
            return self._start(command, part)
        if kind.startswith("bulk_"):
            return self._bulk(command, kind.removeprefix("bulk_"))
        if part is None:
            raise LookupError(f"{kind} is given for a run")
        verb = VERBS.get(kind, kind)
        if verb in SIGNOFF_COMMANDS:
            return self._signoff(command, part, verb)
        return self._verb(command, part, verb)

    # --- Verbs on a case ----------------------------------------------------------------------------------------------

    def _verb(self, command: Mapping[str, Json], part: Part, verb: str) -> Callable[[], Answered]:
        order = int(command["order"])
        page = self._pages.get((order, part.case)) or self._look(command, part)
        actor, person = self._author(command)
        facts = api.run_facts(part.ref)
        handoff = facts.handoff.ref if facts.handoff is not None else ""
        anytime = verb in COMMANDS and COMMANDS[verb].anytime
        run_ref = part.ref if anytime and not handoff else ""
        arguments = self._arguments(command, verb, facts)
        version = {"stale": max(page.version - 1, 0), "start": 1}.get(
            command.get("base_version", ""), page.version
        )
        command_id = self._command_id(command, part)

        def ask() -> Answered:
            result = dispatch(
                actor=actor,
                person=person,
                verb=verb,
                handoff_ref=handoff,
                run_ref=run_ref,
                command_id=command_id,
                saw_version=version,
                arguments=arguments,
                preview_id=page.preview_id,
                door="web",
            )
            return self._answered(
                command, part, result.status.value, result.code, result.sentence.plain(), command_id
            )

        return ask

    def _bulk(self, command: Mapping[str, Json], verb: str) -> Callable[[], Answered]:
        actor, person = self._author(command)
        command_id = self._command_id(command, self._score.parts[0])
        ask = bulking.order(self._score, command, verb, actor=actor, person=person, command_id=command_id)

        def answered() -> Answered:
            told = ask()
            return replace(self._answered(command, self._score.parts[0], *told, command_id), run="")

        return answered

    def _signoff(self, command: Mapping[str, Json], part: Part, verb: str) -> Callable[[], Answered]:
        page = self._pages.get((int(command["order"]), part.case))
        refs = [row.ref for row in api.signoffs().rows if row.run_ref == part.ref]
        ref = refs[0] if refs else "SO-0"
        actor, person = self._author(command)
        reason = str(command.get("reason", REASON))
        digest = page.digest if page is not None else self._digest(part)
        own = {"digest": digest} if verb == "sign" else {"reason_code": "wrong_remedy"}
        arguments = {"reason": reason, **own}
        command_id = self._command_id(command, part)

        def ask() -> Answered:
            result = dispatch(
                actor=actor,
                person=person,
                verb=verb,
                signoff_ref=ref,
                command_id=command_id,
                arguments=arguments,
                door="web",
            )
            return self._answered(
                command, part, result.status.value, result.code, result.sentence.plain(), command_id
            )

        return ask

    def _digest(self, part: Part) -> str:
        refs = [row.ref for row in api.signoffs().rows if row.run_ref == part.ref]
        return api.signoff_facts(refs[0]).permit.digest if refs else ""

    def _arguments(self, command: Mapping[str, Json], verb: str, facts: RunFacts) -> dict[str, object]:
        given: dict[str, Any] = dict(command.get("args", {}))
        if verb not in COMMANDS:
            return self._about_the_system(command, verb, given)
        step, _, item = self._step(command).partition("/")
        known = {
            "step": step,
            "steps": [step] if step else [],
            "items": [item] if item else [],
            "reason": command.get("reason", REASON),
            "end_state": "as_it_is",
            "reference": "",
        }
        if verb == "edit_and_retry":
            return {"step": step, "reason": known["reason"], **self._edited(step, item, given, facts)}
        names = {field.name for field in fields_of(COMMANDS[verb])}
        arguments = {name: value for name, value in known.items() if name in names and value not in ("", [])}
        if given.get("reference"):
            part = next(one for one in self._score.parts if one.ref == facts.ref)
            given["reference"] = reference(given["reference"], part)
        return arguments | given

    def _about_the_system(
        self, command: Mapping[str, Json], verb: str, given: dict[str, Any]
    ) -> dict[str, object]:
        """A freeze names tools and workflows by their names in the product; lifting is about the newest one."""
        if verb == "unfreeze":
            newest = max((freeze.id for freeze in api.freezes()), default=0)
            given["freeze"] = str(newest)
        kind, _, name = str(given.get("applies_to", "all")).partition(":")
        if kind == "tool" and name:
            given["applies_to"] = f"tool:{self._score.names.tool(name)}"
        if kind == "workflow":
            given["applies_to"] = f"workflow:{self._score.names.tool('flow')}"
        return {"reason": command.get("reason", REASON), **given}

    def _edited(self, step: str, item: str, given: dict[str, Any], facts: RunFacts) -> dict[str, object]:
        del item
        return {"args": json.dumps({**dict(facts.action(step).args or {}), **given})}

    def _step(self, command: Mapping[str, Json]) -> str:
        target = str(command.get("target", "workflow"))
        return "" if target in ("workflow", "handoff") else target.removeprefix("undo ")

    def _author(self, command: Mapping[str, Json]) -> tuple[Actor, User | None]:
        name = str(command["actor"])
        return self._score.people[name], person_of(self._score, name)

    def _command_id(self, command: Mapping[str, Json], part: Part) -> str:
        token = str(command.get("form_token", ""))
        made = self._tokens.get((token, part.case)) if token else None
        made = made or f"c-{uuid.uuid4().hex[:12]}"
        if token:
            self._tokens[token, part.case] = made
        self._score.command_ids[made] = (str(command["command"]), str(command["actor"]))
        return made

    def _answered(
        self,
        command: Mapping[str, Json],
        part: Part,
        word: str,
        code: str,
        said: str,
        command_id: str = "",
        body: object = None,
    ) -> Answered:
        return Answered(
            order=int(command["order"]),
            run=part.id,
            word=word,
            code=code,
            said=said,
            command_id=command_id,
            at=self._ground.hours.now(),
            body=body,
        )

    # --- Starts and callbacks -----------------------------------------------------------------------------------------

    def _start(self, command: Mapping[str, Json], part: Part) -> Callable[[], Answered]:
        key = f"{part.case}-{command.get('target', 'r1')}"
        part.start_key = key
        given = {**input_of(part.case, self._score.drill.steps), **dict(command.get("args", {}))}
        actor = self._score.people[str(command["actor"])]

        def ask() -> Answered:
            try:
                started = api.start_run(
                    actor=actor, definition=self._score.names.tool("flow"), input=given, start_key=key
                )
            except EngineError as error:
                return self._answered(command, part, "conflict", error.code, str(error))
            part.ref = started.run_ref
            if started.created:
                api.ring(started.run_ref)
            word = "accepted" if started.created else "duplicate"
            return self._answered(command, part, word, word, "", body=started.run_ref)

        return ask

    def _callback(
        self, command: Mapping[str, Json], part: Part, given: dict[str, Any], step: str
    ) -> Callable[[], Answered]:
        send = self.callback(part, given, step)

        def ask() -> Answered:
            word, code, body = send()
            return self._answered(command, part, word, code, "", body=body)

        return ask

    def callback(self, part: Part, given: dict[str, Any], step: str) -> Callable[[], tuple[str, str, object]]:
        """The provider calls back about a step; what is called back is what has become of it outside."""
        place = about(part.case, step)
        state = given.get("state", "done")
        by = given.get("by", "ref" if "ref" in given else "key")
        body: dict[str, Any] = {"state": state, "result": {"about": place}}
        if by in ("ref", "both"):
            body["ref"] = reference(str(given["ref"]), part)
            body["result"]["ref"] = body["ref"]
        if by in ("key", "both"):
            sent = self._ground.arena.outside.ledger(business=part.case, kind="arrived", direction="do")
            body["key"] = next(
                (one["key"] for one in reversed(sent) if one["detail"].get("about", "").startswith(place)), ""
            )
        if "sent_s" in given:
            at = datetime.fromtimestamp(self._ground.hours.began + float(given["sent_s"]), UTC)
            body["at"] = at.isoformat()
        if "version" in given:
            body["version"] = given["version"]
        if given.get("settles", True) and state in _OUTCOMES:
            self._settle(place, _OUTCOMES[state])
        raw = json.dumps(body).encode()
        secret = "somebody else's" if given.get("forged") else self._ground.secret
        header = signature(secret, int(datetime.now(UTC).timestamp()), raw)
        tool = self._score.names.call(self._score.drill.step(step), "do")

        def send() -> tuple[str, str, object]:
            answer = Client(HTTP_HOST=HOST).post(
                f"/api/v1/callbacks/{tool}",
                raw,
                content_type="application/json",
                headers={"Webhook-Signature": header},
            )
            told = json.loads(answer.content or b"{}")
            if answer.status_code != 200:
                return (
                    ("forbidden" if answer.status_code == 401 else "invalid"),
                    str(told.get("code", "")),
                    told,
                )
            if told.get("repeated"):
                return "duplicate", "repeated", told
            return ("recorded" if told.get("matched", self._matched(body)) else "kept"), "kept", told

        return send

    def _settle(self, place: str, state: str) -> None:
        try:
            self._ground.arena.outside.settle(place, state)
        except OSError:
            return

    @staticmethod
    def _matched(body: Mapping[str, Any]) -> bool:
        found = rows(
            "SELECT run_id FROM sagas_evidence WHERE source = 'callback' AND (key = %s OR reference = %s) "
            "ORDER BY id DESC LIMIT 1",
            [body.get("key", "-"), body.get("ref", "-")],
        )
        return bool(found and found[0]["run_id"] is not None)
