"""Reopen: a new case beside a run that is over, linked to the closed one. The run itself stays as it ended (law 9)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from sagas.states import HandoffState
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class Reopen(Command[ReasonArguments]):
    """Makes no call and changes nothing of what was decided, so there is nothing to preview."""

    verb: ClassVar[str] = "reopen"
    label: ClassVar[Any] = _("Reopen as a new case")
    arguments: ClassVar[type[Arguments]] = ReasonArguments

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return facts.handoff is not None and facts.handoff.state is HandoffState.RESOLVED

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.reopen()
