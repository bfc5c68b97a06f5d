"""Workflows: the list by name, and one version with its check, its steps and how its runs went."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from sagas.readings import RunsLately
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import workflow_page
from workbench.web.presenters import workflows as words
from workbench.web.views.parts import version_below

PAGE = 50
NEWEST = 1_000
"""Runs of each version that the list counts at most; a workflow's own page counts more."""


@require_GET
@reads()
def workflows(reader: Reader) -> HttpResponse:
    """The workflows by name, each in its newest version."""
    after = reader.request.GET.get("after", "")[:200]
    page = api.workflows(after=after, limit=PAGE)
    lately = api.runs_lately([one.definition.name for one in page.rows], newest=NEWEST)
    shown = words.workflow_list(page, lately, after=after)
    return render(reader, "workflows/list.html", {"workflows": shown}, section="workflows")


@require_GET
@reads()
def workflow(reader: Reader, name: str, version: int | None = None) -> HttpResponse:
    """One version, the newest unless one is named."""
    try:
        found = api.workflow(name, version)
    except NotFound as error:
        raise Http404(str(error)) from error
    shown = workflow_page.workflow(
        found,
        api.workflow_versions(name, below=version_below(reader)),
        api.runs_lately([name]).get(name, RunsLately()),
        clock=reader.clock,
    )
    return render(reader, "workflows/workflow.html", {"workflow": shown}, section="workflows")
