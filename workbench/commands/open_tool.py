"""Open a tool: let one that refused our credential be called again. A lead or an admin does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Answer, Refusal, Sentence
from workbench.policies import Permission


@dataclass(frozen=True, kw_only=True)
class OpenToolArguments(ReasonArguments):
    """`tool` is the name of a paused tool."""

    tool: str = argument(Kind.TEXT, _("Tool"), max_length=100)


class OpenTool(SystemCommand[OpenToolArguments]):
    """Who waited for it comes back paced."""

    verb: ClassVar[str] = "open_tool"
    label: ClassVar[Any] = _("Open the tool")
    permission: ClassVar[Permission] = Permission.UNFREEZE
    arguments: ClassVar[type[Arguments]] = OpenToolArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: OpenToolArguments) -> Refusal | None:
        if any(gate.tool == arguments.tool and gate.paused_at is not None for gate in api.gates()):
            return None
        sentence = Sentence(_("This tool is not paused."))
        return Refusal(answer=Answer.CONFLICT, code="not_paused", sentence=sentence)

    @classmethod
    def run(cls, *, actor: Actor, arguments: OpenToolArguments, command_id: str) -> None:
        api.open_gate(
            actor=actor,
            tool=arguments.tool,
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
        )
