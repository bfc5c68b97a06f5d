"""The recovery plan of a case: make one, read it, leave a step out, run it, pause it and let it go on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods

from sagas import api
from sagas.facts import RunFacts
from workbench import policies
from workbench.commands import (
    COMMANDS,
    FALLEN,
    Plan,
    Result,
    dispatch,
    fields_of,
    find_plan,
    find_preview,
    make_plan,
    make_preview,
    read_again,
)
from workbench.errors import HTTP_STATUS, Answer, Refused
from workbench.web import forms
from workbench.web.casepage import picture
from workbench.web.page import STOP_POLLING, Reader, part, reads, refused, render, stamped, unchanged
from workbench.web.presenters import decide, plans, results
from workbench.web.presenters.case import case_url
from workbench.web.presenters.words import Words
from workbench.web.views.parts import answered

ORDER, PAUSE, GO_ON = "compensate", "pause_compensation", "continue_compensation"
_SHAPE = ("leave_out", "why_left_out")
_SAID = ("reason", "reason_code")


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """What the page shows beside the plan: drafts, what was wrong with them, and what came of a command.

    `fallen`: it was refused because of what it rests on, which is told.
    """

    draft: Mapping[str, object] = field(default_factory=dict)
    errors: Mapping[str, Words] = field(default_factory=dict)
    preview_id: str = ""
    result: results.Shown | None = None
    fallen: bool = False


@require_http_methods(["GET", "POST"])
@reads()
def new(reader: Reader, ref: str) -> HttpResponse:
    """Make a plan and show it. A POST says what is left out, or brings a reason along from an older plan."""
    facts = picture(ref).facts
    asked = reader.request.POST
    leave_out, why = tuple(asked.getlist("leave_out")), asked.get("why_left_out", "").strip()
    try:
        plan = make_plan(
            actor=reader.actor, person=reader.person, facts=facts, leave_out=leave_out, why_left_out=why
        )
    except Refused as error:
        return _not_made(reader, ref, error)
    address = plans.plan_url(plan)
    if reader.request.method == "GET":
        return redirect(address)
    answer = _page(
        reader, plan, api.run_facts(facts.ref), _Wish(draft={name: asked.get(name, "") for name in _SAID})
    )
    answer.headers["HX-Push-Url"] = address
    return answer


def _not_made(reader: Reader, ref: str, error: Refused) -> HttpResponse:
    """Why there is no such plan: beside the form it was asked for in, else where the action is switched off."""
    refusal, asked = error.refusal, reader.request.POST
    older = find_plan(asked.get("from", ""), handoff_ref=ref)
    if older is not None and refusal.fields:
        said: Mapping[str, Words] = {name: str(says) for name, says in refusal.fields.items()}
        draft = {name: asked.getlist(name) if name == "leave_out" else asked[name] for name in asked}
        facts = picture(ref).facts
        return _page(reader, older, facts, _Wish(draft=draft, errors=said), status=422)
    if reader.request.method == "POST":
        return refused(reader, HTTP_STATUS[refusal.answer], sentence=str(refusal.sentence))
    return redirect(f"{case_url(ref)}?{urlencode({'act': ORDER})}")


@require_GET
@reads()
def plan(reader: Reader, ref: str, plan_id: str) -> HttpResponse:
    """The page of one plan."""
    found, facts = _found(ref, plan_id)
    return _page(reader, found, facts, _Wish())


@require_GET
@reads()
def changes(reader: Reader, ref: str, plan_id: str) -> HttpResponse:
    """The page again when something is new; 204 when nothing is, 286 once nothing further comes of it."""
    found, facts = _found(ref, plan_id)
    last = api.entries(facts.ref, newest=True, limit=1)
    now = _stamp(found, facts, last[-1].seq if last else 0)
    if reader.request.GET.get("v", "") == now:
        return unchanged(reader)
    over = plans.state_of(found, facts) in ("stopped", "ended")
    answer = _page(reader, found, facts, _Wish(), status=STOP_POLLING if over else 200)
    return stamped(reader, answer)


@require_http_methods(["GET", "POST"])
@reads()
def act(reader: Reader, ref: str, plan_id: str) -> HttpResponse:
    """Order what the plan says, pause it, or let it go on. The address alone leads back to the plan."""
    if reader.request.method == "GET":
        return redirect("plan", ref, plan_id)
    found, facts = _found(ref, plan_id)
    asked = reader.request.POST
    verb = asked.get("verb", ORDER)
    if verb not in (ORDER, PAUSE, GO_ON):
        raise Http404(verb)
    draft = forms.arguments(fields_of(COMMANDS[verb]), asked)
    result = _order(reader, found, draft) if verb == ORDER else _on_run(reader, facts, verb, draft)
    shown = results.result(result, step="", url=plans.plan_url(found), clock=reader.clock)
    good = result.status is Answer.INVALID and result.code == "invalid"
    wish = _Wish(
        draft={} if result.accepted else draft,
        errors={} if result.accepted else result.field_errors,
        preview_id=asked.get("preview_id", "") if good else "",
        # What is stale here is answered by a new plan, which the page offers by itself.
        result=replace(shown, use="", use_url="", on_top=True),
        fallen=result.code == FALLEN,
    )
    return answered(_page(reader, *_found(ref, plan_id), wish, status=result.http_status), result)


def _order(reader: Reader, found: Plan, draft: Mapping[str, object]) -> Result:
    """Run the plan under its own id, with what it leaves out: a second click finds the first one's receipt."""
    shape = {"leave_out": list(found.leave_out), "why_left_out": found.why_left_out}
    arguments = {name: value for name, value in draft.items() if name not in (*_SHAPE, "steps")}
    return dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=ORDER,
        handoff_ref=found.preview.handoff_ref,
        command_id=found.id,
        saw_version=found.preview.version,
        arguments={**arguments, **(shape if found.leave_out else {})},
        preview_id=found.id,
        door="web",
    )


