"""Tools: the list by name, and one contract with the ten questions, its rules and how its calls went."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from sagas import api
from sagas.errors import NotFound
from sagas.readings import CallsLately
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import tool_page
from workbench.web.presenters import tools as words
from workbench.web.views.parts import version_below

PAGE = 50
NEWEST = 500
"""Calls of each version that the list counts at most; a tool's own page counts more."""


@require_GET
@reads()
def tools(reader: Reader) -> HttpResponse:
    """The tools by name, each under its newest contract."""
    after = reader.request.GET.get("after", "")[:200]
    page = api.tools(after=after, limit=PAGE)
    lately = api.calls_lately([one.contract.tool for one in page.rows], newest=NEWEST)
    paused = frozenset(gate.tool for gate in api.gates() if gate.paused_at is not None)
    shown = words.tool_list(page, lately, freezes=reader.freezes, paused=paused, after=after)
    return render(reader, "tools/list.html", {"tools": shown}, section="tools")


@require_GET
@reads()
def tool(reader: Reader, name: str, version: int | None = None) -> HttpResponse:
    """One contract, the newest unless a version is named."""
    try:
        found = api.tool(name, version)
    except NotFound as error:
        raise Http404(str(error)) from error
    shown = tool_page.tool(
        found,
        api.tool_versions(name, below=version_below(reader)),
        api.users_of(name),
        api.calls_lately([name]).get(name, CallsLately()),
        freezes=reader.freezes,
        clock=reader.clock,
        gate=next((one for one in api.gates() if one.tool == name), None),
    )
    return render(reader, "tools/tool.html", {"tool": shown}, section="tools")
