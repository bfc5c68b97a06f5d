"""Freeze: hold back what the system would send, at once and by one person (S4-1). Status queries go on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Answer, Refusal, Sentence
from workbench.policies import Permission

PLACES = re.compile(r"all|(tool|workflow|team):\S+")
SCOPES = ("forward", "writes", "everything")

_UNKNOWN = {
    "tool": _("No contract of a tool named %(name)s is published. The page Tools lists them."),
    "workflow": _("No workflow named %(name)s is published. The page Workflows lists them."),
    "team": _("No workflow and no run names a team %(name)s. The page Workflows says which team each has."),
}


@dataclass(frozen=True, kw_only=True)
class FreezeArguments(ReasonArguments):
    """`scope`: forward calls and repeats; compensations too (writes); or everything, records included."""

    scope: str = argument(Kind.CHOICE, _("What to hold back"), default="forward", choices=SCOPES)
    applies_to: str = argument(
        Kind.LINE, _("Where"), default="all", help=_("all, tool:NAME, workflow:NAME or team:NAME")
    )


class Freeze(SystemCommand[FreezeArguments]):
    """What is held keeps its state and becomes due when the freeze is lifted."""

    verb: ClassVar[str] = "freeze"
    label: ClassVar[Any] = _("Freeze")
    permission: ClassVar[Permission] = Permission.FREEZE
    arguments: ClassVar[type[Arguments]] = FreezeArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: FreezeArguments) -> Refusal | None:
        where = arguments.applies_to
        if not PLACES.fullmatch(where):
            sentence = Sentence(_("Write all, tool:NAME, workflow:NAME or team:NAME."))
        elif not api.is_place(where):
            kind, _colon, name = where.partition(":")
            sentence = Sentence(_UNKNOWN[kind], {"name": name})
        else:
            return None
        fields = {"applies_to": sentence}
        return Refusal(answer=Answer.INVALID, code="no_such_place", sentence=sentence, fields=fields)

    @classmethod
    def run(cls, *, actor: Actor, arguments: FreezeArguments, command_id: str) -> None:
        api.freeze(
            actor=actor,
            scope=arguments.scope,
            applies_to=arguments.applies_to,
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
        )
