"""Claim: take a case for a while, so that others see who works on it. A courtesy with a deadline, no lock."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments
from workbench.commands._command import Command

MINUTES = 20


class Claim(Command[Arguments]):
    """An expired claim is free; a lead may take one over."""

    verb: ClassVar[str] = "claim"
    label: ClassVar[Any] = _("Claim")
    key: ClassVar[str] = "c"

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: Arguments, looked: Looked | None) -> None:
        desk.claim(minutes=MINUTES)
