"""Sign-offs: the requests, the sheet of one, and the two things that can be said to it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from sagas import api
from sagas.errors import NotFound
from sagas.facts import SignoffFacts
from sagas.states import PermitState
from workbench import policies
from workbench.commands import SIGNOFF_COMMANDS, dispatch, fields_of, sessions, signoff_offers
from workbench.errors import HTTP_STATUS, Refusal
from workbench.policies import Permission
from workbench.web.page import Reader, part, reads, refused, render, stamped, unchanged
from workbench.web.presenters import results
from workbench.web.presenters import signoff_sheet as sheets
from workbench.web.presenters import signoffs as words
from workbench.web.presenters.words import Words
from workbench.web.views.parts import answered

PAGE = 50


@require_GET
@reads()
def signoffs(reader: Reader) -> HttpResponse:
    """The open requests by expiry, or the decided ones; there is no way to sign several at once."""
    asked = reader.request.GET
    decided, after = asked.get("view") == "decided", asked.get("after", "")[:200]
    try:
        page = api.signoffs(decided=decided, after=after, limit=PAGE)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    may = policies.why_not_permitted(actor=reader.actor, roles=reader.roles, permission=Permission.SIGN)
    locked = {
        row.ref: may or policies.why_not_independent(actor_id=reader.actor.id, signoff=row)
        for row in page.rows
    }
    shown = words.listing(
        page,
        decided=decided,
        open_count=reader.signoffs,
        locked=locked,
        reader=reader.actor.id,
        clock=reader.clock,
        after=after,
    )
    return render(reader, "signoffs/list.html", {"signoffs": shown}, section="signoffs")


@require_GET
@reads()
def news(reader: Reader) -> HttpResponse:
    """Whether the open requests are others than those on the page; 204 when they are the same."""
    asked = reader.request.GET
    changed = words.fingerprint(api.signoffs(limit=PAGE)) != asked.get("since", "")
    if changed == (asked.get("shown", "0") != "0"):
        return unchanged(reader)
    context = {"n": int(changed), "words": words.pill(), "url": words.list_url()}
    return stamped(reader, part(reader, "handoffs/pill.html", context))


@require_GET
@reads()
def signoff(reader: Reader, ref: str) -> HttpResponse:
    """The sheet of one request."""
    return _page(reader, _picture(ref), _Wish())


@require_GET
@reads()
def changes(reader: Reader, ref: str) -> HttpResponse:
    """The sheet again when it says something else now; around a note that is being written, only that it does."""
    asked, seen = reader.request.GET, _picture(ref)
    if sheets.seen(seen) == asked.get("v", ""):
        return unchanged(reader)
    if asked.get("draft") != "1":
        return stamped(reader, _page(reader, seen, _Wish()))
    context = {"n": 1, "words": words.pill(), "url": sheets.url_of(seen)}
    answer = stamped(reader, part(reader, "handoffs/pill.html", context))
    answer.headers["HX-Retarget"] = "#pill"
    return answer


@require_http_methods(["GET", "POST"])
@reads(None)
def decide(reader: Reader, ref: str, verb: str) -> HttpResponse:
    """Sign or reject; the address alone leads back to the sheet. Who may not is refused by the command itself."""
    if reader.request.method == "GET":
        return redirect("signoff", ref)
    asked = reader.request.POST
    version, given = asked.get("saw_version", ""), _given(verb, asked)
    refusal = _why_not_confirmed(reader) if verb == "sign" else None
    if refusal is not None:
        return _not_confirmed(reader, ref, given, refusal)
    done = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        signoff_ref=ref,
        command_id=asked.get("command_id", ""),
        saw_version=int(version) if version.isdecimal() else None,
        arguments={"digest": asked.get("digest", ""), **given},
        door="web",
        confirmed=sessions.is_fresh(reader.request.session),
    )
    if not policies.sees_all_runs(actor=reader.actor, roles=reader.roles):
        return refused(reader, done.http_status, sentence=str(done.sentence))
    wish = _Wish()
    if not done.accepted:
        wrong: dict[str, Words] = {name: str(says) for name, says in done.field_errors.items()}
        wish = _Wish(draft={verb: given}, errors={verb: wrong})
    if verb == "sign" or not wish.errors.get(verb):
        wish = _Wish(draft=wish.draft, errors=wish.errors, result=words.result(done, reader.clock))
    return answered(_page(reader, _picture(ref), wish, status=done.http_status), done)


def _given(verb: str, asked: QueryDict) -> dict[str, str]:
    """What was said with it: the reason, and what else the verb asks a person for."""
    names = [one.name for one in fields_of(SIGNOFF_COMMANDS[verb]) if one.name != "digest"]
    return {name: asked.get(name, "") for name in names}


def _why_not_confirmed(reader: Reader) -> Refusal | None:
    """Make an old login fresh by the password that came along, if one did; why it stays as it is."""
    session, password = reader.request.session, reader.request.POST.get("password", "")
    if not password or not policies.sees_all_runs(actor=reader.actor, roles=reader.roles):
        return None
    if sessions.is_fresh(session):
        return None
    return sessions.confirm(session, actor=reader.actor, person=reader.person, password=password)


def _not_confirmed(reader: Reader, ref: str, given: dict[str, str], refusal: Refusal) -> HttpResponse:
    """The sheet with the note kept, and why the password did not do."""
    wrong: dict[str, Words] = {name: str(says) for name, says in refusal.fields.items()}
    wish = _Wish(draft={"sign": given}, errors={"sign": wrong}, result=words.not_confirmed(refusal))
    return _page(reader, _picture(ref), wish, status=HTTP_STATUS[refusal.answer])


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """What the page shows beside the sheet: drafts and mistakes by verb, and what came of it."""

    draft: dict[str, dict[str, str]] = field(default_factory=dict)
    errors: dict[str, dict[str, Words]] = field(default_factory=dict)
    result: results.Shown | None = None


def _picture(ref: str) -> SignoffFacts:
    try:
        return api.signoff_facts(ref)
    except NotFound as error:
        raise Http404(str(error)) from error


def _page(reader: Reader, seen: SignoffFacts, wish: _Wish, *, status: int = 200) -> HttpResponse:
    open_ = seen.permit.state is PermitState.REQUESTED and seen.permit.expires_at > seen.run.now
    sheet = sheets.sheet(
        seen,
        call=api.signed_call(seen),
        look=api.look_signoff(seen) if open_ else None,
        offers=signoff_offers(seen, reader.actor, reader.person),
        may=policies.why_not_permitted(actor=reader.actor, roles=reader.roles, permission=Permission.SIGN),
        independent=policies.why_not_independent(actor_id=reader.actor.id, signoff=seen),
        reader=reader.actor.id,
        clock=reader.clock,
        ids=(uuid.uuid4().hex, uuid.uuid4().hex),
        draft=wish.draft,
        errors=wish.errors,
        confirmed=sessions.is_fresh(reader.request.session),
    )
    context = {"sheet": sheet, "result": wish.result}
    if reader.htmx:
        return part(reader, "signoffs/swap.html", context, status=status)
    return render(reader, "signoffs/page.html", context, section="signoffs", status=status)
