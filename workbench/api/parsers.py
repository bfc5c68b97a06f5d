"""Reads request bodies: JSON that two readers cannot understand differently, bounded in size and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework import exceptions, status
from rest_framework.parsers import BaseParser

from tools.payload import Unreadable, parse

MOST_BYTES = 1_048_576


class TooLarge(exceptions.APIException):
    """The body is over one mebibyte."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is larger than 1 MiB."
    default_code = "body_too_large"


class StrictJson(BaseParser):
    """An object in JSON; duplicate names, NaN and deep nesting are refused, not guessed at."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise TooLarge
        try:
            body = parse(raw)
        except Unreadable as error:
            raise exceptions.ParseError(f"The body is {error}.", code="unreadable") from None
        if body is None:
            return {}
        if not isinstance(body, dict):
            raise exceptions.ParseError("The body must be a JSON object.", code="unreadable")
        return body
