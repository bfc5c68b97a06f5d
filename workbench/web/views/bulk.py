"""Many cases at once: the selection becomes a frozen list, the list a bulk, the bulk a page and a report."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from sagas import api
from sagas.errors import NotFound
from workbench.bulks import Chosen, freeze_list, report
from workbench.commands import (
    SYSTEM_COMMANDS,
    ArgumentField,
    Kind,
    Result,
    bulk_codes,
    dismiss_bulk,
    dispatch,
    fields_of,
)
from workbench.errors import HTTP_STATUS, Refused
from workbench.policies import IN_BULK, Permission, why_not_permitted
from workbench.queries import bulks
from workbench.queries.bulks import BulkFacts, BulkState, MemberState
from workbench.queries.people import settlers
from workbench.web import forms
from workbench.web.page import Reader, part, reads, refused, render, stamped, unchanged
from workbench.web.presenters import bulk as words
from workbench.web.presenters import bulk_list, results
from workbench.web.presenters.words import Words

_NEEDED = {"assign": "person", "mark_acceptable": "end_state"}
_OPTIONAL = frozenset({"bulk", "count", "person", "end_state", "per_second"})


@require_http_methods(["GET", "POST"])
@reads()
def bulk(reader: Reader) -> HttpResponse:
    """The bulks that were started; a selection that is posted becomes a list of its own, which nothing changes."""
    if reader.request.method == "GET":
        lines = words.lines(bulks.recent(), reader.clock)
        return render(reader, "bulk/list.html", {"lines": lines}, section="queue")
    asked = reader.request.POST
    verb = asked.get("verb", "") or IN_BULK[0]
    cases = [_chosen(one) for one in asked.getlist("case")]
    try:
        ref = freeze_list(actor=reader.actor, person=reader.person, verb=verb, cases=cases)
    except Refused as error:
        refusal = error.refusal
        return refused(reader, HTTP_STATUS[refusal.answer], sentence=str(refusal.sentence))
    return redirect("bulk-list", ref)


@require_GET
@reads()
def line(reader: Reader) -> HttpResponse:
    """The lines of bulks above the queue, where they are others than the page says."""
    lines = words.lines(bulks.on_the_queue(reader.actor.id), reader.clock, reader=reader.actor.id)
    context = words.above_the_queue(lines)
    if context["bulk_seen"] == reader.request.GET.get("lines", ""):
        return unchanged(reader)
    return stamped(reader, part(reader, "bulk/line.html", context))


@require_POST
@reads()
def dismiss(reader: Reader, ref: str) -> HttpResponse:
    """Take one's own line off the queue."""
    dismiss_bulk(ref, actor=reader.actor)
    return redirect("queue")


def _chosen(value: str) -> Chosen:
    """REF:VERSION as a checkbox sends it; without a version the case as it is now."""
    ref, __, version = value.partition(":")
    known = version.isascii() and version.isdecimal() and len(version) < 10
    return Chosen(handoff_ref=ref[:100], version=int(version) if known else None)


@require_GET
@reads()
def one(reader: Reader, ref: str) -> HttpResponse:
    """The list before it is started, or how far it is and what became of each."""
    return _page(reader, _facts(ref))


@require_GET
@reads()
def changes(reader: Reader, ref: str) -> HttpResponse:
    """How far it is, where that is not what the page says already."""
    facts = _facts(ref)
    if facts.state is BulkState.FROZEN or words.seen(facts) == reader.request.GET.get("seen", ""):
        return unchanged(reader)
    context = {"bulk": _progress(reader, facts, None), "said": True}
    return stamped(reader, part(reader, "bulk/body.html", context))


@require_POST
@reads()
def act(reader: Reader, ref: str, verb: str) -> HttpResponse:
    """Start, pause, continue or stop."""
    asked = reader.request.POST
    draft = forms.arguments(fields_of(SYSTEM_COMMANDS[verb]), asked) | {"bulk": ref}
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        command_id=asked.get("command_id", ""),
        arguments=draft,
        door="web",
    )
    if result.accepted:
        return redirect("bulk-list", ref)
    return _page(reader, _facts(ref), result, draft)


