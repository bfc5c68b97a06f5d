"""Release: give a claimed case back to the queue. Having worked on it stays on record."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments
from workbench.commands._command import Command


class Release(Command[Arguments]):
    """Only the holder of a claim can release it."""

    verb: ClassVar[str] = "release"
    label: ClassVar[Any] = _("Release")

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: Arguments, looked: Looked | None) -> None:
        desk.release()
