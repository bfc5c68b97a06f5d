"""Freeze and lift: what is held back now, by whom and why, and the forms for both."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from sagas import api
from sagas.facts import FreezeFacts, FreezeReach
from workbench.commands import SYSTEM_COMMANDS, ArgumentField, Result, dispatch, fields_of
from workbench.policies import Permission, why_not_lift, why_not_permitted
from workbench.web import forms
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import freeze as words
from workbench.web.presenters import results
from workbench.web.views.parts import answered


@require_http_methods(["GET", "POST"])
@reads(None)
def freeze(reader: Reader) -> HttpResponse:
    """What is frozen, and what can be done about it; for htmx only what the form, as it is filled in, would stop.

    A POST brings a draft along and sends nothing: that is how it is counted again without JavaScript.
    """
    if reader.htmx:
        return HttpResponse(words.stops(_reach(*_asked(reader.request.GET))))
    if reader.request.method == "POST":
        return _page(reader, draft=forms.arguments(_fields("freeze"), reader.request.POST))
    scope, place = _asked(reader.request.GET)
    draft = {"scope": scope, "applies_to": place if _is_place(place) else "all"}
    return _page(reader, draft=draft)


@require_POST
@reads(None)
def act(reader: Reader, verb: str) -> HttpResponse:
    """Freeze or lift."""
    asked = reader.request.POST
    draft = forms.arguments(fields_of(SYSTEM_COMMANDS[verb]), asked)
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        command_id=asked.get("command_id", ""),
        arguments=draft,
        door="web",
    )
    reader.__dict__.pop("freezes", None)
    return answered(_page(reader, result, draft=draft), result)


def _page(reader: Reader, result: Result | None = None, *, draft: Mapping[str, object]) -> HttpResponse:
    """`draft` belongs to the command that was refused; to the form that freezes where none was."""
    verb = result.verb if result else "freeze"
    kept = {} if result and result.accepted else draft
    scope, place = _asked(kept if verb == "freeze" else {})
    drafts: dict[str, Mapping[str, object]] = {"freeze": {"scope": scope, "applies_to": place}}
    drafts[verb] = {**drafts.get(verb, {}), **kept}
    shown = words.page(
        reader.freezes,
        api.gates(),
        _reach(scope, place),
        place=place,
        fields={
            name: forms.fields(
                _fields(name),
                draft=drafts.get(name),
                errors=result.field_errors if result and name == verb else None,
                choices={"scope": words.scopes()},
            )
            for name in ("freeze", "unfreeze")
        },
        why_not={name: _why_not(reader, SYSTEM_COMMANDS[name].permission) for name in SYSTEM_COMMANDS},
        why_not_lift={freeze.id: _why_not_lift(reader, freeze) for freeze in reader.freezes},
        command_id=uuid.uuid4().hex,
        clock=reader.clock,
    )
    note = results.result(result, step="", url="", clock=reader.clock) if result else None
    status = result.http_status if result else 200
    context = {"freeze": shown, "result": note}
    return render(reader, "account/freeze.html", context, section="freeze", status=status)


def _fields(verb: str) -> Sequence[ArgumentField]:
    return fields_of(SYSTEM_COMMANDS[verb])


def _asked(form: Mapping[str, object]) -> tuple[str, str]:
    """What is to be held back and where, as it was written; calls forward, and everywhere, where nothing was."""
    scope, place = str(form.get("scope") or ""), str(form.get("applies_to") or "all")
    known = [code for code, __ in words.scopes()]
    return scope if scope in known else known[0], place[:200]


def _is_place(place: str) -> bool:
    return "\x00" not in place and api.is_place(place)


def _reach(scope: str, place: str) -> FreezeReach | None:
    """What a freeze would stop just now; None where there is no such place."""
    return api.freeze_reach(place, scope) if _is_place(place) else None


def _why_not(reader: Reader, permission: Permission) -> str:
    refusal = why_not_permitted(actor=reader.actor, roles=reader.roles, permission=permission)
    return str(refusal.sentence) if refusal else ""


def _why_not_lift(reader: Reader, freeze: FreezeFacts) -> str:
    refusal = why_not_lift(actor=reader.actor, freeze=freeze)
    return _why_not(reader, Permission.UNFREEZE) or (str(refusal.sentence) if refusal else "")
