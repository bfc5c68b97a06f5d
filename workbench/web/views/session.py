"""Log in and out. A part of a page never becomes a login form: htmx is sent to the login page as a whole."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from workbench.web import forms
from workbench.web.page import htmx_of
from workbench.web.presenters.shell import Shell


class LogIn(LoginView):
    """Asks for name and password; the words of a refusal do not say which of both was wrong."""

    template_name = "account/login.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        htmx = htmx_of(request)
        if htmx:
            here = urlsplit(htmx.current_url or "").path
            return HttpResponseClientRedirect(f"{reverse('login')}?{urlencode({'next': here or '/'})}")
        return super().dispatch(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = 422
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        form = context["form"]
        names = (
            ("username", _("User name"), "text", "username"),
            ("password", _("Password"), "password", "current-password"),
        )
        fields = [
            forms.Field(
                name=name,
                label=label,
                kind=kind,
                autocomplete=auto,
                value=str(form.data.get(name, "")) if name == "username" else "",
            )
            for name, label, kind, auto in names
        ]
        return {
            **context,
            "fields": fields,
            "refused": form.is_bound and not form.is_valid(),
            "shell": outside(),
        }


class LogOut(LogoutView):
    """POST only; leads back to the login page. What the browser kept for the person goes (security.md 3.10)."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().post(request, *args, **kwargs)
        if (
            request.is_secure()
        ):  # elsewhere a browser does not heed it; the page's own script drops its drafts
            response.headers["Clear-Site-Data"] = '"storage"'
        return response


def outside() -> Shell:
    """The frame for somebody who is not logged in."""
    env = "" if settings.AMENDS_ENV == "production" else settings.AMENDS_ENV
    return Shell(
        lang=translation.get_language() or "en",
        env=env,
        section="",
        nav=(),
        freezes=(),
        freeze_ids="",
        still="",
        banners="",
        who="",
        person="",
        initials="",
        role="",
        zone="UTC",
        single_keys=True,
        search="",
    )
