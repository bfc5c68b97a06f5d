"""Errors as RFC 9457 problem documents: one shape for every answer that is not a success.

Registered as DRF's exception handler; `not_found` answers addresses below /api/ that do not exist. Never says
more than the rule that was broken: no exception text, no stack trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from sagas.errors import InvalidInput, InvalidSteps, NotFound, Retired, StartKeyConflict
from workbench.errors import HTTP_STATUS, Refused

MEDIA_TYPE = "application/problem+json"
log = structlog.get_logger(__name__)

type Pointed = tuple[str, str]
"""A JSON pointer into the request's body (or a header's name), and what is wrong there."""


def problem(
    status: int, code: str, detail: str, errors: Iterable[Pointed] = (), **extra: Any
) -> dict[str, Any]:
    """The document itself. `code` is stable; `detail` is for people."""
    document: dict[str, Any] = {
        "type": f"urn:amends:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        **extra,
    }
    listed = [{"pointer": pointer, "detail": message} for pointer, message in errors]
    return {**document, "errors": listed} if listed else document


def respond(
    status: int,
    code: str,
    detail: str,
    errors: Iterable[Pointed] = (),
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> Response:
    """A response that carries a problem document."""
    document = problem(status, code, detail, errors, **extra)
    response = Response(document, status=status, headers=headers, content_type=MEDIA_TYPE)
    return response


def handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler. What nobody expected is logged whole and answered with nothing of it."""
    set_rollback()
    match error:
        case NotFound() | Http404():
            return respond(404, "not_found", "There is nothing here, or nothing that you may see.")
        case InvalidSteps():
            return respond(
                422, "invalid_steps", "These steps are not fit to run. Nothing was started.", error.problems
            )
        case InvalidInput():
            detail = "The input does not fit the definition. Nothing was started."
            errors = [(f"/input{pointer}", message) for pointer, message in error.problems]
            return respond(422, "invalid_input", detail, errors)
        case StartKeyConflict():
            detail = "This Idempotency-Key was used before with other content. Nothing was started."
            return respond(422, "idempotency_key_reused", detail)
        case Retired():
            return respond(409, "retired", f"{error} Nothing was started.")
        case Refused():
            refusal = error.refusal
            errors = [(f"/{name}", str(sentence)) for name, sentence in refusal.fields.items()]
            return respond(HTTP_STATUS[refusal.answer], refusal.code, str(refusal.sentence), errors)
        case PermissionDenied():
            return respond(403, "permission_denied", "You may not do this.")
        case exceptions.APIException():
            return _api_exception(error)
        case _:
            log.exception("api.unexpected_error", exc_info=error)
            return respond(500, "internal_error", "That did not work, and we do not know why.")


def not_found(request: HttpRequest, path: str = "") -> JsonResponse:
    """The answer to an address that does not exist."""
    document = problem(404, "not_found", "There is nothing at this address.")
    return JsonResponse(document, status=404, content_type=MEDIA_TYPE)


def _api_exception(error: exceptions.APIException) -> Response:
    headers: dict[str, str] = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    if isinstance(error, exceptions.ValidationError):
        errors = list(_pointed(error.detail))
        return respond(422, "invalid", "Something in the request is not right.", errors, headers)
    detail = str(error.detail) if not isinstance(error.detail, dict | list) else error.default_detail
    code = error.get_codes() if isinstance(error.detail, str) else error.default_code
    return respond(error.status_code, str(code), str(detail), (), headers)


def _pointed(detail: Any, pointer: str = "") -> Iterable[Pointed]:
    """DRF's nested error details as pointers into the body."""
    if isinstance(detail, Mapping):
        for name, part in detail.items():
            here = pointer if name == "non_field_errors" else f"{pointer}/{_escaped(str(name))}"
            yield from _pointed(part, here)
    elif isinstance(detail, list | tuple):
        for place, part in enumerate(detail):
            nested = isinstance(part, Mapping | list)
            yield from _pointed(part, f"{pointer}/{place}" if nested else pointer)
    else:
        yield pointer, str(detail)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
