"""Resume: let the run go on from where it stands, when nothing is left that a person must settle."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class Resume(Command[ReasonArguments]):
    """Schedules the next step in the run's own direction."""

    verb: ClassVar[str] = "resume"
    label: ClassVar[Any] = _("Resume the run")
    reach: ClassVar[str] = "writes"
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.resume()
