"""Puts the handoff page together: the case, the panel, a preview and a result, from one picture of the run.

Reads through `sagas.api` and `workbench.commands`; the only thing it leaves behind is a stored preview.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _

from sagas import api
from sagas.errors import NotFound
from sagas.facts import HandoffFacts, RunFacts
from sagas.states import Direction
from tools.contract import Json
from workbench import policies
from workbench.commands import Offer, Preview, available, find_preview, make_preview, plan_that_ran
from workbench.errors import Refused
from workbench.queries.people import settlers
from workbench.web import forms
from workbench.web.page import Reader
from workbench.web.presenters import activity, case, decide, items, plans, results, waiting
from workbench.web.presenters.words import Words

SMALL = ("withdraw_signoff", "reopen", "ask_for_case")
"""Verbs with a form of their own that asks for something, outside the panel's list: nothing goes out by them."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a page should show beside the case: a picked action, a draft, what was wrong, a result.

    `pick` None lets the page pick a read; `preview_id` keeps a preview that is still good; with `held` the
    draft stays, but cannot be run until the new version is used.
    """

    pick: str | None = None
    draft: Mapping[str, object] = field(default_factory=dict)
    errors: Mapping[str, Words] = field(default_factory=dict)
    preview_id: str = ""
    held: bool = False
    comment: str = ""
    result: results.Shown | None = None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The facts a page is made from, with the handoff asked for."""

    facts: RunFacts
    handoff: HandoffFacts


def picture(ref: str) -> Picture:
    """The facts of a handoff. Raises Http404."""
    try:
        facts = api.handoff_facts(ref)
    except NotFound as error:
        raise Http404(str(error)) from error
    if facts.handoff is None:
        raise Http404(ref)
    return Picture(facts=facts, handoff=facts.handoff)


def context(reader: Reader, seen: Picture, wish: Wish) -> dict[str, Any]:
    """Everything the templates of the case need."""
    facts = seen.facts
    offers = available(facts, reader.actor, reader.person)
    shown_case = case.case(
        facts,
        seen.handoff,
        reader=reader.actor.id,
        clock=reader.clock,
        level=str(policies.risk(facts)),
        strip=api.strip(facts),
        changed=frozenset(str(one.what) for one in wish.result.changes) if wish.result else (),
    )
    entries = api.entries(facts.ref, newest=True)
    asked = case.asked(seen.handoff, entries, reader=reader.actor.id, clock=reader.clock)
    pick = _pick(offers, wish)
    panel = decide.panel(
        offers,
        picked=pick,
        draft=wish.comment,
        closed=shown_case.closed,
        mine=shown_case.owner.mine,
        held=not (shown_case.owner.mine or shown_case.owner.nobody),
        small=_small(offers, wish),
    )
    return {
        "case": shown_case,
        "decide": panel,
        "asked": asked,
        "waiting": waiting.waiting(facts, reader.clock),
        "plan_url": _plan_url(facts),
        "activity": activity.activity(entries, reader=reader.actor.id, clock=reader.clock),
        "seq": entries[-1].seq if entries else 0,
        "result": wish.result,
        **_preview(reader, facts, offers, pick, wish),
    }


def _plan_url(facts: RunFacts) -> str:
    """The plan that was ordered last, where the run goes back by one."""
    if facts.direction is Direction.FORWARD:
        return ""
    ran = plan_that_ran(facts.ref)
    return plans.plan_url(ran) if ran else ""


def _small(offers: tuple[Offer, ...], wish: Wish) -> dict[str, tuple[forms.Field, ...]]:
    """The fields of the forms that need no preview, with what was written in them."""
    return {
        offer.verb: forms.fields(
            offer.fields,
            draft=wish.draft if wish.pick == offer.verb else {},
            errors=wish.errors if wish.pick == offer.verb else {},
        )
        for offer in offers
        if offer.verb in SMALL
    }


def preview_context(reader: Reader, seen: Picture, wish: Wish) -> dict[str, Any]:
    """What the preview alone needs."""
    offers = available(seen.facts, reader.actor, reader.person)
    address = {"url": case.case_url(seen.handoff.ref), "plan_url": case.plan_url(seen.handoff.ref)}
    return {"case": address, **_preview(reader, seen.facts, offers, _pick(offers, wish), wish)}


