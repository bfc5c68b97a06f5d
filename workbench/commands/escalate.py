"""Escalate: pass a case to the next level, with the reason. Whoever works on it lets go of it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class Escalate(Command[ReasonArguments]):
    """Makes no call; the case goes back to the queue, one level up."""

    verb: ClassVar[str] = "escalate"
    label: ClassVar[Any] = _("Escalate")
    key: ClassVar[str] = "e"
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.escalate()
