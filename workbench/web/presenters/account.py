"""The account page: three preferences as fields, and the personal views of the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from zoneinfo import available_timezones

from django.conf import settings
from django.utils.translation import gettext as _

from workbench.queries.people import Person
from workbench.queries.views import Saved
from workbench.roles import Role
from workbench.web.forms import Choice, Field
from workbench.web.presenters import words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.queue import address
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class View:
    """A personal view of the queue: where it is, and its id for deleting it."""

    id: int
    name: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Account:
    """The page."""

    name: str
    username: str
    roles: tuple[Words, ...]
    fields: tuple[Field, ...]
    single_keys: bool
    kept: bool
    views: tuple[View, ...]


@cache
def zones() -> tuple[str, ...]:
    """Every zone of this machine's database, by name."""
    return tuple(sorted(available_timezones()))


def page(
    person: Person,
    *,
    errors: Mapping[str, Sequence[str]],
    draft: Mapping[str, str],
    kept: bool,
    lang: str,
    clock: Clock,
    views: Sequence[Saved] = (),
) -> Account:
    """What a person may choose, with what they have chosen or just tried to."""
    language = draft.get("language") or person.language
    zone = draft.get("time_zone") or person.time_zone
    own_names = {"en": "English", "zh-hans": "简体中文"}
    fields = (
        Field(
            name="language",
            label=_("Language"),
            kind="select",
            value=language,
            error=" ".join(errors.get("language", ())),
            choices=tuple(
                Choice(value=code, label=own_names.get(code, code)) for code, __ in settings.LANGUAGES
            ),
        ),
        Field(
            name="time_zone",
            label=_("Time zone"),
            kind="select",
            value=zone,
            help=_("It is {time} there now.").format(time=clock.short(clock.now)),
            error=" ".join(errors.get("time_zone", ())),
            choices=tuple(Choice(value=name, label=name) for name in zones()),
        ),
    )
    roles = sorted(person.current_roles(), key=list(Role).index)
    return Account(
        name=person.display_name,
        username=person.username,
        roles=tuple(words.ROLES[str(role)] for role in roles),
        fields=fields,
        single_keys=person.single_keys,
        kept=kept,
        views=tuple(View(id=one.id, name=one.name, url=address(one.view)) for one in views),
    )
