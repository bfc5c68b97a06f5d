"""It did not happen: a person made sure outside that the call took no effect, after the settling point."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, StepReasonArguments
from workbench.commands._command import Command


class ResolveNotHappened(Command[StepReasonArguments]):
    """Settles an unknown outcome as not applied; what follows is the definition's rule."""

    verb: ClassVar[str] = "resolve_not_happened"
    label: ClassVar[Any] = _("%(tool)s did not happen")
    label_alone: ClassVar[Any] = _("It did not happen")
    key: ClassVar[str] = "x"
    arguments: ClassVar[type[Arguments]] = StepReasonArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: StepReasonArguments, looked: Looked | None) -> None:
        desk.resolve_not_happened(arguments.step)
