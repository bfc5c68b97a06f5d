"""Probes: a sign of life, and whether the installation is fit to work. No login, no page, no secret."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from workbench.queries import health


@login_not_required
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """200 while this process answers; it asks nothing of the database or the broker."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when every check holds, else 503; each check by name. `?exclude=NAME` (repeated) leaves one out."""
    left_out = set(request.GET.getlist("exclude"))
    checks = health.look([name for name in health.CHECKS if name not in left_out])
    ready = all(check.ok for check in checks.values())
    told = {name: _told(check) for name, check in checks.items()}
    return JsonResponse({"ready": ready, "checks": told}, status=200 if ready else 503)


def _told(check: health.Check) -> dict[str, object]:
    said = asdict(check)
    return {"ok": said["ok"], **({"detail": said["detail"]} if said["detail"] else {}), **said["measured"]}
