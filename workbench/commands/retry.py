"""Retry: send a step again whose call is known not to have taken effect. Never a blind repeat (S3-10)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, StepReasonArguments
from workbench.commands._command import Command


class Retry(Command[StepReasonArguments]):
    """Schedules the call with the same key; whether it may go out at all is the engine's rule."""

    verb: ClassVar[str] = "retry"
    label: ClassVar[Any] = _("Retry %(tool)s")
    label_alone: ClassVar[Any] = _("Retry a step")
    reach: ClassVar[str] = "writes"
    key: ClassVar[str] = "r"
    arguments: ClassVar[type[Arguments]] = StepReasonArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: StepReasonArguments, looked: Looked | None) -> None:
        desk.retry(arguments.step)
