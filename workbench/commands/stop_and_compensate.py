"""Stop and compensate: end the forward direction for good and make up for what took effect."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class StopAndCompensate(Command[ReasonArguments]):
    """Possible whatever the run is doing. Waits for calls in flight; their results are recorded and compensated too."""

    verb: ClassVar[str] = "stop_and_compensate"
    label: ClassVar[Any] = _("Stop and compensate")
    reach: ClassVar[str] = "writes"
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True
    anytime: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.stop_and_compensate()
