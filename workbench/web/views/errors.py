"""Error pages with words, inside the frame where there is a reader, through htmx and without JavaScript."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from functools import partial
from typing import cast

import structlog
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import translation

from workbench.queries.people import Person
from workbench.web.page import Reader, htmx_of, to_main, told
from workbench.web.presenters import errors
from workbench.web.views.session import outside

log = structlog.get_logger(__name__)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400."""
    return _page(request, partial(errors.words, 400))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return _page(request, partial(errors.words, 403))


def old_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A failed CSRF check; why it failed is in the log only."""
    return _page(request, errors.old_form)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return _page(request, partial(errors.words, 404))


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 where the database does not answer: a number to quote, which the log line carries too.

    Needs no database.
    """
    number, cause = secrets.token_hex(4), sys.exc_info()[1]
    status = 503 if isinstance(cause, OperationalError | InterfaceError) else 500
    log.error("error page", number=number, path=request.path, status=status)
    return _bare(request, errors.words(status, number=number))


def _page(request: HttpRequest, words: Callable[[], errors.ErrorWords]) -> HttpResponse:
    """The words are made only once it is known in whose language."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return _bare(request, words())
    try:
        reader = Reader(request, cast("Person", user))
        with translation.override(reader.person.language):
            return told(reader, words())
    except DatabaseError:
        return _bare(request, words())


def _bare(request: HttpRequest, words: errors.ErrorWords) -> HttpResponse:
    if htmx_of(request):
        return to_main(
            HttpResponse(render_to_string("errors/note.html", {"error": words}), status=words.status)
        )
    context = {"error": words, "shell": outside()}
    return HttpResponse(render_to_string("errors/page.html", context, request), status=words.status)
