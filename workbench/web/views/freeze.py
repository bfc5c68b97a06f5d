"""Freeze and lift: what is held back now, by whom and why, and the forms for both."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from sagas import api
from sagas.facts import FreezeFacts
from workbench.commands import SYSTEM_COMMANDS, Result, dispatch, fields_of
from workbench.policies import Permission, why_not_lift, why_not_permitted
from workbench.web import forms
from workbench.web.page import Reader, reads, render
from workbench.web.presenters import freeze as words
from workbench.web.presenters import results


@require_GET
@reads(None)
def freeze(reader: Reader) -> HttpResponse:
    """What is frozen, and what can be done about it."""
    return _page(reader)


@require_POST
@reads(None)
def act(reader: Reader, verb: str) -> HttpResponse:
    """Freeze or lift."""
    asked = reader.request.POST
    draft = forms.arguments(fields_of(SYSTEM_COMMANDS[verb].arguments), asked)
    result = dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        command_id=asked.get("command_id", ""),
        arguments=draft,
        door="web",
    )
    reader.__dict__.pop("freezes", None)
    return _page(reader, result, draft)


def _page(
    reader: Reader, result: Result | None = None, draft: dict[str, object] | None = None
) -> HttpResponse:
    failed = result if result and not result.accepted else None
    place = _place(reader, draft)
    first = {"applies_to": place}
    shown = words.page(
        reader.freezes,
        api.gates(),
        api.freeze_reach(place),
        place=place,
        fields={
            verb: forms.fields(
                fields_of(SYSTEM_COMMANDS[verb].arguments),
                draft=draft if failed and failed.verb == verb else (first if verb == "freeze" else None),
                errors=failed.field_errors if failed and failed.verb == verb else None,
                choices={"scope": words.scopes()},
            )
            for verb in ("freeze", "unfreeze")
        },
        why_not={verb: _why_not(reader, SYSTEM_COMMANDS[verb].permission) for verb in SYSTEM_COMMANDS},
        why_not_lift={freeze.id: _why_not_lift(reader, freeze) for freeze in reader.freezes},
        command_id=uuid.uuid4().hex,
        clock=reader.clock,
    )
    note = results.result(result, step="", url="", clock=reader.clock) if result else None
    status = result.http_status if result else 200
    context = {"freeze": shown, "result": note}
    return render(reader, "account/freeze.html", context, section="freeze", status=status)


def _place(reader: Reader, draft: dict[str, object] | None) -> str:
    """The place whose runs are counted: the one asked about, all where there is no such place."""
    asked = str((draft or {}).get("applies_to") or reader.request.GET.get("applies_to") or "all")[:200]
    return asked if "\x00" not in asked and api.is_place(asked) else "all"


def _why_not(reader: Reader, permission: Permission) -> str:
    refusal = why_not_permitted(actor=reader.actor, roles=reader.roles, permission=permission)
    return str(refusal.sentence) if refusal else ""


def _why_not_lift(reader: Reader, freeze: FreezeFacts) -> str:
    refusal = why_not_lift(actor=reader.actor, freeze=freeze)
    return _why_not(reader, Permission.UNFREEZE) or (str(refusal.sentence) if refusal else "")
