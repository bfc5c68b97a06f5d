"""The search box of the top bar: a reference leads straight to its page, anything else filters the queue."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from workbench.web.page import Reader, reads


@require_GET
@reads()
def search(reader: Reader) -> HttpResponse:
    """Exact references first."""
    wanted = reader.request.GET.get("q", "").strip()[:200]
    pages: tuple[tuple[Callable[[str], object], str], ...] = (
        (api.handoff_facts, "case"),
        (api.run_facts, "run"),
        (api.signoff_facts, "signoff"),
    )
    for read, page in pages:
        try:
            read(wanted)
        except NotFound:
            continue
        return redirect(page, wanted)
    asked = urlencode({"state": "any", "q": wanted})
    return redirect(f"{reverse('queue')}?{asked}" if wanted else "queue")
