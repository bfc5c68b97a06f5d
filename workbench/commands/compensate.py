"""Compensate: make up for the steps that took effect, in strict reverse order, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class CompensateArguments(ReasonArguments):
    """Without `steps`: everything that is outstanding."""

    steps: tuple[str, ...] = argument(
        Kind.STEPS, _("Steps"), default=(), help=_("All of them when none is named.")
    )


class Compensate(Command[CompensateArguments]):
    """Schedules the compensations; each is checked again right before its call."""

    verb: ClassVar[str] = "compensate"
    label: ClassVar[Any] = _("Compensate")
    reach: ClassVar[str] = "writes"
    key: ClassVar[str] = "m"
    arguments: ClassVar[type[Arguments]] = CompensateArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: CompensateArguments, looked: Looked | None) -> None:
        desk.compensate(steps=arguments.steps)
