"""The frame around the queue's rows: tabs with counts, the filter form, what an empty view says, saving a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import QueueChoices, QueueFilter, QueuePage
from workbench.queries.views import STANDARD, Saved, View
from workbench.web.forms import Choice
from workbench.web.presenters import reasons, words
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.queue import (
    Group,
    Row,
    Teller,
    address,
    capped,
    caption,
    load_sentence,
    places,
)
from workbench.web.presenters.words import Words

SMALL, LARGE = 50, 200
"""How many rows a page has, and how many where somebody wants them all at once."""


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A view: its name, how many cases it means, whether it is shown, and where it can be deleted."""

    name: Words
    url: str
    count: str
    current: bool
    shared_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Select:
    """One field of the filter form. `on` where it narrows the view."""

    name: str
    label: Words
    choices: tuple[Choice, ...]
    on: bool


@dataclass(frozen=True, kw_only=True)
class Empty:
    """What stands where no row does: says what was looked at, or that the system is still watching."""

    icon: str
    title: str
    says: str
    url: str
    button: str


@dataclass(frozen=True, kw_only=True)
class Saving:
    """The form that keeps this view, with what was wrong the last time; and what can be deleted here."""

    query: str
    name: str
    error: str
    may_share: bool
    shared: bool
    delete_id: int
    open: bool


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The whole page. `cursor` and `shown` are what a poll asks with; `n` counts what the view means."""

    tabs: tuple[Tab, ...]
    query: str
    search: str
    selects: tuple[Select, ...]
    filters_on: str
    grouped: bool
    group_url: str
    similar: str
    similar_url: str
    caption: str
    load: str
    entries: tuple[Row | Group, ...]
    next_url: str
    next_n: int
    first_url: str
    size_url: str
    fresh_url: str
    changes_url: str
    cursor: str
    empty: Empty | None
    first_run: bool
    open_count: str
    n: str
    checked: str
    frozen_at: str
    saving: Saving
    why_not_many: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an address asks for: a view, and which part of it."""

    view: View
    after: str = ""
    size: int = SMALL
    folded: frozenset[str] = frozenset()

    def url(self, *, after: str = "", size: int | None = None) -> str:
        """The address of another part of the same."""
        rows = self.size if size is None else size
        return address(self.view, fold=self.folded, size=0 if rows == SMALL else rows, after=after)


def filters_of(saved: Iterable[Saved], view: View) -> dict[str, QueueFilter]:
    """What has to be counted: every tab, and the view itself as "" ."""
    return {
        **{code: one.filter for code, one in STANDARD.items()},
        **{f"saved-{one.id}": one.view.filter for one in saved},
        "": view.filter,
    }


def queue(
    page: QueuePage,
    *,
    asked: Asked,
    teller: Teller,
    saved: Sequence[Saved],
    tab_counts: Mapping[str, int],
    load: Mapping[str, int],
    at_stake: Sequence[tuple[str, str]],
    choices: QueueChoices,
    watching: Callable[[], tuple[int, int | None]],
    saving: Saving,
    clock: Clock,
    why_not_many: str = "",
) -> Queue:
    """The page. `watching` tells how many steps are being asked about and in how many seconds next; it is asked for an
    empty view only. `why_not_many` is why this reader cannot settle many cases at once.
    """
    view = asked.view
    tabs = tabs_of(view, saved, tab_counts)
    name = next((tab.name for tab in tabs if tab.current), "")
    entries = teller.entries(page, view=view, folded=asked.folded)
    first_run = not load.get("open") and not load.get("closed")
    selects = selects_of(view.filter, choices)
    on = sum(select.on for select in selects)
    return Queue(
        tabs=tabs,
        query=view.query,
        search=view.filter.search,
        selects=selects,
        filters_on=ngettext("Filters, {n} on", "Filters, {n} on", on).format(n=on) if on else _("Filters"),
        grouped=view.grouped,
        group_url=address(replace(view, grouped=not view.grouped)),
        similar=view.filter.similar,
        similar_url=address(replace(view, filter=replace(view.filter, similar=""))),
        caption=caption(view, name),
        load=load_sentence(load, at_stake),
        entries=entries,
        next_url=asked.url(after=page.after) if page.after else "",
        next_n=asked.size,
        first_url=asked.url() if asked.after else "",
        size_url=asked.url(size=LARGE) if page.after and asked.size == SMALL else "",
        fresh_url=asked.url(after=asked.after),
        changes_url=asked.url(after=asked.after).replace(reverse("queue"), reverse("queue-changes"), 1),
        cursor=page.cursor,
        empty=None if entries or first_run else _empty(view, load, watching),
        first_run=first_run,
        open_count=capped(load.get("open", 0)),
        n=capped(tab_counts.get("", 0)),
        checked=clock.time(page.now),
        frozen_at=page.now.isoformat(timespec="seconds"),
        saving=saving,
        why_not_many=why_not_many,
    )


