"""Puts the queue's page together: what an address asks for, the rows, the tabs with their counts, who looks at what.

Reads through `sagas.api` and `workbench.queries`; leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import BadRequest

from sagas import api
from sagas.facts import QueuePage
from workbench.policies import Permission, why_not_permitted
from workbench.queries import bulks
from workbench.queries.presence import viewers
from workbench.queries.views import Saved, read_view, saved_views
from workbench.web.page import Reader
from workbench.web.presenters import bulk
from workbench.web.presenters import queue as words
from workbench.web.presenters import queue_page as frame
from workbench.web.presenters.queue_page import Asked, Saving


def asked_of(reader: Reader) -> Asked:
    """What this request asks for."""
    asked = reader.request.GET
    return Asked(
        view=read_view(asked.dict()),
        after=asked.get("after", "")[:200],
        size=frame.LARGE if asked.get("rows") == str(frame.LARGE) else frame.SMALL,
        folded=frozenset(asked.getlist("fold")[: frame.LARGE]),
    )


def page_of(reader: Reader, asked: Asked) -> QueuePage:
    """The rows. Raises BadRequest for an address that makes no sense."""
    try:
        return api.queue(
            asked.view.filter,
            actor_id=reader.actor.id,
            after=asked.after,
            limit=asked.size,
            grouped=asked.view.grouped,
        )
    except ValueError as error:
        raise BadRequest(str(error)) from error


def unfolded(page: QueuePage, asked: Asked) -> QueuePage:
    """The page without the rows of the groups that the reader folded."""
    groups = tuple(
        replace(group, rows=()) if words.group_id(group.key) in asked.folded else group
        for group in page.groups
    )
    return replace(page, groups=groups)


def teller(reader: Reader, page: QueuePage) -> words.Teller:
    """Who turns the rows of a page into words for this reader."""
    return words.Teller(
        reader=reader.actor.id,
        clock=reader.clock,
        freezes=reader.freezes,
        viewers=viewers(rows_on(page)),
    )


def rows_on(page: QueuePage) -> list[str]:
    """Every case that has a row on a page."""
    return [row.ref for row in page.rows] + [row.ref for group in page.groups for row in group.rows]


def context(reader: Reader, asked: Asked, *, saving: Saving | None = None) -> dict[str, Any]:
    """Everything the templates of the queue need."""
    page = unfolded(page_of(reader, asked), asked)
    saved = saved_views(reader.person)
    tab_counts = api.queue_count(frame.filters_of(saved, asked.view), reader.actor.id)
    refusal = why_not_permitted(actor=reader.actor, roles=reader.roles, permission=Permission.BULK)
    shown = frame.queue(
        page,
        asked=asked,
        teller=teller(reader, page),
        saved=saved,
        tab_counts=tab_counts,
        load=reader.counts,
        at_stake=api.queue_at_stake(),
        choices=api.queue_choices(),
        watching=api.queue_watched,
        saving=saving or saving_of(reader, asked, saved),
        clock=reader.clock,
        why_not_many=str(refusal.sentence) if refusal else "",
    )
    lines = bulk.lines(bulks.on_the_queue(reader.actor.id), reader.clock, reader=reader.actor.id)
    return {
        "queue": shown,
        "shown": frame.shown_places(page),
        **bulk.above_the_queue(lines),
    }


def saving_of(
    reader: Reader,
    asked: Asked,
    saved: Iterable[Saved],
    *,
    name: str = "",
    error: str = "",
    shared: bool = False,
) -> Saving:
    """The form that keeps the view, and what of what is shown this reader may delete."""
    may_share = (
        why_not_permitted(actor=reader.actor, roles=reader.roles, permission=Permission.SHARE_VIEWS) is None
    )
    kept = [one for one in saved if one.view == asked.view and (one.mine if not one.shared else may_share)]
    return Saving(
        query=asked.view.query,
        name=name,
        error=error,
        may_share=may_share,
        shared=shared,
        delete_id=kept[0].id if kept else 0,
        open=bool(error),
    )


def news(reader: Reader, asked: Asked, *, shown: list[str], touched: tuple[str, ...]) -> Mapping[str, Any]:
    """What changes on a page that is shown: rows in place, and what waits for a fresh page."""
    page = unfolded(page_of(reader, asked), asked)
    found = words.difference(shown, words.places(page), touched)
    there = [ref for ref in touched if ref in shown]
    rows, closings = api.queue_rows(there), api.queue_closings(there)
    tell = teller(reader, replace(page, rows=tuple(rows.values()), groups=()))
    kids = {row.ref for group in page.groups for row in group.rows}
    saved = saved_views(reader.person)
    tab_counts = api.queue_count(frame.filters_of(saved, asked.view), reader.actor.id)
    return {
        "rows": tuple(
            tell.row(row, closing=closings.get(ref), left=ref in found.gone, kid=ref in kids)
            for ref, row in rows.items()
        ),
        "n": found.new + found.changed,
        "words": words.pill(found),
        "url": asked.url(after=asked.after),
        "tabs": frame.tabs_of(asked.view, saved, tab_counts),
        "open": words.capped(reader.counts.get("open", 0)),
        "load": words.load_sentence(reader.counts, api.queue_at_stake()),
    }
