"""Continue a compensation that somebody paused: the calls that are left go out, in the same order."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class ContinueCompensation(Command[ReasonArguments]):
    """Each call is checked again right before it goes out."""

    verb: ClassVar[str] = "continue_compensation"
    label: ClassVar[Any] = _("Continue the compensation")
    reach: ClassVar[str] = "writes"
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True
    anytime: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return facts.paused_at is not None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.continue_compensation()
