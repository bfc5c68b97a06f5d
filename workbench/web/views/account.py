"""A person's own page: language, time zone, single keys; and the help sheet."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import translation
from django.views.decorators.http import require_GET, require_http_methods

from workbench.commands.people import set_preferences
from workbench.queries.views import saved_views
from workbench.web.page import Reader, part, reads, render
from workbench.web.presenters import account as words
from workbench.web.presenters import keys


@require_http_methods(["GET", "POST"])
@reads(None)
def account(reader: Reader) -> HttpResponse:
    """Read or change one's own preferences; nobody else's can be reached from here."""
    asked = reader.request.POST
    errors: dict[str, list[str]] = {}
    if reader.request.method == "POST":
        try:
            set_preferences(
                person=reader.person,
                language=asked.get("language", ""),
                time_zone=asked.get("time_zone", ""),
                single_keys=asked.get("single_keys") == "on",
            )
            return redirect(f"{reader.request.path}?kept=1")
        except ValidationError as problem:
            errors = problem.message_dict
            reader.person.refresh_from_db()
    language = translation.get_language() or "en"
    shown = words.page(
        reader.person,
        errors=errors,
        draft=asked,
        kept="kept" in reader.request.GET,
        lang=language,
        clock=reader.clock,
        views=saved_views(reader.person, own=True),
    )
    return render(
        reader, "account/account.html", {"account": shown}, section="account", status=422 if errors else 200
    )


@require_GET
@reads(None)
def help_sheet(reader: Reader) -> HttpResponse:
    """The keys of every page; a sheet for htmx, a page without."""
    if reader.htmx:
        return part(reader, "account/keys.html", {"groups": keys.groups()})
    return render(reader, "account/help.html", {"groups": keys.groups()}, section="help")
