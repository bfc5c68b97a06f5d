"""Pause a compensation: nothing further of it begins. What is in flight cannot be stopped and is brought to its end."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments
from workbench.commands._command import Command


class PauseCompensation(Command[Arguments]):
    """Holds back and sends nothing, so it needs neither a preview nor a reason."""

    verb: ClassVar[str] = "pause_compensation"
    label: ClassVar[Any] = _("Pause after this step")
    key: ClassVar[str] = "p"
    anytime: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return api.obstacle(facts, cls.verb) is None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: Arguments, looked: Looked | None) -> None:
        desk.pause_compensation()
