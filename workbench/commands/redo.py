"""Redo: go forward again from the first step that was compensated, as new calls with keys of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class RedoArguments(StepReasonArguments):
    """Without `args`: the step's arguments as they were."""

    args: Any = argument(  # noqa: RUF009  it describes a field
        Kind.DOCUMENT,
        _("Arguments"),
        default=None,
        help=_("What is left at [masked] keeps its stored value."),
        max_length=200_000,
    )


class Redo(Command[RedoArguments]):
    """The steps after it that were compensated, refused or left out follow, with arguments made anew."""

    verb: ClassVar[str] = "redo"
    label: ClassVar[Any] = _("Go forward again from %(tool)s")
    label_alone: ClassVar[Any] = _("Go forward again")
    reach: ClassVar[str] = "writes"
    arguments: ClassVar[type[Arguments]] = RedoArguments
    needs_preview: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"args"})
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return bool(api.targets(facts, cls.verb))

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: RedoArguments, looked: Looked | None) -> None:
        desk.redo(arguments.step, args=arguments.args)
