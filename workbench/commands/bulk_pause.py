"""Pause a bulk: nothing more of it is sent until somebody continues it. What is under way is watched to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.commands import _bulks
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.errors import Refusal
from workbench.models.bulk import BulkState
from workbench.policies import Permission


@dataclass(frozen=True, kw_only=True)
class BulkPauseArguments(ReasonArguments):
    """`bulk` is a reference."""

    bulk: str = argument(Kind.TEXT, _("List of cases"))


class BulkPause(SystemCommand[BulkPauseArguments]):
    """Whoever may run one may pause any."""

    verb: ClassVar[str] = "bulk_pause"
    label: ClassVar[Any] = _("Pause")
    permission: ClassVar[Permission] = Permission.BULK
    arguments: ClassVar[type[Arguments]] = BulkPauseArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: BulkPauseArguments) -> Refusal | None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is None:
            return _bulks.missing()
        return _bulks.why_not_going(row) or _bulks.why_already(row, BulkState.PAUSED)

    @classmethod
    def run(cls, *, actor: Actor, arguments: BulkPauseArguments, command_id: str) -> None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is not None:
            changes: dict[str, Any] = {"paused_at": api.now(), "stands_by": actor.name, "why": {}}
            _bulks.move_bulk(
                row,
                BulkState.PAUSED,
                actor=actor,
                reason=arguments.reason,
                reason_code=arguments.reason_code,
                command_id=command_id,
                **changes,
            )
