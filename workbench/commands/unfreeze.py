"""Unfreeze: lift a freeze. A lead or an admin does it; a second person has its place in `refusal`."""

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
class UnfreezeArguments(ReasonArguments):
    """`freeze` is the number of the freeze in force."""

    freeze: str = argument(Kind.TEXT, _("Freeze"), max_length=20)


class Unfreeze(SystemCommand[UnfreezeArguments]):
    """Held items become due again."""

    verb: ClassVar[str] = "unfreeze"
    label: ClassVar[Any] = _("Lift the freeze")
    permission: ClassVar[Permission] = Permission.UNFREEZE
    arguments: ClassVar[type[Arguments]] = UnfreezeArguments

    @classmethod
    def refusal(cls, *, arguments: UnfreezeArguments) -> Refusal | None:
        if any(str(freeze.id) == arguments.freeze for freeze in api.freezes()):
            return None
        sentence = Sentence(_("This freeze is not in force any more."))
        return Refusal(answer=Answer.CONFLICT, code="not_frozen", sentence=sentence)

    @classmethod
    def run(cls, *, actor: Actor, arguments: UnfreezeArguments, command_id: str) -> None:
        freeze = int(arguments.freeze)
        api.unfreeze(actor=actor, freeze_id=freeze, reason=arguments.reason, command_id=command_id)
