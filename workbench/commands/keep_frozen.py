"""Keep frozen: take back that a freeze is to be lifted, one's own word or another's. It stays in force."""

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
class KeepFrozenArguments(ReasonArguments):
    """`freeze` is the number of the freeze in force."""

    freeze: str = argument(Kind.TEXT, _("Freeze"), max_length=20)


class KeepFrozen(SystemCommand[KeepFrozenArguments]):
    """Stopping takes one person: whoever may freeze may also say that it stays so."""

    verb: ClassVar[str] = "keep_frozen"
    label: ClassVar[Any] = _("Keep it frozen")
    permission: ClassVar[Permission] = Permission.FREEZE
    arguments: ClassVar[type[Arguments]] = KeepFrozenArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: KeepFrozenArguments) -> Refusal | None:
        api.hold_freezes()
        asked = any(
            str(freeze.id) == arguments.freeze and freeze.lift_asked_at is not None
            for freeze in api.freezes()
        )
        if asked:
            return None
        sentence = Sentence(_("Nobody asks to lift this freeze just now."))
        return Refusal(answer=Answer.CONFLICT, code="not_asked", sentence=sentence)

    @classmethod
    def run(cls, *, actor: Actor, arguments: KeepFrozenArguments, command_id: str) -> None:
        api.keep_frozen(
            actor=actor,
            freeze_id=int(arguments.freeze),
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
        )