def _pick(offers: tuple[Offer, ...], wish: Wish) -> str:
    """The picked action; what cannot be done any more stays picked only to keep its draft."""
    if wish.pick is None:
        return next((_id(offer) for offer in offers if offer.allowed and offer.verb == decide.READ_ONLY), "")
    return wish.pick if any(_id(offer) == wish.pick for offer in offers) else ""


def _id(offer: Offer) -> str:
    return decide.choice_id(offer.verb, offer.step)


def _preview(
    reader: Reader, facts: RunFacts, offers: tuple[Offer, ...], pick: str, wish: Wish
) -> dict[str, Any]:
    offer = next((offer for offer in offers if _id(offer) == pick), None)
    if offer is None or not offer.needs_preview:
        return {"preview": None, "held": None}
    if wish.held or not offer.allowed:
        return {"preview": None, "held": _held(offer, facts, wish)}
    try:
        made, wish = _made(reader, facts, offer, wish)
    except Refused:
        return {"preview": None, "held": _held(offer, facts, wish)}
    return {"preview": _shown(made, offer, facts, wish, reader), "held": None}


def _made(reader: Reader, facts: RunFacts, offer: Offer, wish: Wish) -> tuple[Preview, Wish]:
    """The preview that is still good, or a new one for the draft; of a draft that does not fit one of the step as it
    is, with what is wrong. Raises Refused.
    """
    known = find_preview(wish.preview_id, actor=reader.actor)
    if known is not None:
        return known, wish
    make = partial(
        make_preview,
        actor=reader.actor,
        person=reader.person,
        facts=facts,
        verb=offer.verb,
        step=offer.step,
    )
    try:
        return make(arguments=wish.draft), wish
    except Refused as error:
        if not error.refusal.fields:
            raise
        return make(), replace(wish, errors={**error.refusal.fields, **wish.errors})


def _shown(made: Preview, offer: Offer, facts: RunFacts, wish: Wish, reader: Reader) -> decide.Shown:
    draft = wish.draft if made.args_after is None else {"args": pretty(made.args_after), **wish.draft}
    if "items" not in draft:
        draft = {**draft, **_picked_beforehand(made.verb, facts, made.step)}
    fields = forms.fields(offer.fields, draft=draft, errors=wish.errors, choices=_choices(made, facts))
    return decide.shown(
        made, label=decide.label(offer), clock=reader.clock, fields=fields, command_id=uuid.uuid4().hex
    )


def _picked_beforehand(verb: str, facts: RunFacts, step: str) -> dict[str, object]:
    """A retry picks what passes by itself, unless there is nothing else; to accept something is for a person to pick."""
    if verb == "accept_items":
        return {"items": ()}
    safe = items.safe_to_retry(facts, step) if verb == "retry" else []
    return {"items": safe} if safe else {}


def pretty(document: Json) -> str:
    """A document as the text of a form."""
    return json.dumps(document, ensure_ascii=False, indent=2)


def _choices(made: Preview, facts: RunFacts) -> dict[str, list[tuple[str, Words]]]:
    """What can be chosen: end states by how they hold, people, parts of a step."""
    return {
        "end_state": decide.met_ends(made),
        "person": list(settlers()) if made.verb == "assign" else [],
        "items": _items(made.verb, facts, made.step) if _has_items(made, facts) else [],
    }


def _has_items(made: Preview, facts: RunFacts) -> bool:
    return made.verb in ("skip_compensation", "accept_items") or any(call.items for call in made.calls)


def _items(verb: str, facts: RunFacts, step: str) -> list[tuple[str, Words]]:
    """The parts of a step that an action can be about."""
    return items.not_made_up_for(facts, step) if verb == "skip_compensation" else items.refused(facts, step)


def _held(offer: Offer, facts: RunFacts, wish: Wish) -> dict[str, Any] | None:
    """The draft of an action that cannot be run as it is, so that nothing written is lost."""
    if not wish.draft:
        return None
    return {
        "verb": offer.verb,
        "step": offer.step,
        "title": decide.label(offer),
        "icon": decide.ICONS.get(offer.verb, "dots"),
        "version": facts.version,
        "fields": forms.fields(
            offer.fields,
            draft=wish.draft,
            errors=wish.errors,
            choices={"items": _items(offer.verb, facts, offer.step) if "items" in wish.draft else []},
        ),
        "why": _("Switched off until you use version {n} above.").format(n=facts.version)
        if offer.allowed
        else offer.sentence,
    }
