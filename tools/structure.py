"""Checks a document against a published schema and says each fault in words, with a remedy.

Reports everything at once; knows nothing of files or lines.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from datetime import date, time
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry

from tools.canonical import NotCanonical, canonical
from tools.contract import Json
from tools.payload import MAX_DEPTH, storable
from tools.problems import Fault, Path
from tools.schemas import PUBLISHED

_KINDS = {
    "object": "a table of names and values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def faults_of_form(document: Json, schema_name: str) -> list[Fault]:
    """Everything wrong with the form of a document, as `contract` or `definition`."""
    return faults_against(_validator(f"{schema_name}.schema.json"), document, schema_name)


def faults_against(validator: Draft202012Validator, document: Json, what: str) -> list[Fault]:
    """Everything wrong with the form of a document under any schema. `what` is what it should be."""
    if plain := list(_not_plain(document, ())):
        return plain
    if not isinstance(document, dict):
        return [Fault(path=(), message=f"a {what} is a table of names and values")]
    faults: list[Fault] = []
    for error in validator.iter_errors(document):
        faults.extend(_faults(error))
    return list(dict.fromkeys(faults))


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(PUBLISHED[name], registry=Registry())


def _not_plain(value: Any, path: Path) -> Iterator[Fault]:
    """Values that are no storable JSON: dates, NaN, numbers without an exact form, NUL, endless depth."""
    if len(path) > MAX_DEPTH:
        yield Fault(path=path, message=f"nested deeper than {MAX_DEPTH}", remedy="Flatten it.")
    elif isinstance(value, dict):
        for name, part in value.items():
            if storable(name) != name:
                yield Fault(path=path, message="a name holds a character that cannot be stored")
            yield from _not_plain(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _not_plain(part, (*path, index))
    elif isinstance(value, date | time):
        yield Fault(path=path, message="is a date or time", remedy="Write it as text, in quotes.")
    elif isinstance(value, str):
        if storable(value) != value:
            yield Fault(
                path=path, message="holds a character that cannot be stored (NUL or a lone surrogate)"
            )
    elif value is not None and not isinstance(value, bool):
        yield from _inexact(value, path)


def _inexact(value: Any, path: Path) -> Iterator[Fault]:
    try:
        canonical(value)
    except NotCanonical:
        remedy = "Use a finite number below 2^53, or text."
        yield Fault(path=path, message="is no number with an exact form", remedy=remedy)


def _faults(error: ValidationError) -> Iterator[Fault]:
    path: Path = tuple(error.absolute_path)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    what = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
    match error.validator:
        case "required":
            for name in wanted:
                if name not in instance:
                    yield Fault(path=path, message=f"`{name}` is missing", remedy=_add(error.schema, name))
        case "additionalProperties":
            yield from _unknown_names(error, path)
        case "type":
            yield Fault(
                path=path,
                message=f"must be {_kind(wanted)}, but is {_kind_of(instance)}",
                remedy=_hint(what),
            )
        case "enum" | "const":
            allowed = wanted if isinstance(wanted, list) else [wanted]
            message = f"{_shown(instance)} is not allowed"
            yield Fault(path=path, message=message, remedy=_choose(instance, allowed))
        case "pattern":
            yield Fault(
                path=path, message=f"{_shown(instance)} is malformed", remedy=f"Write {what or wanted}."
            )
        case "minItems" | "minLength":
            yield Fault(path=path, message="must not be empty", remedy=_hint(what))
        case "maxItems" | "maxLength":
            yield Fault(path=path, message=f"is longer than {wanted}", remedy="Shorten it.")
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            yield Fault(path=path, message=f"{instance} is out of range", remedy=f"{_range(error.schema)}")
        case _:
            yield Fault(path=path, message=error.message[:200], remedy=_hint(what))


def _unknown_names(error: ValidationError, path: Path) -> Iterator[Fault]:
    schema: Any = error.schema
    instance: Any = error.instance
    known = sorted(schema.get("properties", {}))
    for name in instance:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
            yield Fault(path=(*path, name), message=f"`{name}` is not known here", remedy=remedy)


def _add(schema: Any, name: str) -> str:
    what = schema.get("properties", {}).get(name, {}).get("description", "")
    return f"Add `{name}`: {what}." if what else f"Add `{name}`."


def _hint(what: str) -> str:
    return f"Expected: {what}." if what else ""


def _choose(value: Json, allowed: list[Json]) -> str:
    near = difflib.get_close_matches(str(value), [str(one) for one in allowed], n=1)
    guess = f"Did you mean `{near[0]}`? " if near else ""
    return f"{guess}Allowed: {', '.join(str(one) for one in allowed)}."


def _range(schema: Any) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    above = "more than" if "exclusiveMinimum" in schema else "at least"
    bounds = [f"{above} {low}" if low is not None else "", f"at most {high}" if high is not None else ""]
    return f"Use {' and '.join(bound for bound in bounds if bound)}."


def _kind(wanted: Any) -> str:
    kinds = wanted if isinstance(wanted, list) else [wanted]
    return " or ".join(_KINDS.get(kind, str(kind)) for kind in kinds)


def _kind_of(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case dict():
            return "a table"
        case list():
            return "a list"
        case str():
            return "text"
    return "a number"


def _shown(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text[:60]}{'…' if len(text) > 60 else ''}`"
