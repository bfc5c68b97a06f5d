"""Reject: refuse a signature. Nothing runs, and the case comes to people with what should change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from workbench.commands._arguments import REASON_LENGTH, Arguments, Kind, argument
from workbench.commands._command import SignoffCommand


@dataclass(frozen=True, kw_only=True)
class RejectArguments(Arguments):
    """`digest`, where it is given, is that of the document as it was shown. Who asked is told why by a code, too."""

    digest: str = argument(Kind.TEXT, _("Digest"), default="", max_length=64)
    reason_code: str = argument(Kind.REASON_CODE, _("Reason code"))
    reason: str = argument(
        Kind.REASON,
        _("What should change"),
        help=_("At least 15 characters, so that the next reader understands why."),
        min_length=REASON_LENGTH,
        max_length=2000,
    )


class Reject(SignoffCommand[RejectArguments]):
    """Final for this request; the next one is asked for anew."""

    verb: ClassVar[str] = "reject"
    label: ClassVar[Any] = _("Reject")
    said: ClassVar[Any] = _("Rejected at %(at)s. Nothing ran.")
    key: ClassVar[str] = "x"
    arguments: ClassVar[type[Arguments]] = RejectArguments

    @classmethod
    def run(cls, desk: api.Desk, *, ref: str) -> None:
        desk.reject(ref)
