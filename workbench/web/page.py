"""How a view becomes a page: who reads, in which language and zone, and the frame around everything.

Owns the reader and rendering; decides no rights beyond asking the policies. Must not write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.functional import cached_property
from django_htmx.middleware import HtmxDetails

from sagas import api
from sagas.facts import Actor, FreezeFacts
from sagas.readings import StandsStill
from workbench import policies
from workbench.policies import Permission
from workbench.queries.people import Person, actor_of
from workbench.roles import Role
from workbench.web.presenters import errors, shell
from workbench.web.presenters.clock import Clock, zone_of


class Reader:
    """The one who asks for a page: person, actor, clock; what several parts of a page need is read once."""

    def __init__(self, request: HttpRequest, person: Person) -> None:
        self.request = request
        self.person = person
        self.actor: Actor = actor_of(person)

    @cached_property
    def roles(self) -> frozenset[Role]:
        """The roles held at this request; every command asks for them again."""
        return self.person.current_roles()

    @cached_property
    def clock(self) -> Clock:
        """The database's now in the reader's zone."""
        return Clock(now=api.now(), zone=zone_of(self.person.time_zone))

    @cached_property
    def freezes(self) -> tuple[FreezeFacts, ...]:
        """The freezes in force."""
        return api.freezes()

    @cached_property
    def still(self) -> StandsStill | None:
        """Whether automatic work stands still."""
        return api.standing_still()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many cases each saved view holds, capped."""
        return api.queue_counts(self.actor.id)

    @cached_property
    def signoffs(self) -> int:
        """How many requests wait for a signature, capped."""
        return api.signoffs_open()

    @property
    def htmx(self) -> bool:
        """Whether a part of a page is wanted."""
        return bool(htmx_of(self.request))


def htmx_of(request: HttpRequest) -> HtmxDetails:
    """What htmx says about a request; false in a boolean test for every other request."""
    return cast("HtmxDetails", getattr(request, "htmx", False))


type View[**P] = Callable[Concatenate[Reader, P], HttpResponse]


def reads[**P](
    permission: Permission | None = Permission.READ,
) -> Callable[[View[P]], Callable[Concatenate[HttpRequest, P], HttpResponse]]:
    """Gives a view its reader, in their language and zone; without the permission they read why instead."""

    def decorate(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def wrapped(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            reader = Reader(request, cast("Person", request.user))
            with translation.override(reader.person.language), timezone.override(reader.person.time_zone):
                refusal = permission and policies.why_not_permitted(
                    actor=reader.actor, roles=reader.roles, permission=permission
                )
                if refusal:
                    return refused(reader, 403, sentence=str(refusal.sentence))
                response = view(reader, *args, **kwargs)
            patch_vary_headers(response, ("HX-Request", "Cookie"))
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return cast("Callable[Concatenate[HttpRequest, P], HttpResponse]", wrapped)

    return decorate


def render(
    reader: Reader, template: str, context: Mapping[str, Any], *, section: str = "", status: int = 200
) -> HttpResponse:
    """A whole page inside the frame."""
    body = render_to_string(template, {**context, "shell": frame(reader, section)}, reader.request)
    return HttpResponse(body, status=status)


def part(reader: Reader, template: str, context: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """A part of a page, for htmx to put in place."""
    return HttpResponse(render_to_string(template, dict(context), reader.request), status=status)


STOP_POLLING = 286
"""htmx stops asking once it is answered so."""


def unchanged(reader: Reader) -> HttpResponse:
    """204: the page is up to date; says when that was checked."""
    return stamped(reader, HttpResponse(status=204))


def stamped(reader: Reader, response: HttpResponse) -> HttpResponse:
    """The answer to a poll, with the server's time of day for the live mark."""
    response.headers["X-Checked"] = reader.clock.time(reader.clock.now)
    return response


def refused(reader: Reader, status: int, *, sentence: str) -> HttpResponse:
    """The error page of this status with the server's own reason."""
    return told(reader, errors.words(status, sentence=sentence))


def told(reader: Reader, words: errors.ErrorWords) -> HttpResponse:
    """An error page of ours, or its words alone for htmx."""
    if reader.htmx:
        response = part(reader, "errors/note.html", {"error": words}, status=words.status)
        return to_main(response)
    return render(reader, "errors/page.html", {"error": words}, status=words.status)


def to_main(response: HttpResponse) -> HttpResponse:
    """A note that belongs to no part of the page: htmx puts it on top of the main part."""
    response.headers["HX-Retarget"] = "#main"
    response.headers["HX-Reswap"] = "afterbegin"
    return response


def frame(reader: Reader, section: str) -> shell.Shell:
    """What stands around the page."""
    return shell.shell(
        lang=translation.get_language() or "en",
        env="" if settings.AMENDS_ENV == "production" else settings.AMENDS_ENV,
        section=section,
        person=reader.person,
        role=reader.actor.role,
        counts=reader.counts,
        signoffs=reader.signoffs,
        freezes=reader.freezes,
        still=reader.still,
        clock=reader.clock,
        search=reader.request.GET.get("q", "") if section in ("queue", "runs") else "",
    )
