"""Continue a bulk that was paused: the same list, from the next case on. Each is still asked for by its author."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas.facts import Actor
from workbench.commands import _bulks
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Refusal
from workbench.models.bulk import BulkState
from workbench.policies import Permission


@dataclass(frozen=True, kw_only=True)
class BulkContinueArguments(ReasonArguments):
    """`bulk` is a reference. Each case keeps the reason that the bulk was started with."""

    bulk: str = argument(Kind.TEXT, _("List of cases"))


class BulkContinue(SystemCommand[BulkContinueArguments]):
    """What was stopped is not continued: a new list is made of what it left."""

    verb: ClassVar[str] = "bulk_continue"
    label: ClassVar[Any] = _("Continue")
    permission: ClassVar[Permission] = Permission.BULK
    arguments: ClassVar[type[Arguments]] = BulkContinueArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: BulkContinueArguments) -> Refusal | None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is None:
            return _bulks.missing()
        return _bulks.why_not_going(row) or _bulks.why_already(row, BulkState.RUNNING)

    @classmethod
    def run(cls, *, actor: Actor, arguments: BulkContinueArguments, command_id: str) -> None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is not None:
            changes: dict[str, Any] = {"paused_at": None, "stands_by": "", "why": {}}
            _bulks.move_bulk(
                row,
                BulkState.RUNNING,
                actor=actor,
                reason=arguments.reason,
                reason_code=arguments.reason_code,
                command_id=command_id,
                **changes,
            )
