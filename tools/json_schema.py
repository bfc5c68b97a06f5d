"""Checks values against the JSON Schemas (2020-12) that contracts and definitions carry.

Never fetches a schema: a reference outside the document is a fault, not a download.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.contract import Json
from tools.pointers import MISSING, find, is_pointer, pointer_to

_LONGEST = 200


def schema_fault(schema: Json | None, value: Json) -> str:
    """Why `value` does not fit `schema`, as a short sentence without the value itself; "" if it does."""
    if schema is None:
        return ""
    try:
        error = best_match(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value))
    except (Unresolvable, RecursionError, ArithmeticError, re.error) as broken:
        return f"its schema cannot be applied ({type(broken).__name__})"
    if error is None:
        return ""
    where = pointer_to(tuple(error.absolute_path)) or "the whole"
    return f"{where} {_reason(error.validator, error.validator_value)}"[:_LONGEST]


_OF_ABSENCE = frozenset({"required", "minProperties", "dependentRequired", "dependentSchemas"})


def fault_of_part(schema: Json | None, members: Json) -> str:
    """Why the members of an object that was cut off do not fit its schema; "" if they do, whatever is missing."""
    if schema is None:
        return ""
    try:
        errors = list(_validator(json.dumps(schema, sort_keys=True)).iter_errors(members))
    except (Unresolvable, RecursionError, ArithmeticError, re.error) as broken:
        return f"its schema cannot be applied ({type(broken).__name__})"
    wrong = [error for error in errors if error.absolute_path or error.validator not in _OF_ABSENCE]
    if not wrong:
        return ""
    where = pointer_to(tuple(wrong[0].absolute_path)) or "the whole"
    return f"{where} {_reason(wrong[0].validator, wrong[0].validator_value)}"[:_LONGEST]


def schema_faults(schema: Json | None, value: Json) -> tuple[tuple[str, str], ...]:
    """Every place where `value` does not fit `schema`: (JSON pointer, sentence without the value) each."""
    if schema is None:
        return ()
    errors = _validator(json.dumps(schema, sort_keys=True)).iter_errors(value)
    ordered = sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    return tuple(
        (pointer_to(tuple(error.absolute_path)), _reason(error.validator, error.validator_value)[:_LONGEST])
        for error in ordered
    )


@lru_cache(maxsize=512)
def _validator(schema_text: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text), registry=Registry())


def faults_of_schema(schema: Json) -> list[tuple[tuple[str | int, ...], str]]:
    """What is wrong with a schema itself: (path inside it, sentence) each."""
    fault = _fault_of_form(json.dumps(schema))
    return [*([fault] if fault else []), *_dead_references(schema, (), schema)]


@lru_cache(maxsize=512)
def _fault_of_form(schema_text: str) -> tuple[tuple[str | int, ...], str] | None:
    """What the meta schema says, once for each text: contracts share many of their schemas."""
    try:
        Draft202012Validator.check_schema(json.loads(schema_text))
    except SchemaError as error:
        return tuple(error.absolute_path), f"is no valid JSON Schema: {error.message[:_LONGEST]}"
    return None


def _dead_references(
    schema: Json, path: tuple[str | int, ...], root: Json
) -> list[tuple[tuple[str | int, ...], str]]:
    faults: list[tuple[tuple[str | int, ...], str]] = []
    if isinstance(schema, dict):
        for name, part in schema.items():
            here = (*path, name)
            if name in {"$ref", "$dynamicRef"} and isinstance(part, str):
                if not part.startswith("#"):
                    faults.append((here, "refers to a schema outside of this file"))
                elif is_pointer(part[1:]) and find(root, part[1:]) is MISSING:
                    faults.append((here, "refers to a place that is not in this schema"))
            faults.extend(_dead_references(part, here, root))
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            faults.extend(_dead_references(part, (*path, index), root))
    return faults


def _reason(keyword: Any, wanted: Any) -> str:
    shown = json.dumps(wanted, ensure_ascii=False) if not isinstance(wanted, dict) else "…"
    match keyword:
        case "type":
            return f"is not of type {shown}"
        case "required":
            return f"lacks one of {shown}"
        case "enum" | "const":
            return f"is not {shown}"
        case "additionalProperties":
            return "has a property that is not declared"
    return f"fails {keyword} {shown}"
