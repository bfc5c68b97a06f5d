"""Stopping a run from its own page, whether a person is asked about it or not: what it would do, and doing it."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from sagas import api
from sagas.errors import NotFound
from sagas.facts import RunFacts
from workbench.commands import COMMANDS, Preview, Result, dispatch, fields_of, find_preview, make_preview
from workbench.errors import Answer, Refused
from workbench.web import forms
from workbench.web.page import Reader, part, reads, render
from workbench.web.presenters import decide, results

VERB = "stop_and_compensate"


@require_GET
@reads()
def stop(reader: Reader, ref: str) -> HttpResponse:
    """What stopping this run would do."""
    return _page(reader, _facts(ref))


@require_http_methods(["GET", "POST"])
@reads()
def act(reader: Reader, ref: str) -> HttpResponse:
    """Stop it. Once that is accepted the run's page shows what comes of it."""
    if reader.request.method == "GET":
        return redirect("run-stop", ref)
    asked = reader.request.POST
    version = asked.get("saw_version", "")
    draft = forms.arguments(fields_of(COMMANDS[VERB]), asked)
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=VERB,
        run_ref=ref,
        command_id=asked.get("command_id", ""),
        saw_version=int(version) if version.isdecimal() else None,
        arguments=draft,
        preview_id=asked.get("preview_id", ""),
        door="web",
    )
    if not result.accepted:
        return _page(reader, _facts(ref), result, draft)
    if reader.htmx:
        return HttpResponse(headers={"HX-Redirect": reverse("run", args=[ref])})
    return redirect("run", ref)


def _facts(ref: str) -> RunFacts:
    try:
        return api.run_facts(ref)
    except NotFound as error:
        raise Http404(str(error)) from error


def _page(
    reader: Reader, facts: RunFacts, result: Result | None = None, draft: dict[str, object] | None = None
) -> HttpResponse:
    url = reverse("run", args=[facts.ref])
    shown = results.result(result, step="", url=url, clock=reader.clock) if result else None
    context: dict[str, Any] = {
        "case": {"url": url},
        "ref": facts.ref,
        "result": shown,
        "preview": None,
        "why": "",
    }
    try:
        context["preview"] = _shown(reader, _preview(reader, facts, result), result, draft or {})
    except Refused as error:
        context["why"] = error.refusal.sentence
    status = result.http_status if result else 200
    if reader.htmx:
        return part(reader, "runs/stop_body.html", context, status=status)
    return render(reader, "runs/stop.html", context, section="runs", status=status)


def _preview(reader: Reader, facts: RunFacts, result: Result | None) -> Preview:
    """The one that is still good after a mistake in the form, or a new one. Raises Refused."""
    good = result is not None and result.status is Answer.INVALID and result.code == "invalid"
    kept = reader.request.POST.get("preview_id", "") if good else ""
    return find_preview(kept, actor=reader.actor) or make_preview(
        actor=reader.actor, person=reader.person, facts=facts, verb=VERB
    )


def _shown(reader: Reader, preview: Preview, result: Result | None, draft: dict[str, object]) -> decide.Shown:
    command = COMMANDS[VERB]
    errors = result.field_errors if result else {}
    return decide.shown(
        preview,
        label=command.label,
        clock=reader.clock,
        fields=forms.fields(fields_of(command), draft=draft, errors=errors),
        command_id=uuid.uuid4().hex,
    )
