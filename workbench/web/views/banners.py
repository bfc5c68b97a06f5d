"""The banners of every page, asked for again every few seconds: freezes, and automatic work that stands still."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from workbench.web.page import Reader, frame, part, reads, unchanged
from workbench.web.presenters import shell


@require_GET
@reads(None)
def banners(reader: Reader) -> HttpResponse:
    """Nothing while the page shows what is so; else the banners, to be put in place."""
    if reader.request.GET.get("shown", "") == shell.banners(reader.freezes, reader.still):
        return unchanged(reader)
    return part(reader, "components/freeze_banner.html", {"shell": frame(reader, "")})
