"""Query status: ask the outside system whether a call took effect. The answer decides (S3-8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, Kind, StepArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class QueryArguments(StepArguments):
    """Without a step: every one of unknown outcome whose tool can be asked."""

    step: str = argument(Kind.STEP, _("Step"), default="")


class QueryStatus(Command[QueryArguments]):
    """Schedules the query; no reason is asked for what changes nothing outside."""

    verb: ClassVar[str] = "query_status"
    label: ClassVar[Any] = _("Query status of %(tool)s")
    label_alone: ClassVar[Any] = _("Query status")
    reach: ClassVar[str] = "read_only"
    key: ClassVar[str] = "q"
    arguments: ClassVar[type[Arguments]] = QueryArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: QueryArguments, looked: Looked | None) -> None:
        desk.query_status(arguments.step)
