"""The decision trail of a handoff: who decided what, when, why and with which version in front of them."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from workbench.web.casepage import picture
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import trail as words

MOST = 500


@require_GET
@reads()
def trail(reader: Reader, ref: str) -> HttpResponse:
    """Three depths: decisions and effects, people only, every event."""
    seen = picture(ref)
    after = reader.request.GET.get("after", "")
    entries = api.entries(seen.facts.ref, after_seq=int(after) if after.isdecimal() else 0, limit=MOST)
    shown = words.trail(
        seen.facts,
        seen.handoff,
        entries,
        depth=reader.request.GET.get("show", "decisions"),
        reader=reader.actor.id,
        clock=reader.clock,
        full=len(entries) == MOST,
    )
    return render(reader, "handoffs/trail.html", {"trail": shown}, section="queue")
