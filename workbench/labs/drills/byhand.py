"""What the actors of a drill do past the dispatcher of commands: publish, change accounts, open pages."""

from __future__ import annotations

from collections.abc import Mapping

from django.test import Client

from tools.contract import Json
from workbench.commands import people
from workbench.labs.drills.asking import HOST
from workbench.labs.drills.casting import person_of
from workbench.labs.drills.cue import Part, Score
from workbench.labs.drills.doing import change_roles
from workbench.labs.drills.looking import address
from workbench.labs.drills.publishing import Publisher
from workbench.models import User

_WORDS = {200: "shown", 403: "forbidden", 404: "not_found"}


class ByHand:
    """Does the commands that are no verbs of a case, and says in a drill's words how they were answered."""

    def __init__(self, score: Score, publisher: Publisher) -> None:
        self._score, self._publisher = score, publisher

    def do(self, given: Mapping[str, Json], part: Part | None) -> str:
        """Do it; "" where the command is none of these."""
        actor = self._score.people.get(str(given["actor"]))
        change = given.get("change", {})
        match given["command"]:
            case "publish_definition" if actor is not None:
                self._publisher.next(change, actor)
            case "publish_contract" if actor is not None:
                self._publisher.contract(given["target"], change, actor)
            case "withdraw_tool" if actor is not None:
                self._publisher.withdraw(given["target"], actor)
            case "restore_tool" if actor is not None:
                self._publisher.restore(given["target"], actor)
            case "change_roles" | "disable_person" as command:
                return self._change(command, given)
            case "view_page" if part is not None:
                return self._open(given, str(given.get("args", {}).get("page", "handoff")), part)
            case "export_trail" if part is not None:
                return self._open(given, "trail", part, accept="text/csv")
            case _:
                return ""
        return "accepted"

    def _change(self, command: str, given: Mapping[str, Json]) -> str:
        actor, person = self._score.people[given["actor"]], person_of(self._score, given["target"])
        if person is None:
            return "not_found"
        if command == "change_roles":
            change_roles(person, given.get("args", {}).get("roles", []), actor)
            return "accepted"
        reason = str(given.get("reason", "as a drill wants it"))
        return "accepted" if people.switch_off(actor=actor, person=person, reason=reason) else "conflict"

    def _open(self, given: Mapping[str, Json], page: str, part: Part, accept: str = "text/html") -> str:
        """Open a page as a browser would; a page of another kind than asked for is none."""
        client = Client(HTTP_HOST=HOST)
        person: User | None = person_of(self._score, given["actor"])
        if person is not None:
            client.force_login(person)
        answer = client.get(address(page, part), headers={"Accept": accept})
        if answer.status_code == 200 and accept not in answer.headers.get("Content-Type", ""):
            return "not_found"
        return _WORDS.get(answer.status_code, "invalid")
