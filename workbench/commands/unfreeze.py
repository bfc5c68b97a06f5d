"""Unfreeze: two people lift a freeze. The first one asks, and it stays in force; another one does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor, FreezeFacts
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Answer, Refusal, Sentence
from workbench.policies import Permission, why_not_lift


@dataclass(frozen=True, kw_only=True)
class UnfreezeArguments(ReasonArguments):
    """`freeze` is the number of the freeze in force."""

    freeze: str = argument(Kind.TEXT, _("Freeze"), max_length=20)


class Unfreeze(SystemCommand[UnfreezeArguments]):
    """What it held becomes due again once the second person has lifted it."""

    verb: ClassVar[str] = "unfreeze"
    label: ClassVar[Any] = _("Lift the freeze")
    permission: ClassVar[Permission] = Permission.UNFREEZE
    arguments: ClassVar[type[Arguments]] = UnfreezeArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: UnfreezeArguments) -> Refusal | None:
        api.hold_freezes()  # of two who come at once the second sees what the first has done
        freeze = _named(arguments.freeze)
        if freeze is None:
            sentence = Sentence(_("This freeze is not in force any more."))
            return Refusal(answer=Answer.CONFLICT, code="not_frozen", sentence=sentence)
        return why_not_lift(actor=actor, freeze=freeze)

    @classmethod
    def run(cls, *, actor: Actor, arguments: UnfreezeArguments, command_id: str) -> None:
        freeze = _named(arguments.freeze)
        lift = api.unfreeze if freeze is not None and freeze.lift_asked_at is not None else api.ask_to_lift
        lift(
            actor=actor,
            freeze_id=int(arguments.freeze),
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
        )


def _named(number: str) -> FreezeFacts | None:
    return next((freeze for freeze in api.freezes() if str(freeze.id) == number), None)
