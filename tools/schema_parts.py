"""The parts that the published JSON Schemas are made of: each says in words what it expects."""

from __future__ import annotations

from enum import StrEnum

from tools.contract import Json


def enum_of(kind: type[StrEnum], what: str) -> Json:
    """The schema of a word out of a closed list."""
    return {"enum": [str(one) for one in kind], "description": what}


def object_of(required: list[str], properties: Json, what: str = "") -> Json:
    """The schema of an object with exactly these fields."""
    schema = {"type": "object", "additionalProperties": False, "required": required, "properties": properties}
    return {**schema, "description": what} if what else schema


def text_of_up_to(what: str, longest: int = 500) -> Json:
    """The schema of a text of bounded length."""
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": what}


def name_of(what: str) -> Json:
    """The schema of a name: small letters, digits, _ and -."""
    return {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,62}$", "description": what}


def seconds_of(what: str, *, zero: bool = False) -> Json:
    """The schema of a number of seconds."""
    bound = {"minimum": 0} if zero else {"exclusiveMinimum": 0}
    return {"type": "number", **bound, "maximum": 31_536_000, "description": what}
