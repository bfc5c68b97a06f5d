"""The handoff page: read it, look at what an action would do, do it, and see what came of it."""

from __future__ import annotations

from urllib.parse import quote

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods

from sagas import api
from sagas.errors import NotFound
from workbench.commands import COMMANDS, Result, dispatch, fields_of
from workbench.commands.presence import here
from workbench.errors import Answer
from workbench.queries.presence import viewers
from workbench.web import forms
from workbench.web.casepage import Picture, Wish, context, picture, preview_context
from workbench.web.page import Reader, part, reads, render, stamped, unchanged
from workbench.web.presenters import decide, results
from workbench.web.presenters.case import case_url
from workbench.web.presenters.queue import viewing
from workbench.web.presenters.shell import freeze_ids
from workbench.web.views.parts import answered, freeze_banner


@require_GET
@reads()
def case(reader: Reader, ref: str) -> HttpResponse:
    """The page; `act` in the address picks an action, `to` a person for it. Whoever opens it is seen by others."""
    here(person=reader.person, handoff_ref=ref)
    asked = reader.request.GET
    draft = {"person": asked["to"]} if asked.get("to") else {}
    return _page(reader, picture(ref), Wish(pick=asked.get("act"), draft=draft))


@require_http_methods(["GET", "POST"])
@reads()
def preview(reader: Reader, ref: str) -> HttpResponse:
    """What an action would do. A POST brings a draft along, for a page that had gone stale."""
    seen = picture(ref)
    if reader.request.method == "POST":
        pick = reader.request.POST.get("act") or _choice(reader)
        return _page(reader, seen, Wish(pick=pick, draft=_draft(reader, pick.partition(".")[0])))
    pick = reader.request.GET.get("act", "")
    address = f"{case_url(ref)}?{urlencode({'act': pick})}"
    if not reader.htmx:
        return redirect(address)
    answer = part(reader, "handoffs/preview_slot.html", preview_context(reader, seen, Wish(pick=pick)))
    answer.headers["HX-Replace-Url"] = address
    return answer


@require_http_methods(["GET", "POST"])
@reads()
def act(reader: Reader, ref: str) -> HttpResponse:
    """Run a command; the result stands where the action was. Its address alone leads back to the case."""
    if reader.request.method == "GET":
        return redirect("case", ref)
    asked = reader.request.POST
    verb = asked.get("verb", "")
    draft = _draft(reader, verb)
    version = asked.get("saw_version", "")
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        handoff_ref=ref,
        command_id=asked.get("command_id", ""),
        saw_version=int(version) if version.isdecimal() else None,
        arguments=draft,
        preview_id=asked.get("preview_id", ""),
        door="web",
    )
    return answered(
        _page(reader, picture(ref), _after(reader, ref, result, draft), status=result.http_status), result
    )


@require_GET
@reads()
def changes(reader: Reader, ref: str) -> HttpResponse:
    """What is new since the version on the page: nothing, the whole case, or around a draft only what is read."""
    here(person=reader.person, handoff_ref=ref)
    answer = _news(reader, ref)
    answer.headers["X-Viewers"] = quote(also_here(reader, ref))
    return answer


def _news(reader: Reader, ref: str) -> HttpResponse:
    asked = reader.request.GET
    same_freezes = asked.get("freezes", "") in ("", freeze_ids(reader.freezes))
    version, seq = _stamp(ref)
    same_version = str(version) == asked.get("v", "")
    if same_version and same_freezes and asked.get("seq", "") in ("", str(seq)):
        return unchanged(reader)
    seen = picture(ref)
    if same_version and same_freezes and not asked.get("waiting"):
        # A comment or a question without an answer: news to read, but nothing that a decision rests on.
        answer = part(reader, "handoffs/aside.html", context(reader, seen, Wish(pick="")))
        answer.headers["HX-Reswap"] = "none"
    elif asked.get("draft") == "1":
        answer = part(reader, "handoffs/beside.html", context(reader, seen, Wish(pick="")))
        answer.headers["HX-Reswap"] = "none"
    else:
        verb, __, step = asked.get("waiting", "").partition(".")
        came = results.came_of(seen.facts, verb=verb, step=step, clock=reader.clock) if verb else None
        wish = Wish(pick=asked.get("act") or None, result=came)
        kept = asked.get("result") == "1" and came is None
        answer = part(reader, "handoffs/swap.html", {**context(reader, seen, wish), "kept": kept})
    if not same_freezes:
        answer.content += freeze_banner(reader)
    return stamped(reader, answer)


def _stamp(ref: str) -> tuple[int, int]:
    """Version and last entry of a case. Raises Http404."""
    try:
        return api.handoff_stamp(ref)
    except NotFound as error:
        raise Http404(str(error)) from error


def _page(reader: Reader, seen: Picture, wish: Wish, *, status: int = 200) -> HttpResponse:
    shown = context(reader, seen, wish)
    if reader.htmx:
        return part(reader, "handoffs/swap.html", shown, status=status)
    shown["viewers"] = also_here(reader, seen.handoff.ref)
    return render(reader, "handoffs/case.html", shown, section="queue", status=status)


def also_here(reader: Reader, ref: str) -> str:
    """Who else looks at this case just now, in words."""
    return viewing(viewers([ref]).get(ref, ()), owner="", reader=reader.actor.id)


def _after(reader: Reader, ref: str, result: Result, draft: dict[str, object]) -> Wish:
    """What the page shows after a command: the result, and after a refusal the draft and what is wrong with it."""
    asked = reader.request.POST
    shown = results.result(result, step=asked.get("step", ""), url=case_url(ref), clock=reader.clock)
    if result.accepted:
        return Wish(pick="" if result.verb != "comment" else None, result=shown)
    if result.verb == "comment":
        return Wish(result=shown, comment=str(draft.get("text", "")))
    good = result.status is Answer.INVALID and result.code not in ("preview_needed", "preview_of_other")
    return Wish(
        pick=_choice(reader),
        draft=draft,
        errors=result.field_errors,
        preview_id=asked.get("preview_id", "") if good else "",
        held=result.code == "stale",
        result=shown,
    )


def _choice(reader: Reader) -> str:
    asked = reader.request.POST
    return decide.choice_id(asked.get("verb", ""), asked.get("step", ""))


def _draft(reader: Reader, verb: str) -> dict[str, object]:
    """What the form holds for this verb's arguments, step included."""
    if verb not in COMMANDS:
        return {}
    return forms.arguments(fields_of(COMMANDS[verb]), reader.request.POST)
