"""Stop a bulk for good: what was not sent stays with the people as it was. What is under way cannot be stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas.facts import Actor
from workbench.commands import _bulks
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Refusal, Sentence, kept
from workbench.models.bulk import BulkState
from workbench.policies import Permission


@dataclass(frozen=True, kw_only=True)
class BulkStopArguments(ReasonArguments):
    """`bulk` is a reference."""

    bulk: str = argument(Kind.TEXT, _("List of cases"))


class BulkStop(SystemCommand[BulkStopArguments]):
    """Whoever may run one may stop any."""

    verb: ClassVar[str] = "bulk_stop"
    label: ClassVar[Any] = _("Stop for good")
    permission: ClassVar[Permission] = Permission.BULK
    arguments: ClassVar[type[Arguments]] = BulkStopArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: BulkStopArguments) -> Refusal | None:
        row = _bulks.locked_bulk(arguments.bulk)
        return _bulks.missing() if row is None else _bulks.why_not_going(row)

    @classmethod
    def run(cls, *, actor: Actor, arguments: BulkStopArguments, command_id: str) -> None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is None:
            return
        why = Sentence(_("%(who)s stopped it: %(reason)s"), {"who": actor.name, "reason": arguments.reason})
        changes = {"stands_by": actor.name, "why": kept(why)}
        _bulks.move_bulk(
            row,
            BulkState.STOPPED,
            actor=actor,
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
            **changes,
        )
