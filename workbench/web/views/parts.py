"""Small parts that several views share: what they send along with their own, and what they read alike."""

from __future__ import annotations

from django.http import HttpResponse

from workbench.commands import Result
from workbench.web.page import Reader, frame, part


def answered(answer: HttpResponse, result: Result) -> HttpResponse:
    """The page that follows a command, marked where the command ran before: what is shown is the first one's result."""
    if result.replayed:
        answer.headers["Idempotency-Replayed"] = "true"
    return answer


def freeze_banner(reader: Reader) -> bytes:
    """The freeze banner for a page that shows an older one."""
    return part(reader, "components/freeze_slot.html", {"shell": frame(reader, "")}).content


def version_below(reader: Reader) -> int | None:
    """The key of a page of versions: only those below this number; None for the newest ones."""
    below = reader.request.GET.get("below", "")
    return int(below) if below.isascii() and below.isdigit() and len(below) < 10 else None
