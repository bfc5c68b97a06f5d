"""Contracts and answers that the tests of the tools package start from."""

from __future__ import annotations

import copy
from typing import Any

from tools.contract import Contract, Json
from tools.outcome import Observation, Seen
from tools.reader import contract_from_document

DOCUMENT: dict[str, Any] = {
    "tool": "book_room",
    "version": 1,
    "system": "rooms",
    "operation": "book",
    "effect_kind": "reversible_write",
    "recovery_class": "compensable",
    "level": "medium",
    "reference": "/booking",
    "texts": {
        "title": "Room booked",
        "done": "Room {args.room} is booked as {result.booking}",
        "question": "is the room booked?",
    },
    "call": {
        "adapter": "http",
        "method": "POST",
        "path": "/rooms/{room}/bookings",
        "body": {"night": {"from": "args", "pointer": "/night"}},
    },
    "args_schema": {
        "type": "object",
        "required": ["room", "night"],
        "additionalProperties": False,
        "properties": {"room": {"type": "string"}, "night": {"type": "string"}},
    },
    "result_schema": {
        "type": "object",
        "required": ["booking"],
        "properties": {"booking": {"type": "string"}, "key": {"type": "string"}, "ok": {"type": "boolean"}},
    },
    "idempotency": {"support": "honoured"},
    "limits": {"connect_s": 0.5, "total_s": 10.0, "body_bytes": 65536},
    "compensation": {
        "tool": "free_room",
        "kind": "restores",
        "args": {"booking": {"from": "result", "pointer": "/booking"}},
    },
}
READ: dict[str, Any] = {
    "tool": "find_booking",
    "version": 1,
    "system": "rooms",
    "operation": "read",
    "effect_kind": "read_only",
    "recovery_class": "retryable",
    "level": "low",
    "texts": {"title": "Booking read", "done": "Booking read", "question": "what is booked?"},
    "call": {
        "adapter": "http",
        "method": "GET",
        "path": "/bookings",
        "query": {"key": {"from": "args", "pointer": "/key"}},
    },
    "args_schema": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}},
    "result_schema": {
        "type": "object",
        "required": ["state"],
        "properties": {"booking": {"type": "string"}, "state": {"type": "string"}},
    },
    "idempotency": {"support": "none"},
}
ARGS = {"room": "12", "night": "2031-05-01"}


def document(base: dict[str, Any] = DOCUMENT, **changes: Json) -> dict[str, Any]:
    """A copy of a contract document with some fields changed; None takes a field away."""
    changed = copy.deepcopy(base) | copy.deepcopy(changes)
    return {name: value for name, value in changed.items() if value is not None}


def contract(base: dict[str, Any] = DOCUMENT, **changes: Json) -> Contract:
    """The contract of `document(...)`."""
    return contract_from_document(document(base, **changes))


def answer(status: int, body: Json = None, **more: Any) -> Observation:
    """A readable answer, with our key gone along."""
    return Observation(seen=Seen.ANSWER, status=status, body=body, **{"key": "K-1", **more})
