"""Skip a compensation: leave out one that was tried and failed, knowingly. Its effect stays and is said to stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class SkipArguments(StepReasonArguments):
    """Without `items`: every item of a call over many whose compensation failed; nothing else has items."""

    items: tuple[str, ...] = argument(
        Kind.ITEMS, _("Items"), default=(), help=_("Only items whose compensation failed can be left out.")
    )


class SkipCompensation(Command[SkipArguments]):
    """The earlier compensations go on; the run can end as accepted, never as compensated."""

    verb: ClassVar[str] = "skip_compensation"
    label: ClassVar[Any] = _("Leave out the compensation of %(tool)s")
    label_alone: ClassVar[Any] = _("Leave out a compensation")
    arguments: ClassVar[type[Arguments]] = SkipArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return bool(api.targets(facts, cls.verb))

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: SkipArguments, looked: Looked | None) -> None:
        desk.skip_compensation(arguments.step, items=arguments.items)
