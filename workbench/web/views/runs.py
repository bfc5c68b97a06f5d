"""Runs: the list, and one run with its steps, entries and the facts as an agent gets them."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import runs as words

PAGE = 50
MOST = 500
UNNAMED = ("ad_hoc", "follow_up")
"""Workflows made for one run: nobody published them, so nothing was let pass."""


@require_GET
@reads()
def runs(reader: Reader) -> HttpResponse:
    """All runs, newest first, or those of a workflow or of one version of it."""
    asked = reader.request.GET
    search, after = asked.get("q", "").strip()[:200], asked.get("after", "")[:200]
    workflow, version = asked.get("workflow", "")[:200], asked.get("version", "")
    only = words.Only(
        search=search,
        workflow=workflow,
        version=int(version)
        if workflow and version.isascii() and version.isdigit() and len(version) < 10
        else None,
    )
    try:
        page = api.runs(after=after, limit=PAGE, search=search, workflow=workflow, version=only.version)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    shown = words.run_list(page, only=only, after=after, clock=reader.clock)
    return render(reader, "runs/list.html", {"runs": shown}, section="runs")


@require_GET
@reads()
def run(reader: Reader, ref: str) -> HttpResponse:
    """One run, whatever its state."""
    try:
        facts = api.run_facts(ref)
    except NotFound as error:
        raise Http404(str(error)) from error
    after = reader.request.GET.get("after", "")
    entries = api.entries(ref, after_seq=int(after) if after.isdecimal() else 0, limit=MOST)
    shown = words.run(
        facts,
        entries,
        next_allowed=api.next_allowed(facts),
        word=api.word_for_agent(facts),
        reader=reader.actor.id,
        clock=reader.clock,
        full=len(entries) == MOST,
        strip=api.strip(facts),
        waivers=api.waivers(facts.definition) if facts.definition.name not in UNNAMED else (),
    )
    return render(reader, "runs/run.html", {"run": shown}, section="runs")