def tabs_of(view: View, saved: Iterable[Saved], counts: Mapping[str, int]) -> tuple[Tab, ...]:
    """The standard views, those that were saved, and where none of them is shown, this one."""
    tabs = [
        Tab(
            name=words.VIEWS[code],
            url=address(one),
            count=capped(counts.get(code, 0)),
            current=one.filter == view.filter,
        )
        for code, one in STANDARD.items()
    ]
    known = any(tab.current for tab in tabs)
    tabs += [
        Tab(
            name=one.name,
            url=address(one.view),
            count=capped(counts.get(f"saved-{one.id}", 0)),
            current=not known and one.view.filter == view.filter,
            shared_by=_("shared by {who}").format(who=one.by) if one.shared else "",
        )
        for one in saved
    ]
    if not any(tab.current for tab in tabs):
        this = Tab(name=_("This filter"), url=address(view), count=capped(counts.get("", 0)), current=True)
        tabs.append(this)
    return tuple(tabs)


def selects_of(wanted: QueueFilter, choices: QueueChoices) -> tuple[Select, ...]:
    """The fields of the filter form; of names only those that an open case has, and the one that is asked for."""
    return (
        _select("state", _("State"), wanted.state, _states(), plain="open"),
        _select("workflow", _("Workflow"), wanted.workflow, _any(_named(choices.workflows))),
        _select("tool", _("Tool"), wanted.tool, _any(_named(choices.tools))),
        _select(
            "reason",
            _("Reason"),
            wanted.reason,
            _any([(code, reasons.reason_words(code).pill) for code in choices.reasons]),
        ),
        _select(
            "risk",
            _("Risk"),
            wanted.level,
            _any(
                [
                    (code, _("{level} and up").format(level=word))
                    for code, (_n, word, _long) in words.LEVELS.items()
                ]
            ),
        ),
        _select(
            "owner",
            _("Owner"),
            wanted.owner,
            [("", _("anyone")), ("me", _("me")), ("nobody", _("nobody")), *choices.owners],
        ),
        _select(
            "touched",
            _("Touched"),
            wanted.touched,
            _any([("money", _("money")), ("customers", _("customers"))]),
        ),
        _select(
            "due",
            _("Due"),
            wanted.due,
            _any(
                [
                    ("late", _("late")),
                    ("1h", _("within an hour")),
                    ("8h", _("within 8 hours")),
                    ("24h", _("within a day")),
                ]
            ),
        ),
    )


def _select(
    name: str, label: Words, value: str, options: Iterable[tuple[str, Words]], *, plain: str = ""
) -> Select:
    known = list(options)
    if value not in dict(known):
        known.append((value, value))
    choices = tuple(Choice(value=code, label=word, picked=code == value) for code, word in known)
    return Select(name=name, label=label, choices=choices, on=value != plain)


def _any(options: Iterable[tuple[str, Words]]) -> list[tuple[str, Words]]:
    return [("", _("any")), *options]


def _named(names: Iterable[str]) -> list[tuple[str, Words]]:
    return [(name, name) for name in names]


def _states() -> list[tuple[str, Words]]:
    return [
        ("open", _("needs a decision")),
        ("unknown", _("outcome unknown")),
        ("compensation_failed", _("compensation failed")),
        ("signoff", _("waiting for sign-off")),
        ("closed", _("closed")),
        ("any", _("open or closed")),
    ]


def _empty(view: View, load: Mapping[str, int], watching: Callable[[], tuple[int, int | None]]) -> Empty:
    every = _("Show all {n} handoffs").format(n=capped(load.get("open", 0)))
    if view.filter.search:
        return Empty(
            icon="search",
            title=_("Nothing matches “{search}”").format(search=view.filter.search[:80]),
            says=_(
                "Searched case, run, business reference, customer, idempotency key and provider reference in this view."
            ),
            url=address(View(filter=QueueFilter(state="any", search=view.filter.search))),
            button=_("Search open and closed"),
        )
    count, seconds = watching()
    if not count:
        says = _("No step is unknown just now.")
    else:
        steps = ngettext("{n} step is unknown", "{n} steps are unknown", count).format(n=capped(count))
        says = _(
            "The system is still watching: {steps} and being queried automatically. They arrive here only if the "
            "answer stays unknown."
        ).format(steps=steps)
        if seconds is not None:
            says = _(
                "The system is still watching: {steps} and being queried automatically, next check in {span}. They "
                "arrive here only if the answer stays unknown."
            ).format(steps=steps, span=span_words(seconds))
    return Empty(
        icon="inbox",
        title=_("Nothing in this view needs a decision"),
        says=says,
        url=reverse("queue"),
        button=every,
    )


def shown_places(page: QueuePage) -> str:
    """What stands on a page, as one word for the poll to ask with."""
    return ".".join(places(page))
