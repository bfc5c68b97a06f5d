"""Comment: a remark for whoever reads the case next. Remarks merge: no version and no claim is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, Kind, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class CommentArguments(Arguments):
    """The remark; it is kept for good."""

    text: str = argument(Kind.TEXT, _("Comment"), max_length=2000)


class Comment(Command[CommentArguments]):
    """Changes nothing but the record."""

    verb: ClassVar[str] = "comment"
    label: ClassVar[Any] = _("Comment")
    key: ClassVar[str] = "n"
    arguments: ClassVar[type[Arguments]] = CommentArguments

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: CommentArguments, looked: Looked | None) -> None:
        desk.comment(arguments.text)
