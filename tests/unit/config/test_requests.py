"""The number of a request: taken over, made up, answered, and never somebody's text."""

from __future__ import annotations

import pytest
import structlog
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from structlog.testing import capture_logs

from workbench.config.requests import HEADER, RequestId


def answered(path: str = "/handoffs/", **headers: str) -> tuple[HttpResponse, list[str]]:
    """The answer, and the numbers that were bound while it was made."""
    bound: list[str] = []

    def view(request: HttpRequest) -> HttpResponse:
        bound.append(structlog.contextvars.get_contextvars()["request_id"])
        return HttpResponse("ok")

    return RequestId(view)(RequestFactory().get(path, headers=headers)), bound


def test_a_number_that_a_proxy_gave_is_taken_over() -> None:
    response, bound = answered(**{HEADER: "edge-0a1b2c3d"})

    assert (response.headers[HEADER], bound) == ("edge-0a1b2c3d", ["edge-0a1b2c3d"])
    assert "request_id" not in structlog.contextvars.get_contextvars()


@pytest.mark.parametrize("given", ["", "short", "x" * 65, "two words", 'a"b{json}injected'])
def test_anything_else_is_replaced(given: str) -> None:
    response, (number,) = answered(**{HEADER: given})

    assert number != given
    assert len(number) == 32
    assert response.headers[HEADER] == number


def test_a_request_is_one_line_without_what_was_searched_for() -> None:
    with capture_logs() as said:
        answered("/search/?q=Ada+Example")

    (line,) = said
    assert (line["event"], line["method"], line["path"], line["status"]) == (
        "request",
        "GET",
        "/search/",
        200,
    )
    assert "Ada" not in str(line)


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_are_not_said(path: str) -> None:
    with capture_logs() as said:
        answered(path)

    assert said == []
