"""Looks that a claim asks for at a moment: how things stand, what is offered, what a preview or a page shows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from django.test import Client

from sagas import api
from tools.contract import Json
from tools.drill_words import VERBS
from workbench.commands import COMMANDS, make_preview
from workbench.errors import Refused
from workbench.labs.drills import claims
from workbench.labs.drills.asking import HOST
from workbench.labs.drills.casting import person_of
from workbench.labs.drills.cue import Part, Score
from workbench.labs.drills.standing import differences, why_not


class Looker:
    """Makes the looks of one drill and keeps what was otherwise than claimed."""

    def __init__(self, score: Score, found: dict[tuple[int, str], str]) -> None:
        self._score, self._found = score, found

    def look(self, claim: Mapping[str, Json], part: Part) -> None:
        """Look now, and keep the first difference."""
        kind = str(claim["claim"])
        looks = {
            "seen": self._seen,
            "offer": self._offer,
            "preview": self._preview,
            "page": self._page,
            "alarm": self._alarm,
        }
        self._found[id(claim), part.case] = next(iter(looks[kind](claim, part)), "")

    def _seen(self, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
        yield from differences(claim, self._score, part, api.run_facts(part.ref))

    def _offer(self, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
        facts = api.run_facts(part.ref)
        code = why_not(self._score, facts, claim["command"], claim.get("target", ""), claim["actor"])
        if (code == "") is not claim["allowed"]:
            wanted = "possible" if claim["allowed"] else "refused"
            yield f"expected {claim['command']} to be {wanted}, {code or 'is offered'}"
        elif "code" in claim and code != claim["code"]:
            yield f"expected {claim['command']} to be refused with {claim['code']}, is {code}"

    def _preview(self, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
        facts = api.run_facts(part.ref)
        actor, verb = self._score.people[claim["actor"]], VERBS.get(claim["command"], claim["command"])
        if verb not in COMMANDS:
            yield f"expected a preview of {verb}, there is no such verb"
            return
        step, _, item = str(claim.get("target", "")).partition("/")
        try:
            person = person_of(self._score, claim["actor"])
            shown = make_preview(actor=actor, person=person, facts=facts, verb=verb, step=step)
        except Refused as error:
            yield f"expected a preview of {verb}, is refused ({error.refusal.code})"
            return
        whose = {
            self._score.names.call(one, way): f"{one.id}.{way}"
            for one in self._score.drill.steps
            for way in ("query", "undo", "do")
            if way != "undo" or one.compensation is not None
        }
        calls = [whose.get(call.tool, call.tool) for call in shown.calls]
        writing = [call for call in calls if not call.endswith(".query")]
        if "calls" in claim and claim["calls"] not in (calls, writing):
            yield f"expected the preview to announce {claim['calls']}, is {calls}"
        del item
        items = [name for call in shown.calls for name in call.items]
        if "items" in claim and items != claim["items"]:
            yield f"expected the preview to name {claim['items']}, are {items}"
        for text in claim.get("says", ()):
            if text not in f"{shown}":
                yield f"expected the preview to say {text!r}, does not"

    def _page(self, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
        client = Client(HTTP_HOST=HOST)
        person = person_of(self._score, claim["actor"])
        if person is not None:
            client.force_login(person)
        began = time.monotonic()
        answer = client.get(address(str(claim["page"]), part))
        took = time.monotonic() - began
        wanted = claim.get("status", 200)
        if answer.status_code != wanted:
            yield f"expected the page {claim['page']} with {wanted}, is {answer.status_code}"
            return
        text = answer.content.decode(errors="replace")
        for words in claim.get("says", ()):
            if words not in text:
                yield f"expected the page {claim['page']} to say {words!r}, does not"
        for words in claim.get("says_not", ()):
            if words in text:
                yield f"expected the page {claim['page']} not to say {words!r}, does"
        if "within_s" in claim and took > claim["within_s"]:
            yield f"expected the page {claim['page']} within {claim['within_s']:g} s, took {took:.2f} s"

    @staticmethod
    def _alarm(claim: Mapping[str, Json], part: Part) -> Iterator[str]:
        del part
        found = claims.alarms()
        wanted = claim.get("in_force", True)
        if (claim["code"] in found) is not wanted:
            yield f"expected the alarm {claim['code']} {'on' if wanted else 'off'}, in force: {sorted(found)}"


def address(page: str, part: Part) -> str:
    """Where a page of a drill's run stands."""
    facts = api.run_facts(part.ref)
    handoff = facts.handoff.ref if facts.handoff is not None else "none"
    signoffs = [row.ref for row in api.signoffs().rows if row.run_ref == part.ref]
    return {
        "queue": "/handoffs/",
        "handoff": f"/handoffs/{handoff}/",
        "trail": f"/handoffs/{handoff}/trail/",
        "run": f"/runs/{part.ref}/",
        "signoffs": "/signoffs/",
        "signoff": f"/signoffs/{signoffs[0] if signoffs else 'none'}/",
        "api_run": f"/api/v1/runs/{part.ref}",
        "api_handoff": f"/api/v1/handoffs/{handoff}",
    }[page]
