"""Ask for a hand-over: tell whoever holds a case that one would take it. They decide; nothing changes hands by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench import policies
from workbench.commands._arguments import Arguments, Kind, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class AskArguments(Arguments):
    """What to say with it, if anything; it is kept like a comment."""

    note: str = argument(Kind.TEXT, _("What you would do with it"), default="", max_length=500)


class AskForCase(Command[AskArguments]):
    """Changes nothing but the record: no version and no claim is asked for."""

    verb: ClassVar[str] = "ask_for_case"
    label: ClassVar[Any] = _("Ask for hand-over")
    arguments: ClassVar[type[Arguments]] = AskArguments

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return policies.holder(facts) is not None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: AskArguments, looked: Looked | None) -> None:
        desk.ask_for_case(arguments.note)
