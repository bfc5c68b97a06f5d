"""Runs: the list, and one run with its steps, entries and the facts as an agent gets them."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import run_list
from workbench.web.presenters import runs as words
from workbench.web.presenters.workflows import verdict

PAGE = 50
MOST = 200
UNNAMED = ("ad_hoc", "follow_up")
"""Workflows made for one run: nobody published them, so nothing was let pass."""


@require_GET
@reads()
def runs(reader: Reader) -> HttpResponse:
    """All runs, newest first, or those of a workflow or of one version of it."""
    asked = reader.request.GET
    search, after = asked.get("q", "").strip()[:200], asked.get("after", "")[:200]
    workflow, version = asked.get("workflow", "")[:200], asked.get("version", "")
    only = run_list.Only(
        search=search,
        workflow=workflow,
        version=_number(version[:9]) if workflow else None,
    )
    try:
        page = api.runs(after=after, limit=PAGE, search=search, workflow=workflow, version=only.version)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    shown = run_list.run_list(page, only=only, after=after, clock=reader.clock)
    return render(reader, "runs/list.html", {"runs": shown}, section="runs")


@require_GET
@reads()
def run(reader: Reader, ref: str) -> HttpResponse:
    """One run, whatever its state; of a long one a page of its steps and of its entries."""
    asked = reader.request.GET
    wish = words.Asked(
        after=_number(asked.get("after", "")) or 0,
        step=asked.get("step", "")[:200],
        failures=asked.get("only") == "failures",
        steps_after=asked.get("steps", "")[:200],
    )
    try:
        facts = api.run_facts(ref)
    except NotFound as error:
        raise Http404(str(error)) from error
    entries = api.entries(ref, after_seq=wish.after, limit=MOST + 1, step=wish.step, failures=wish.failures)
    published = facts.definition.name not in UNNAMED
    workflow = api.workflow(facts.definition.name, facts.definition.version) if published else None
    shown = words.run(
        facts,
        entries[:MOST],
        next_allowed=api.next_allowed(facts),
        word=api.word_for_agent(facts),
        reader=reader.actor.id,
        clock=reader.clock,
        full=len(entries) > MOST,
        strip=api.strip(facts),
        waivers=workflow.waivers if workflow else (),
        asked=wish,
        trail=api.trail_of(ref),
        check=verdict(workflow.findings, workflow.waivers) if workflow else None,
    )
    return render(reader, "runs/run.html", {"run": shown}, section="runs")


def _number(text: str) -> int | None:
    """A number out of an address; None for what is none, or could never be one of ours."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
