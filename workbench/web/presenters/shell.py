"""What surrounds every page: navigation, who is logged in, freezes in force, language and zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from sagas.facts import FreezeFacts
from sagas.readings import StandsStill
from workbench.queries.people import Person
from workbench.web.presenters import marks, words
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.queue import capped
from workbench.web.presenters.words import Words

SHEETS = tuple(
    f"css/{name}.css"
    for name in (
        "tokens",
        "base",
        "icons",
        "components",
        "layout",
        "queue",
        "bulk",
        "case",
        "decide",
        "signoffs",
        "setup",
        "plan",
        "print",
    )
)


@dataclass(frozen=True, kw_only=True)
class NavLink:
    """One entry of the rail."""

    name: str
    url: str
    icon: str
    current: bool
    count: str = ""


@dataclass(frozen=True, kw_only=True)
class NavGroup:
    """A titled group of the rail."""

    name: str
    links: tuple[NavLink, ...]


@dataclass(frozen=True, kw_only=True)
class FreezeBanner:
    """A freeze in force: what, since when, by whom, why, and what still works."""

    id: int
    what: str
    since: str
    reason: str
    still: str
    action: str


@dataclass(frozen=True, kw_only=True)
class Shell:
    """Everything `base.html` needs."""

    lang: str
    env: str
    section: str
    nav: tuple[NavGroup, ...]
    freezes: tuple[FreezeBanner, ...]
    freeze_ids: str
    still: str
    banners: str
    who: str
    """The reader's user name: what their tab keeps for them is nobody else's."""
    person: str
    initials: str
    role: Words
    zone: str
    single_keys: bool
    search: str
    sheets: tuple[str, ...] = SHEETS


def shell(
    *,
    lang: str,
    env: str,
    section: str,
    person: Person | None,
    role: str,
    counts: Mapping[str, int],
    signoffs: int,
    freezes: Iterable[FreezeFacts],
    still: StandsStill | None,
    clock: Clock,
    search: str = "",
) -> Shell:
    """The frame for one reader; without a person only language and freezes remain."""
    in_force = tuple(freezes)
    return Shell(
        lang=lang,
        env=env,
        section=section,
        nav=_nav(section, counts, signoffs) if person else (),
        freezes=tuple(_banner(freeze, clock) for freeze in in_force) if person else (),
        freeze_ids=freeze_ids(in_force),
        still=_still(still) if person else "",
        banners=banners(in_force, still),
        who=person.username if person else "",
        person=person.display_name if person else "",
        initials=marks.initials(person.display_name) if person else "",
        role=words.ROLES.get(role, role),
        zone=person.time_zone if person else "UTC",
        single_keys=person.single_keys if person else True,
        search=search,
    )


def banners(freezes: Iterable[FreezeFacts], still: StandsStill | None) -> str:
    """The banners of a page as one word, for it to say which it shows."""
    return f"{freeze_ids(freezes)}{'' if still is None else '-still'}"


def _still(still: StandsStill | None) -> str:
    if still is None:
        return ""
    if still.silent_s is None:
        return _("Automatic work stands still: no worker runs, and work has waited for {span}.").format(
            span=span_words(int(still.waiting_s))
        )
    return _("Automatic work stands still: no worker has been heard for {span}.").format(
        span=span_words(int(still.silent_s))
    )


def freeze_ids(freezes: Iterable[FreezeFacts]) -> str:
    """The freezes in force as one word, for a page to say which it shows."""
    return ".".join(str(freeze.id) for freeze in freezes) or "0"


def _nav(section: str, counts: Mapping[str, int], signoffs: int) -> tuple[NavGroup, ...]:
    open_ = capped(counts["open"]) if counts.get("open") else ""
    handoffs = NavLink(
        name=_("Handoffs"), url=reverse("queue"), icon="inbox", current=section == "queue", count=open_
    )
    waiting = NavLink(
        name=_("Sign-offs"),
        url=reverse("signoffs"),
        icon="sign",
        current=section == "signoffs",
        count=capped(signoffs) if signoffs else "",
    )
    runs = NavLink(name=_("Runs"), url=reverse("runs"), icon="flow", current=section == "runs")
    pages = (
        ("workflows", _("Workflows"), "doc"),
        ("tools", _("Tools"), "plug"),
        ("system", _("System"), "pulse"),
    )
    set_up = tuple(
        NavLink(name=name, url=reverse(page), icon=icon, current=section == page)
        for page, name, icon in pages
    )
    return (
        NavGroup(name=_("Work"), links=(handoffs, waiting, runs)),
        NavGroup(name=_("Set up"), links=set_up),
    )


def _banner(freeze: FreezeFacts, clock: Clock) -> FreezeBanner:
    return FreezeBanner(
        id=freeze.id,
        what=freeze_what(freeze),
        since=_("since {at} by {who}:").format(at=clock.short(freeze.at), who=freeze.by),
        reason=freeze.reason,
        still=_("Reading and status queries still work."),
        action=_("What is stopped"),
    )


def freeze_what(freeze: FreezeFacts) -> str:
    """What a freeze holds back, as a sentence's start."""
    if freeze.applies_to == "all":
        known = {
            "forward": _("All forward calls are frozen"),
            "writes": _("All calls that change something are frozen"),
            "everything": _("Everything is frozen"),
        }
        return known.get(freeze.scope, freeze.scope)
    known = {
        "forward": _("Forward calls of {where} are frozen"),
        "writes": _("Calls of {where} that change something are frozen"),
        "everything": _("Everything of {where} is frozen"),
    }
    return known.get(freeze.scope, "{where}").format(where=freeze.applies_to)
