"""Views of the queue: a filter as a query string and back, the standard ones, and those that people saved.

A view is nothing but a name and a query string, whoever made it: the address of a page says all that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

from django.db.models import Q

from sagas.facts import QueueFilter
from workbench.models import SavedView, User

LONGEST = 200
# What a field of a filter is called in an address, in the order in which it is written.
NAMES = {
    "state": "state",
    "q": "search",
    "workflow": "workflow",
    "tool": "tool",
    "reason": "reason",
    "risk": "level",
    "owner": "owner",
    "touched": "touched",
    "due": "due",
    "similar": "similar",
}


@dataclass(frozen=True, kw_only=True)
class View:
    """What a page of the queue shows: which handoffs, and whether those that are alike are folded together."""

    filter: QueueFilter = field(default_factory=QueueFilter)
    grouped: bool = False

    @property
    def query(self) -> str:
        """As a query string; "" for what is shown when nothing is asked for. Equal views have equal strings."""
        plain = QueueFilter()
        asked = {
            name: getattr(self.filter, attribute)
            for name, attribute in NAMES.items()
            if getattr(self.filter, attribute) != getattr(plain, attribute)
        }
        return urlencode({**asked, **({"group": "similar"} if self.grouped else {})})


STANDARD: Mapping[str, View] = {
    "open": View(),
    "mine": View(filter=QueueFilter(owner="me")),
    "unclaimed": View(filter=QueueFilter(owner="nobody")),
    "unknown": View(filter=QueueFilter(state="unknown")),
    "compensation_failed": View(filter=QueueFilter(state="compensation_failed")),
    "signoff": View(filter=QueueFilter(state="signoff")),
    "money": View(filter=QueueFilter(touched="money")),
    "closed": View(filter=QueueFilter(state="closed")),
}


def read_view(asked: Mapping[str, str]) -> View:
    """The view that an address asks for; `view` names a standard one, from which the rest may differ.

    What is no field is left out; whether a value makes sense is the engine's to say.
    """
    view = STANDARD.get(asked.get("view", ""), STANDARD["open"])
    given = {
        attribute: asked[name].replace("\x00", "").strip()[:LONGEST]
        for name, attribute in NAMES.items()
        if name in asked
    }
    if not given.get("state", "open"):
        given["state"] = "open"
    grouped = asked["group"] == "similar" if "group" in asked else view.grouped
    return View(filter=replace(view.filter, **given), grouped=grouped)


def read_query(query: str) -> View:
    """The view behind a query string."""
    return read_view(dict(parse_qsl(query, keep_blank_values=True)))


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A view that somebody saved; `shared` ones are everybody's."""

    id: int
    name: str
    view: View
    shared: bool
    by: str
    mine: bool


def saved_views(person: User, *, own: bool = False) -> tuple[Saved, ...]:
    """The views that this person sees, everybody's first; with `own` only their personal ones."""
    theirs = Q(shared=False, person=person)
    rows = SavedView.objects.filter(
        theirs if own else theirs | Q(shared=True), deleted_at=None
    ).select_related("person")
    return tuple(
        Saved(
            id=row.pk,
            name=row.name,
            view=read_query(row.query),
            shared=row.shared,
            by=row.person.display_name,
            mine=row.person_id == person.pk,
        )
        for row in rows.order_by("-shared", "name", "pk")
    )
