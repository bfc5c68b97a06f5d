"""One number for each request: in every line that it causes, and in the answer for whoever reports it."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

log = structlog.get_logger(__name__)

HEADER = "X-Request-Id"
QUIET = ("/livez", "/readyz")
"""Probes: they come every few seconds and say what they have to say in their answer."""
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestId:
    """Middleware. Takes over the number that a proxy gave, if it is one; says each request in one line."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        number = given if _ACCEPTABLE.fullmatch(given) else uuid.uuid4().hex
        began = time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=number):
            response = self._get_response(request)
            if request.path not in QUIET:
                log.info(
                    "request",
                    method=request.method,
                    path=request.path,
                    status=response.status_code,
                    ms=round((time.monotonic() - began) * 1000),
                )
        response.headers[HEADER] = number
        return response
