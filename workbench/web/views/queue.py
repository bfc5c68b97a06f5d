"""The queue of handoffs, its live changes, its saved views, and the claim from a row."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from django.core.exceptions import BadRequest, ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from sagas import api
from workbench.commands import dispatch
from workbench.commands.views import delete_view, save_view
from workbench.errors import Refused
from workbench.policies import Permission, why_not_permitted
from workbench.queries.presence import viewers
from workbench.queries.views import read_query
from workbench.web import queuepage
from workbench.web.casepage import Wish, context, picture
from workbench.web.page import Reader, part, reads, refused, render, stamped, unchanged
from workbench.web.presenters import case as case_words
from workbench.web.presenters import queue as words
from workbench.web.presenters import results
from workbench.web.presenters.queue_page import Asked
from workbench.web.presenters.shell import freeze_ids
from workbench.web.views.parts import freeze_banner

_CURSOR = re.compile(r"[0-9]{1,20}:[0-9]{1,20}:[0-9,]{0,20000}")
_PLACES = re.compile(r"[A-Za-z0-9.-]{0,7000}")
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
    """A view in due order: a fixed number of queries however many rows and tabs."""
    asked = queuepage.asked_of(reader)
    answer = render(reader, "handoffs/queue.html", queuepage.context(reader, asked), section="queue")
    if reader.htmx and reader.request.headers.get("HX-Trigger") == "filters":
        # The form sends every field; the address says only what was asked for.
        answer.headers["HX-Push-Url"] = asked.url()
    return answer


@require_GET
@reads()
def changes(reader: Reader) -> HttpResponse:
    """What is new since the cursor: rows change in place, what would add or move one is counted; 204 when nothing is.

    What the page shows comes in a header, because an address would be too long for two hundred rows.
    """
    asked = reader.request.GET
    since, places = asked.get("since", ""), reader.request.headers.get("Amends-Shown", "")
    if not _CURSOR.fullmatch(since):
        raise BadRequest("this is not a cursor of a queue page")
    if not _PLACES.fullmatch(places):
        raise BadRequest("this is no list of rows")
    shown = [place for place in places.split(".") if place]
    found = api.queue_changes(since)
    same_freezes = asked.get("freezes", "") in ("", freeze_ids(reader.freezes))
    if same_freezes and not found.refs and asked.get("aged") != "1":
        answer = unchanged(reader)
    else:
        touched = found.refs
        if asked.get("aged") == "1" or not same_freezes:
            # Deadlines have come nearer and freezes stand on rows: every row is told anew.
            touched = tuple(dict.fromkeys((*found.refs, *shown)))
        parts = queuepage.news(reader, queuepage.asked_of(reader), shown=shown, touched=touched)
        answer = stamped(reader, part(reader, "handoffs/news.html", parts))
        if not same_freezes:
            answer.content += freeze_banner(reader)
    answer.headers["X-Cursor"] = found.cursor
    answer.headers["X-Viewers"] = quote(json.dumps(_viewing(reader, shown)))
    return answer


def _viewing(reader: Reader, shown: list[str]) -> dict[str, dict[str, object]]:
    """Who else looks at which row, in words; the row itself knows whether that is its owner alone."""
    return {
        ref: {
            "who": [who for who, __ in people if who != reader.actor.id],
            "says": words.viewing(people, owner="", reader=reader.actor.id),
        }
        for ref, people in viewers(shown).items()
    }


@require_POST
@reads()
def save(reader: Reader) -> HttpResponse:
    """Keep what is shown under a name; the page of the view, or the form again with what is wrong."""
    posted = reader.request.POST
    view, name, shared = read_query(posted.get("query", "")), posted.get("name", ""), "shared" in posted
    try:
        save_view(actor=reader.actor, person=reader.person, name=name, query=view.query, shared=shared)
    except ValidationError as problem:
        asked = Asked(view=view)
        error = " ".join(problem.messages)
        saving = queuepage.saving_of(reader, asked, (), name=name, error=error, shared=shared)
        shown = queuepage.context(reader, asked, saving=saving)
        return render(reader, "handoffs/queue.html", shown, section="queue", status=422)
    except Refused as error:
        return refused(reader, 403, sentence=str(error.refusal.sentence))
    return redirect(words.address(view))


@require_POST
@reads(None)
def delete(reader: Reader, view_id: int) -> HttpResponse:
    """Take a saved view away; back to where it was asked from."""
    try:
        delete_view(actor=reader.actor, person=reader.person, view_id=view_id)
    except Refused as error:
        return refused(reader, 403, sentence=str(error.refusal.sentence))
    return redirect("account" if reader.request.POST.get("from") == "account" else "queue")


@require_http_methods(["GET", "POST"])
@reads()
def claim(reader: Reader, ref: str) -> HttpResponse:
    """Claim a case from its row; the ticket carries the version seen and the id of this very click.

    Without JavaScript it leads to the case, which says why where the claim was refused; so does the address alone.
    """
    if reader.request.method == "GET":
        return redirect("case", ref)
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
    if result.accepted and not reader.htmx:
        return redirect("case", ref)
    seen = picture(ref)
    if not reader.htmx:
        note = results.claim_refused(result, reader=reader.actor.id, clock=reader.clock)
        shown = context(reader, seen, Wish(result=note))
        return render(reader, "handoffs/case.html", shown, section="queue", status=result.http_status)
    owner = case_words.owner(seen.handoff, reader=reader.actor.id, clock=reader.clock)
    problem = results.unclaimed(result, reader=reader.actor.id, clock=reader.clock)
    closed = seen.handoff.resolved_at is not None
    cell = words.claimable(owner, ref=ref, version=seen.facts.version, closed=closed)
    told = {"owner": cell, "problem": None if result.accepted else problem}
    return part(reader, "handoffs/owner.html", told, status=result.http_status)
