"""Runs: the list, and one run with its steps, entries and the facts as an agent gets them."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from workbench.web.page import STOP_POLLING, Reader, part, reads, render, stamped, unchanged
from workbench.web.presenters import run_list
from workbench.web.presenters import runs as words
from workbench.web.presenters.shell import freeze_ids
from workbench.web.presenters.workflows import verdict
from workbench.web.views.parts import freeze_banner

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
    return render(reader, "runs/run.html", {"run": _shown(reader, ref)}, section="runs")


@require_GET
@reads()
def changes(reader: Reader, ref: str) -> HttpResponse:
    """The same page of the run when something is new; 204 when nothing is, 286 once nothing further comes."""
    asked = reader.request.GET
    version, seq = _stamp(ref)
    same_freezes = asked.get("freezes", "") in ("", freeze_ids(reader.freezes))
    if same_freezes and (asked.get("v", ""), asked.get("seq", "")) == (str(version), str(seq)):
        return unchanged(reader)
    shown = _shown(reader, ref)
    answer = part(reader, "runs/body.html", {"run": shown}, status=STOP_POLLING if shown.over else 200)
    if not same_freezes:
        answer.content += freeze_banner(reader)
    return stamped(reader, answer)


def _stamp(ref: str) -> tuple[int, int]:
    """Version and last entry of a run. Raises Http404."""
    try:
        return api.run_stamp(ref)
    except NotFound as error:
        raise Http404(str(error)) from error


def _shown(reader: Reader, ref: str) -> words.Run:
    """What the page says of a run, as its address asks. Raises Http404."""
    asked = reader.request.GET
    wish = words.Asked(
        after=_number(asked.get("after", "")) or 0,
        step=asked.get("step", "")[:200],
        failures=asked.get("only") == "failures",
        steps_after=asked.get("steps", "")[:200],
    )
    # The stamp first: what is written after it is news to this page, even if it shows it already.
    __, seq = _stamp(ref)
    facts = api.run_facts(ref)
    entries = api.entries(ref, after_seq=wish.after, limit=MOST + 1, step=wish.step, failures=wish.failures)
    published = facts.definition.name not in UNNAMED
    workflow = api.workflow(facts.definition.name, facts.definition.version) if published else None
    return words.run(
        facts,
        entries[:MOST],
        next_allowed=api.next_allowed(facts),
        word=api.word_for_agent(facts),
        reader=reader.actor.id,
        clock=reader.clock,
        full=len(entries) > MOST,
        seq=seq,
        strip=api.strip(facts),
        waivers=workflow.waivers if workflow else (),
        asked=wish,
        trail=api.trail_of(ref),
        check=verdict(workflow.findings, workflow.waivers) if workflow else None,
    )


def _number(text: str) -> int | None:
    """A number out of an address; None for what is none, or could never be one of ours."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
