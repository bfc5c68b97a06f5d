"""Decline a verdict: not stand to what another person stated, or take back what one stated oneself."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class DeclineVerdict(Command[ReasonArguments]):
    """Nothing is settled by it; the question is open again."""

    verb: ClassVar[str] = "decline_verdict"
    label: ClassVar[Any] = _("Decline what was stated")
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return facts.proposal is not None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.decline_verdict()