@require_GET
@reads()
def report_(reader: Reader, ref: str, form: str) -> HttpResponse:
    """Every case of it with its result and how it stands now, as a file; that it was taken is on record."""
    facts = _facts(ref)
    lines = report.taken(facts, actor=reader.actor, form=form)
    kind = "text/csv" if form == "csv" else "application/jsonl"
    answer = HttpResponse("".join(lines), content_type=f"{kind}; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{facts.ref}.{form}"'
    return answer


def _facts(ref: str) -> BulkFacts:
    try:
        return bulks.bulk(ref)
    except NotFound as error:
        raise Http404(str(error)) from error


def _page(
    reader: Reader, facts: BulkFacts, result: Result | None = None, draft: Mapping[str, object] | None = None
) -> HttpResponse:
    note = results.result(result, step="", url="", clock=reader.clock) if result else None
    status = result.http_status if result else 200
    context: dict[str, object] = {"result": note, "command_id": uuid.uuid4().hex}
    if facts.state is BulkState.FROZEN:
        context["bulk"] = _frozen(reader, facts, result, draft)
        return render(reader, "bulk/frozen.html", context, section="queue", status=status)
    context["bulk"] = _progress(reader, facts, result, draft)
    return render(reader, "bulk/progress.html", context, section="queue", status=status)


def _frozen(
    reader: Reader, facts: BulkFacts, result: Result | None, draft: Mapping[str, object] | None
) -> bulk_list.Frozen:
    members = list(bulks.every_member(facts.ref))
    errors = dict(result.field_errors) if result and not result.accepted else None
    chosen: dict[str, list[tuple[str, Words]]] = {"person": [(who, name) for who, name in settlers()]}
    if facts.verb == "mark_acceptable":
        first = next((one for one in members if one.state is MemberState.WAITING), None)
        states = () if first is None else api.run_facts(first.run_ref).definition.end_states
        chosen["end_state"] = [(state.id, state.title) for state in states]
    return bulk_list.frozen(
        facts,
        members,
        fields=tuple(
            bulk_list.worded(field, facts)
            for field in forms.fields(_asked(facts), draft=draft, errors=errors, choices=chosen)
        ),
        why_not=_why_not(reader),
        clock=reader.clock,
    )


def _asked(facts: BulkFacts) -> list[ArgumentField]:
    """What this list asks for: a reason always, the rest where it belongs to the verb or to what is touched."""
    wanted = {_NEEDED.get(facts.verb, ""), "count" if facts.typed is not None else ""}
    codes = tuple(str(code) for code in bulk_codes(facts.verb))
    asked = [
        replace(field, choices=codes) if field.kind is Kind.REASON_CODE else field
        for field in fields_of(SYSTEM_COMMANDS["bulk_start"])
        if field.name not in _OPTIONAL or field.name in wanted
    ]
    # The number is typed last, when everything else has been read and written.
    return sorted(asked, key=lambda field: field.name == "count")


def _progress(
    reader: Reader, facts: BulkFacts, result: Result | None, draft: Mapping[str, object] | None = None
) -> words.Progress:
    shown = reader.request.GET.get("show", "")
    shown = shown if shown in {str(state) for state in MemberState} else ""
    members = bulks.members(facts.ref, states=(shown,) if shown else (), limit=words.SHOWN)
    left = bulks.members(facts.ref, states=(MemberState.UNTOUCHED,), limit=1000)
    errors = dict(result.field_errors) if result and not result.accepted else None
    asked = [field for field in fields_of(SYSTEM_COMMANDS["bulk_stop"]) if field.name != "bulk"]
    return words.progress(
        facts,
        members,
        left,
        shown=shown,
        hold_fields=forms.fields(asked, draft=draft if errors else None, errors=errors),
        why_not=_why_not(reader),
        clock=reader.clock,
    )


def _why_not(reader: Reader) -> str:
    refusal = why_not_permitted(actor=reader.actor, roles=reader.roles, permission=Permission.BULK)
    return str(refusal.sentence) if refusal else ""
