"""Values that pass between the simulator's parts: a call, its answer, a refusal, an effect.

No storage and no sockets here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

type Json = Any

MONEY = re.compile(r"\d{1,9}(\.\d{1,2})?")


class Refused(Exception):
    """The system says no: HTTP status, a stable word and a sentence. Nothing has been changed."""

    def __init__(self, status: int, error: str, message: str, **more: Json) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Json] = {"error": error, "message": message, **more}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request as it arrived, mapped to a tool. `params` come from the path, `query` from the address.

    `callback_url` is where the caller wants to be told later; `told` what a planned behaviour asks of the
    operation itself (which items to refuse, how to call back).
    """

    method: str
    target: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    key: str = ""
    if_match: str = ""
    callback_url: str = ""
    told: Mapping[str, Json] = field(default_factory=dict)

    def value(self, name: str) -> Json:
        """A field of the JSON body; None when it is missing or the body is no object."""
        return self.body.get(name) if isinstance(self.body, dict) else None

    def text(self, name: str, pattern: str = r".+") -> str:
        """A body field that must be text matching `pattern` as a whole; else 422."""
        value = self.value(name)
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
            raise Refused(422, "invalid", f"{name} is missing or malformed", field=name)
        return value

    def whole(self, name: str) -> int:
        """A body field that must be a whole number above zero; else 422."""
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise Refused(422, "invalid", f"{name} must be a whole number above 0", field=name)
        return value

    def money(self, name: str) -> int:
        """A body field with an amount ("250.00" or a number), in minor units; else 422."""
        value = self.value(name)
        if isinstance(value, bool) or not MONEY.fullmatch(str(value)):
            raise Refused(422, "invalid", f"{name} must be an amount with at most two decimals", field=name)
        try:
            return int(Decimal(str(value)) * 100)
        except InvalidOperation as error:  # pragma: no cover - the pattern leaves nothing to fail
            raise Refused(422, "invalid", f"{name} must be an amount", field=name) from error


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A change in the world: what it did, in the system's own terms. `key` only if not the call's own."""

    business: str
    detail: Mapping[str, Json] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the system would say, and what it changed on the way: one effect, or `more` of them."""

    status: int
    body: Json
    effect: Effect | None = None
    more: tuple[Effect, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