def _on_run(reader: Reader, facts: RunFacts, verb: str, draft: Mapping[str, object]) -> Result:
    asked = reader.request.POST
    return dispatch(
        actor=reader.actor,
        person=reader.person,
        verb=verb,
        run_ref=facts.ref,
        command_id=asked.get("command_id", ""),
        arguments=draft,
        preview_id=asked.get("preview_id", ""),
        door="web",
    )


def _found(ref: str, plan_id: str) -> tuple[Plan, RunFacts]:
    """A plan with the facts of its run as they are now. Raises Http404."""
    facts = picture(ref).facts
    found = find_plan(plan_id, handoff_ref=ref)
    if found is None:
        raise Http404(plan_id)
    return found, api.run_facts(facts.ref)


def _stamp(found: Plan, facts: RunFacts, seq: int | None) -> str:
    held = plans.held_by(found, facts)
    return f"{facts.version}.{seq or 0}.{plans.state_of(found, facts)}.{held.id if held else 0}"


def _page(reader: Reader, found: Plan, facts: RunFacts, wish: _Wish, *, status: int = 200) -> HttpResponse:
    entries = api.entries(facts.ref, newest=True)
    shown = plans.page(
        found,
        facts,
        entries,
        reader=reader.actor.id,
        clock=reader.clock,
        level=str(policies.risk(facts)),
        # Only what nobody can order any more is read again: a plan that is ready is read for when it is made and ordered.
        fallen=read_again(found, facts) if wish.fallen or plans.state_of(found, facts) == "void" else (),
    )
    context: dict[str, Any] = {
        "plan": shown,
        "result": wish.result,
        "v": _stamp(found, facts, entries[-1].seq if entries else 0),
        "reason": _reason(ORDER, wish),
        "leaving": _leaving(reader, facts, found, wish) if shown.state == "ready" else None,
        "pause_id": uuid.uuid4().hex if shown.state == "running" else "",
        "pause_why": _why_not(reader, facts, PAUSE) if shown.state == "running" else "",
        "going_on": _going_on(reader, facts, wish) if shown.state == "paused" else None,
    }
    if reader.htmx:
        return part(reader, "plans/swap.html", context, status=status)
    return render(reader, "plans/page.html", context, section="queue", status=status)


def _reason(verb: str, wish: _Wish) -> tuple[forms.Field, ...]:
    return forms.fields(fields_of(COMMANDS[verb]), draft=wish.draft, errors=wish.errors)


def _leaving(reader: Reader, facts: RunFacts, found: Plan, wish: _Wish) -> plans.Leaving:
    choices = plans.leaving(facts)
    refusal = policies.why_not_waive(reader.roles)
    asked = [one for one in fields_of(COMMANDS[ORDER]) if one.name in _SHAPE]
    draft = {"leave_out": list(found.leave_out), "why_left_out": found.why_left_out, **wish.draft}
    return plans.Leaving(
        choices=choices,
        why_not=str(refusal.sentence) if refusal else "",
        fields=forms.fields(
            [replace(one, in_plan=False) for one in asked],
            draft=draft,
            errors=wish.errors,
            choices={"leave_out": list(choices)},
        ),
    )


def _why_not(reader: Reader, facts: RunFacts, verb: str) -> str:
    refusal = policies.why_not(actor=reader.actor, roles=reader.roles, facts=facts, verb=verb)
    return str(refusal.sentence) if refusal else ""


def _going_on(reader: Reader, facts: RunFacts, wish: _Wish) -> dict[str, Any]:
    """The form that lets a paused compensation go on, with the calls that are left."""
    try:
        made = find_preview(wish.preview_id, actor=reader.actor) or make_preview(
            actor=reader.actor, person=reader.person, facts=facts, verb=GO_ON
        )
    except Refused as error:
        return {"why": str(error.refusal.sentence), "preview": None}
    command = COMMANDS[GO_ON]
    shown = decide.shown(
        made,
        label=command.label,
        clock=reader.clock,
        fields=_reason(GO_ON, wish),
        command_id=uuid.uuid4().hex,
    )
    return {"why": "", "preview": shown}
