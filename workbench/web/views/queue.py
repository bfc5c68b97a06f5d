"""The queue of handoffs, its live changes, and the claim from a row."""

from __future__ import annotations

import re

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from sagas import api
from workbench.commands import dispatch
from workbench.policies import Permission, why_not_permitted
from workbench.web.casepage import picture
from workbench.web.page import Reader, part, reads, render, stamped, unchanged
from workbench.web.presenters import case as case_words
from workbench.web.presenters import queue as words
from workbench.web.presenters import results
from workbench.web.presenters.shell import freeze_ids
from workbench.web.presenters.words import VIEWS
from workbench.web.views.parts import freeze_banner

PAGE = 50
_CURSOR = re.compile(r"[0-9]{1,20}:[0-9]{1,20}:[0-9,]{0,20000}")
_VIEWS = frozenset(code for code, __ in VIEWS)
LANDINGS = ((Permission.SIGN, "signoffs"), (Permission.READ, "queue"), (Permission.FREEZE, "freeze"))


@require_GET
@reads(None)
def home(reader: Reader) -> HttpResponse:
    """Where a login and the brand lead: to what this person is here for, and may see."""
    for permission, page in LANDINGS:
        if why_not_permitted(actor=reader.actor, roles=reader.roles, permission=permission) is None:
            return redirect(page)
    return redirect("account")


@require_GET
@reads()
def queue(reader: Reader) -> HttpResponse:
    """A saved view in due order: one query for the rows, one for the counts."""
    asked = reader.request.GET
    view = asked.get("view", "open") if asked.get("view") in _VIEWS else "open"
    search, after = asked.get("q", "").strip()[:200], asked.get("after", "")[:200]
    try:
        page = api.queue(view=view, actor_id=reader.actor.id, after=after, limit=PAGE, search=search)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    shown = words.queue(
        page,
        counts=reader.counts,
        view=view,
        search=search,
        after=after,
        reader=reader.actor.id,
        clock=reader.clock,
        freezes=reader.freezes,
    )
    return render(reader, "handoffs/queue.html", {"queue": shown}, section="queue")


@require_GET
@reads()
def changes(reader: Reader) -> HttpResponse:
    """How many cases are new or changed since the page was made; 204 when that is what the page says already."""
    asked = reader.request.GET
    since = asked.get("since", "")
    if not _CURSOR.fullmatch(since):
        raise BadRequest("this is not a cursor of a queue page")
    refs = api.queue_changes(since)
    same_freezes = asked.get("freezes", "") in ("", freeze_ids(reader.freezes))
    if same_freezes and str(len(refs)) == asked.get("shown", "0"):
        return unchanged(reader)
    url = words.fresh_url(asked.get("view", "open"), asked.get("q", ""))
    answer = part(reader, "handoffs/pill.html", {"n": len(refs), "words": words.pill(len(refs)), "url": url})
    if not same_freezes:
        answer.content += freeze_banner(reader)
    return stamped(reader, answer)


@require_POST
@reads()
def claim(reader: Reader, ref: str) -> HttpResponse:
    """Claim a case from its row; the ticket carries the version seen and the id of this very click."""
    version, __, command_id = reader.request.POST.get("ticket", "").partition(".")
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb="claim",
        handoff_ref=ref,
        command_id=command_id,
        saw_version=int(version) if version.isdecimal() else None,
        arguments={},
        door="web",
    )
    if not reader.htmx:
        return redirect("case", ref)
    seen = picture(ref)
    owner = case_words.owner(seen.handoff, reader=reader.actor.id, clock=reader.clock)
    problem = "" if result.accepted else results.claim_problem(result, reader.clock)
    closed = seen.handoff.resolved_at is not None
    cell = words.claimable(owner, ref=ref, version=seen.facts.version, closed=closed)
    context = {"owner": cell, "problem": problem}
    return part(reader, "handoffs/owner.html", context, status=result.http_status)
