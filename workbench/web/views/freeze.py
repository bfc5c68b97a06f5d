"""Freeze and lift: what is held back now, by whom and why, and the forms for both."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from workbench.commands import SYSTEM_COMMANDS, Result, dispatch, fields_of
from workbench.policies import Permission, why_not_permitted
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
    shown = words.page(
        reader.freezes,
        fields={
            verb: forms.fields(
                fields_of(command.arguments),
                draft=draft if failed and failed.verb == verb else None,
                errors=failed.field_errors if failed and failed.verb == verb else None,
                choices={"scope": words.scopes()},
            )
            for verb, command in SYSTEM_COMMANDS.items()
        },
        why_not={verb: _why_not(reader, SYSTEM_COMMANDS[verb].permission) for verb in SYSTEM_COMMANDS},
        command_id=uuid.uuid4().hex,
        clock=reader.clock,
        applies_to=_where(reader),
    )
    note = results.result(result, step="", url="", clock=reader.clock) if result else None
    status = result.http_status if result else 200
    context = {"freeze": shown, "result": note}
    return render(reader, "account/freeze.html", context, section="freeze", status=status)


def _why_not(reader: Reader, permission: Permission) -> str:
    refusal = why_not_permitted(actor=reader.actor, roles=reader.roles, permission=permission)
    return str(refusal.sentence) if refusal else ""


def _where(reader: Reader) -> str:
    """The place that a link to this page names; the command itself judges it."""
    asked = reader.request.POST.get("applies_to") or reader.request.GET.get("applies_to", "")
    return asked if asked.startswith(("tool:", "workflow:", "team:")) and len(asked) <= 200 else "all"
