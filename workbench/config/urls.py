"""The root of all addresses: pages at the top, the REST interface under /api/v1/, probes."""

from django.urls import include, path

from workbench.web.views import health

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("workbench.api.urls")),
    path("", include("workbench.web.urls")),
]

handler400 = "workbench.web.views.errors.bad_request"
handler403 = "workbench.web.views.errors.forbidden"
handler404 = "workbench.web.views.errors.not_found"
handler500 = "workbench.web.views.errors.server_error"
