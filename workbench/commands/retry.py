"""Retry: send a step again whose call is known not to have taken effect. Never a blind repeat (S3-10).

Of a call over many only refused parts go out again, all of them or those that were picked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class RetryArguments(StepReasonArguments):
    """Without `items`: every refused item of a call over many; nothing else has items."""

    items: tuple[str, ...] = argument(
        Kind.ITEMS, _("Items"), default=(), help=_("Only items that were refused can go out again.")
    )


class Retry(Command[RetryArguments]):
    """Schedules the call with the same key; whether it may go out at all is the engine's rule."""

    verb: ClassVar[str] = "retry"
    label: ClassVar[Any] = _("Retry %(tool)s")
    label_alone: ClassVar[Any] = _("Retry a step")
    reach: ClassVar[str] = "writes"
    key: ClassVar[str] = "r"
    arguments: ClassVar[type[Arguments]] = RetryArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: RetryArguments, looked: Looked | None) -> None:
        desk.retry(arguments.step, items=arguments.items)
