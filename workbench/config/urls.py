"""The root of all addresses: pages at the top, the REST interface under /api/v1/, a sign of life."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import include, path


@login_not_required
def livez(request: HttpRequest) -> HttpResponse:
    """Says that this process answers; it asks nothing of the database or the broker."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [
    path("livez", livez, name="livez"),
    path("api/v1/", include("workbench.api.urls")),
    path("", include("workbench.web.urls")),
]

handler400 = "workbench.web.views.errors.bad_request"
handler403 = "workbench.web.views.errors.forbidden"
handler404 = "workbench.web.views.errors.not_found"
handler500 = "workbench.web.views.errors.server_error"
