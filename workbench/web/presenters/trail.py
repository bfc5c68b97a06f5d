"""The decision trail as a page: entries at three depths, and how the case ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import EntryFacts, HandoffFacts, RunFacts
from sagas.states import HandoffState
from workbench.web.presenters import activity, words
from workbench.web.presenters.activity import Told
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Depth:
    """One of the three depths."""

    name: str
    url: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How it ended: the state, how long it took, who took part."""

    icon: str
    state: Words
    span: str
    people: str


@dataclass(frozen=True, kw_only=True)
class Trail:
    """The whole page."""

    ref: str
    case_url: str
    run_ref: str
    run_url: str
    summary: str
    depths: tuple[Depth, ...]
    entries: tuple[Told, ...]
    ending: Ending | None
    next_url: str


def trail(
    facts: RunFacts,
    handoff: HandoffFacts,
    entries: Sequence[EntryFacts],
    *,
    depth: str,
    reader: str,
    clock: Clock,
    full: bool,
) -> Trail:
    """The trail at one depth; `full` when there are more entries than fit a page."""
    every = activity.tell(entries, reader=reader, clock=clock)
    shown = {
        "people": tuple(entry for entry in every if entry.person),
        "every": every,
    }.get(depth) or (() if depth == "people" else activity.gathered(entries, reader=reader, clock=clock))
    base = reverse("trail", args=[handoff.ref])
    names = (
        ("decisions", _("Decisions and effects")),
        ("people", _("People only")),
        ("every", _("Every event ({n})").format(n=len(every))),
    )
    current = depth if depth in ("people", "every") else "decisions"
    last = entries[-1].seq if entries else None
    return Trail(
        ref=handoff.ref,
        case_url=reverse("case", args=[handoff.ref]),
        run_ref=facts.ref,
        run_url=reverse("run", args=[facts.ref]),
        summary=_("Who decided what, when, why, and which version they had in front of them.")
        + " "
        + activity.trail_summary(len(shown)),
        depths=tuple(
            Depth(name=name, url=f"{base}?{urlencode({'show': code})}", current=code == current)
            for code, name in names
        ),
        entries=shown,
        ending=_ending(facts, handoff, entries),
        next_url=f"{base}?{urlencode({'show': current, 'after': last})}" if full and last else "",
    )


def _ending(facts: RunFacts, handoff: HandoffFacts, entries: Sequence[EntryFacts]) -> Ending | None:
    if handoff.state is not HandoffState.RESOLVED or handoff.resolved_at is None:
        return None
    look = words.RUN_STATES[str(facts.state)]
    people = {entry.actor_id for entry in entries if entry.actor_kind == "human"}
    return Ending(
        icon=look.icon,
        state=look.word,
        span=span_words(int((handoff.resolved_at - handoff.opened_at).total_seconds())),
        people=ngettext("{n} person took part", "{n} people took part", len(people)).format(n=len(people)),
    )
