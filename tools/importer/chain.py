"""The file format of a tool chain as others write it down, and how it is read.

Says everything that is wrong with a file at once, with its line. Knows nothing of definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jsonschema import Draft202012Validator
from referencing import Registry

from tools.contract import Json
from tools.problems import Fault
from tools.reader import read_document, refuse
from tools.structure import faults_against

REVERSE = "reverse of execution"

_ANY_OBJECT = {"type": "object"}
_TEXT = {"type": "string", "description": "text"}
_NAME = {
    "type": "string",
    "pattern": "^[A-Za-z][A-Za-z0-9_ -]*$",
    "description": "a name, starting with a letter",
}
_CALL = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "required": ["tool", "args"],
    "properties": {"tool": _NAME, "args": _ANY_OBJECT, "leaves": _TEXT, "applied_when": _TEXT},
}
_RETRY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["max_attempts"],
    "properties": {
        "max_attempts": {"type": "integer", "minimum": 1, "maximum": 100, "description": "all calls"},
        "first_delay_s": {"type": "number", "minimum": 0, "description": "seconds"},
        "factor": {"type": "number", "minimum": 1, "maximum": 100, "description": "what the delay grows by"},
    },
}
_STEP = {
    "type": "object",
    "additionalProperties": False,
    "required": ["step", "system", "tool", "action_class", "args", "compensation", "status_query"],
    "properties": {
        "seq": {"type": "integer", "minimum": 1, "description": "the position, from 1"},
        "step": _NAME,
        "system": _NAME,
        "tool": _NAME,
        "action_class": {"enum": ["read", "idempotent", "compensable", "irreversible"]},
        "args": _ANY_OBJECT,
        "compensation": _CALL,
        "status_query": _CALL,
        "outside_effect": {
            "type": "string",
            "pattern": "^[a-z][a-z_]*$",
            "description": "the effect in a word",
        },
        "reason": _TEXT,
        "retry": _RETRY,
        "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600, "description": "seconds"},
        "compensation_needs_approval": {"type": "boolean", "description": "whether somebody signs"},
        "depends_on": {"const": None},
    },
}
CHAIN_SCHEMA: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": ["saga_id", "title", "steps"],
    "properties": {
        "saga_id": _NAME,
        "title": _TEXT,
        "source": _ANY_OBJECT,
        "input_example": _ANY_OBJECT,
        "compensation_order": {"const": REVERSE},
        "point_of_no_return": {"type": ["string", "null"], "description": "the id of a step"},
        "steps": {"type": "array", "minItems": 1, "maxItems": 1000, "items": _STEP},
        "acceptable_end_states": {"type": "array", "items": _TEXT},
        "position_check": _ANY_OBJECT,
        "failure_cases": {"type": "array", "items": _ANY_OBJECT},
        "notes": {"type": "array", "items": _TEXT},
    },
}


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A chain whose form is sound: its document, and what its failure cases expect of keys.

    `calls_once` and `compensations_once`: a repeated call, or compensation, takes effect once.
    """

    document: Json
    calls_once: bool
    compensations_once: bool


def read_chain(path: str | Path) -> Chain:
    """The chain in a JSON or TOML file. Raises `FileProblems` with all that is wrong; OSError as usual."""
    document, positions = read_document(path)
    validator = Draft202012Validator(CHAIN_SCHEMA, registry=Registry())
    refuse(faults_against(validator, document, "tool chain") or _faults(document), str(path), positions)
    return chain_of(document)


def chain_of(document: Json) -> Chain:
    """A chain from a document whose form is known to be sound."""
    expected = [case.get("expect", {}) for case in document.get("failure_cases", ())]
    effects = [one["effects_downstream"] for one in expected if "effects_downstream" in one]
    made_up = [count for one in expected for count in one.get("undo_effects", {}).values()]
    return Chain(
        document=document,
        calls_once=bool(effects) and all(count == 1 for count in effects),
        compensations_once=bool(made_up) and all(count == 1 for count in made_up),
    )


def _faults(document: Json) -> Iterator[Fault]:
    seen: set[str] = set()
    ways: dict[tuple[str, str], Json] = {}
    for index, step in enumerate(document["steps"]):
        if step["step"] in seen:
            message = f"there are two steps `{step['step']}`"
            yield Fault(path=("steps", index, "step"), message=message, remedy="Give it a name of its own.")
        seen.add(step["step"])
        if step["action_class"] == "read" and step["compensation"] is not None:
            yield Fault(
                path=("steps", index, "compensation"),
                message="a read has nothing to make up for",
                remedy="Remove the compensation, or correct action_class.",
            )
        way = [step[part] for part in ("action_class", "compensation", "status_query")]
        if ways.setdefault((step["system"], step["tool"]), way) != way:
            yield Fault(
                path=("steps", index, "tool"),
                message=f"the tool `{step['tool']}` was used in another way before: it has one contract only",
                remedy="Give it a name of its own here, or the same class, compensation and query.",
            )
    last = document.get("point_of_no_return")
    if last is not None and last not in seen:
        message = f"there is no step `{last}`"
        yield Fault(
            path=("point_of_no_return",), message=message, remedy=f"Known: {', '.join(sorted(seen))}."
        )
