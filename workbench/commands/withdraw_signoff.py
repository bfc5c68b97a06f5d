"""Withdraw what waits for a signature: nothing runs, and a person decides again."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command


class WithdrawSignoff(Command[ReasonArguments]):
    """Nothing goes out because of it, so there is nothing to preview."""

    verb: ClassVar[str] = "withdraw_signoff"
    label: ClassVar[Any] = _("Withdraw the request for a signature")
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    anytime: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return bool(api.asked(facts))

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.withdraw_signoff()
