"""The system page: how the engine is, read now; its numbers keep themselves up to date."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from workbench.queries import system as query
from workbench.web.page import Reader, part, reads, render, stamped
from workbench.web.presenters import system as words
from workbench.web.presenters.shell import freeze_ids
from workbench.web.views.parts import freeze_banner


@require_GET
@reads()
def system(reader: Reader) -> HttpResponse:
    """Everything, read now."""
    now = reader.clock.now
    shown = words.system(
        query.vitals(now), query.providers(now), query.gates(now), reader.freezes, clock=reader.clock
    )
    return render(reader, "system/system.html", {"system": shown}, section="system")


@require_GET
@reads()
def numbers(reader: Reader) -> HttpResponse:
    """The numbers alone, read now, for the page that shows them."""
    shown = words.panel(query.vitals(reader.clock.now), reader.freezes, clock=reader.clock)
    answer = part(reader, "system/vitals.html", {"panel": shown})
    if reader.request.GET.get("freezes", "") not in ("", freeze_ids(reader.freezes)):
        answer.content += freeze_banner(reader)
    return stamped(reader, answer)
