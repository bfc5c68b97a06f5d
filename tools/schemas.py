"""The published JSON Schemas of contract, definition and drill files, and the writer of docs/schemas/.

`python -m tools.schemas` writes them, `python -m tools.schemas --check` fails when they are out of date.
They hold everything about the form of a file; what needs more than one field is
`tools.contract_rules`'s and `tools.definition_rules`'s.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.conditions import OPERATORS
from tools.contract import (
    CompensationKind,
    EffectKind,
    ErrorClass,
    Json,
    KeySupport,
    Level,
    Meaning,
    RecoveryClass,
    Who,
)
from tools.definition import IfNotApproved, OnFailure
from tools.drill_schema import DRILL_SCHEMA
from tools.schema_parts import enum_of as _enum
from tools.schema_parts import name_of as _name
from tools.schema_parts import object_of as _object
from tools.schema_parts import seconds_of as _seconds
from tools.schema_parts import text_of_up_to as _text

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"
ACTION_STATES = (
    *("not_started", "prepared", "sent", "confirmed", "rejected", "unknown", "partial"),
    *("compensated", "accepted", "skipped", "superseded"),
)


_POINTER = {
    "type": "string",
    "pattern": "^(|/([^~]|~[01])*)$",
    "description": "a JSON pointer: empty, or starting with a slash",
}
_BINDINGS = {"type": "object", "description": "bindings: literals, or {from, pointer, default}"}
_ANY_SCHEMA = {"type": "object", "description": "a JSON Schema (2020-12) without references to other files"}
_VERSION = {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "a whole number from 1"}
_CONDITION = _object(
    ["text"],
    {
        "text": _text("the sentence that people read"),
        "read": _name("the read-only tool that is asked"),
        "args": _BINDINGS,
        "pointer": _POINTER,
        "operator": {"enum": list(OPERATORS), "description": "how the value found is compared"},
        "value": {"description": "what it is compared with: a value or a binding"},
    },
    "a checkable sentence: read, look at pointer, compare with value",
)
_STEP_IS = _object(
    ["text", "step", "states"],
    {
        "text": _text("the sentence that people read"),
        "step": _name("the id of a step"),
        "states": {"type": "array", "minItems": 1, "items": {"enum": list(ACTION_STATES)}},
    },
    "a checkable sentence about our own record of a step",
)
_HTTP_CALL = _object(
    ["adapter", "method", "path"],
    {
        "adapter": {"const": "http"},
        "method": {"enum": ["GET", "POST", "PUT", "PATCH", "DELETE"], "description": "the HTTP method"},
        "path": {
            "type": "string",
            "pattern": "^/[^?#\\s]*$",
            "description": "a path below the system's address, {name} for an argument, without a query",
        },
        "query": _BINDINGS,
        "headers": _BINDINGS,
        "body": {"description": "bindings over args and key; left out = no body"},
    },
)
_PYTHON_CALL = _object(
    ["adapter", "target"],
    {
        "adapter": {"const": "python"},
        "target": {
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$",
            "description": "module:function",
        },
        "trusted_fast": {"type": "boolean", "description": "run in the worker itself, without a limit"},
    },
)
_CALL = {
    "type": "object",
    "required": ["adapter"],
    "properties": {"adapter": {"enum": ["http", "python"], "description": "what kind of call it is"}},
    "allOf": [
        {"if": {"properties": {"adapter": {"const": kind}}, "required": ["adapter"]}, "then": {"$ref": ref}}
        for kind, ref in (("http", "#/$defs/http_call"), ("python", "#/$defs/python_call"))
    ],
}
_MEANINGS = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": _enum(Meaning, "what the state means for this tool"),
    "description": "state = meaning; what is not named is unknown",
}
_HEADER = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9-]{0,60}$", "description": "the name of a header"}
_ITEMS = _object(
    ["list", "id", "results", "result_id", "result_state", "states"],
    {
        "list": _POINTER,
        "id": _POINTER,
        "key": _POINTER,
        "results": _POINTER,
        "result_id": _POINTER,
        "result_state": _POINTER,
        "result_reference": _POINTER,
        "states": _MEANINGS,
        "most": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10_000,
            "description": "how many items one call may carry",
        },
    },
    "a call over many things: where each stands in the arguments and in the answer",
)
_CALLBACK = _object(
    ["secret", "key", "state", "states"],
    {
        "secret": _name("the name of the secret that signs"),
        "header": _HEADER,
        "url_argument": _POINTER,
        "signature": _HEADER,
        "key": _POINTER,
        "reference": _POINTER,
        "state": _POINTER,
        "states": _MEANINGS,
        "at": _POINTER,
        "version": _POINTER,
        "result": _POINTER,
    },
    "how the answer to an accepted call comes by itself",
)
_RETRY_RULE = _object(
    ["max_attempts"],
    {
        "max_attempts": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "description": "how many calls in all, the first included",
        },
        "first_delay_s": _seconds("seconds before the second call", zero=True),
        "factor": {"type": "number", "minimum": 1, "maximum": 100, "description": "what the delay grows by"},
        "max_delay_s": _seconds("the longest delay in seconds", zero=True),
    },
)

CONTRACT_SCHEMA: Json = {
    "$schema": DIALECT,
    "$id": "urn:amends:schema:contract",
    "title": "The contract of one tool",
    **_object(
        [
            *("tool", "version", "system", "operation", "effect_kind", "recovery_class", "level"),
            *("texts", "call", "args_schema", "idempotency"),
        ],
        {
            "tool": _name("the tool's name: small letters, digits, _ and -, starting with a letter"),
            "version": _VERSION,
            "system": _name("the system that is called; its address is configuration"),
            "operation": _name("the operation, a part of the key"),
            "effect_kind": _enum(EffectKind, "what a call does to the world"),
            "recovery_class": _enum(RecoveryClass, "how a confirmed call can be recovered from"),
            "level": _enum(Level, "how much is at stake"),
            "require_confirmation": {"type": "boolean", "description": "whether a person confirms each call"},
            "reference": _POINTER,
            "echo": _POINTER,
            "secret_fields": {
                "type": "array",
                "items": {
                    "type": "string",
                    "pattern": "^/(args|result)/([^~]|~[01])*$",
                    "description": "a JSON pointer below /args or /result; * stands for any name or index",
                },
            },
            "texts": _object(
                ["title", "done", "question"],
                {
                    "title": _text("what the call is, as a title"),
                    "done": _text("the sentence once it has happened"),
                    "question": _text("the question while nobody knows"),
                    "effect": {
                        "type": "string",
                        "maxLength": 500,
                        "description": "what it leaves in the world",
                    },
                },
                "sentences for people",
            ),
            "call": _CALL,
            "args_schema": _ANY_SCHEMA,
            "result_schema": _ANY_SCHEMA,
            "idempotency": _object(
                ["support"],
                {
                    "support": _enum(KeySupport, "what the tool does with our key"),
                    "header": {
                        "type": "string",
                        "pattern": "^[A-Za-z][A-Za-z0-9-]{0,60}$",
                        "description": "the header that carries the key",
                    },
                    "retention_s": _seconds("how long the tool keeps a key, in seconds"),
                    "natural": {
                        "type": "boolean",
                        "description": "whether the same call again changes nothing, key or not",
                    },
                },
                "what becomes of our key",
            ),
            "statuses": {
                "type": "object",
                "propertyNames": {
                    "pattern": "^[1-5][0-9][0-9]$",
                    "description": "an HTTP status, 100 to 599",
                },
                "additionalProperties": _enum(Meaning, "what the status means for this tool"),
                "description": "status = meaning; narrows the default table",
            },
            "errors": _object(
                [],
                {
                    "schema": _ANY_SCHEMA,
                    "code": _POINTER,
                    "codes": {
                        "type": "object",
                        "additionalProperties": _enum(Meaning, "what the code means for this tool"),
                    },
                },
                "how the tool's own error answers look",
            ),
            "retry": {
                "type": "object",
                "propertyNames": {"enum": [str(one) for one in ErrorClass], "description": "an error class"},
                "additionalProperties": _RETRY_RULE,
                "description": "one rule for each error class",
            },
            "limits": _object(
                [],
                {
                    "connect_s": _seconds("seconds until a connection must stand"),
                    "total_s": {**_seconds("seconds until the call must have ended"), "maximum": 3600},
                    "body_bytes": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 16_777_216,
                        "description": "the largest answer in bytes",
                    },
                },
                "bounds of one call",
            ),
            "rate": _object(
                [],
                {
                    "per_second": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "maximum": 10_000,
                        "description": "calls a second, by everybody together",
                    },
                    "burst": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 1000,
                        "description": "calls that may follow each other without a pause",
                    },
                    "at_once": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 10_000,
                        "description": "calls that may be under way at the same time",
                    },
                    "longest_wait_s": _seconds(
                        "seconds that a call waits for its turn before a person is asked"
                    ),
                },
                "how fast the tool may be called",
            ),
            "succeeded_when": _CONDITION,
            "accepted_answer_s": _seconds("seconds that an answer to an accepted call may take"),
            "items": _ITEMS,
            "callback": _CALLBACK,
            "status_query": _object(
                ["tool", "args", "found"],
                {
                    "tool": _name("the read-only tool that is asked"),
                    "args": _BINDINGS,
                    "found": _CONDITION,
                    "denied": _CONDITION,
                    "reference": _POINTER,
                    "absent_statuses": {"type": "array", "items": {"enum": [404, 410]}},
                    "authoritative": {"type": "boolean", "description": "whether not found proves absence"},
                    "settle_s": _seconds("seconds before not found counts", zero=True),
                    "first_delay_s": _seconds("seconds before the first query", zero=True),
                    "every_s": _seconds("seconds between two queries"),
                    "max_every_s": _seconds("the longest time between two queries in seconds"),
                },
                "how to ask whether a call took effect",
            ),
            "by_reference": _CONDITION,
            "dry_run": _object(
                ["tool", "args", "accepted"],
                {
                    "tool": _name("the read-only tool that tries the call and keeps nothing of it"),
                    "args": _BINDINGS,
                    "accepted": _CONDITION,
                    "why": _POINTER,
                    "refused_statuses": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 400, "maximum": 499},
                        "description": "the statuses that say that the call would be refused",
                    },
                },
                "how to have the call tried without its effect, in the provider's test mode",
            ),
            "prior_state": _object(
                ["tool", "args"],
                {
                    "tool": _name("the read-only tool that is asked"),
                    "args": _BINDINGS,
                    "version": _POINTER,
                    "max_age_s": _seconds("how old the snapshot may be, in seconds"),
                    "if_match": {
                        "type": "boolean",
                        "description": "whether the version goes along as If-Match",
                    },
                },
                "the read before the write",
            ),
            "compensation": _object(
                ["tool", "kind", "args"],
                {
                    "tool": _name("the tool that makes up for the call"),
                    "kind": _enum(CompensationKind, "what it achieves"),
                    "args": _BINDINGS,
                    "who": _enum(Who, "who may set it going"),
                    "preconditions": {"type": "array", "items": _CONDITION},
                    "already_done": _CONDITION,
                    "verify": _CONDITION,
                    "leaves": _text("what stays all the same"),
                },
                "what makes up for a confirmed call",
            ),
            "escalation": _object(
                [],
                {
                    "when": _text("when a person takes over"),
                    "context": _text("what the person is told"),
                    "to": _text("who takes over"),
                },
                "for an irreversible tool: when, with what, to whom",
            ),
        },
    ),
    "$defs": {"http_call": _HTTP_CALL, "python_call": _PYTHON_CALL},
}

_END_CONDITION = {
    "type": "object",
    "if": {"required": ["step"]},
    "then": {"$ref": "#/$defs/step_is"},
    "else": {"$ref": "#/$defs/condition"},
}
_BUSINESS_VALUE = {"description": "a value or a binding over input"}

DEFINITION_SCHEMA: Json = {
    "$schema": DIALECT,
    "$id": "urn:amends:schema:definition",
    "title": "A workflow definition",
    **_object(
        ["name", "version", "title", "steps", "input_schema"],
        {
            "name": _name("the workflow's name: small letters, digits, _ and -, starting with a letter"),
            "version": _VERSION,
            "title": _text("what the workflow does, as a title"),
            "team": {"type": "string", "maxLength": 100, "description": "the team that settles its handoffs"},
            "input_schema": _ANY_SCHEMA,
            "on_failure": _enum(OnFailure, "what a definite failure leads to"),
            "recovery_deadline_s": _seconds("seconds until a recovery must have ended"),
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": 10_000,
                "description": "the steps, in order",
                "items": _object(
                    ["id", "tool", "contract_version", "args"],
                    {
                        "id": _name("the step's id: small letters, digits, _ and -, starting with a letter"),
                        "tool": _name("the tool that is called"),
                        "contract_version": _VERSION,
                        "args": _BINDINGS,
                        "on_rejected": _enum(OnFailure, "what a definite failure of this step leads to"),
                        "why": _text("why this tool is called here"),
                        "group": _name("the group of steps that are called at the same time"),
                        "held": {
                            "type": "boolean",
                            "description": "whether it waits until every other step is confirmed",
                        },
                        "each": {
                            "type": "object",
                            "required": ["from"],
                            "description": "a list, bound like an argument: the call is made once for each element",
                        },
                        "if_not_approved": _enum(
                            IfNotApproved, "what a refused signature before the call leads to"
                        ),
                    },
                ),
            },
            "end_states": {
                "type": "array",
                "description": "the end states that the business can live with",
                "items": _object(
                    ["id", "title", "conditions"],
                    {
                        "id": _name("the end state's id"),
                        "title": _text("the end state in words"),
                        "conditions": {"type": "array", "minItems": 1, "items": _END_CONDITION},
                        "follow_ups": {
                            "type": "array",
                            "description": "the calls that accepting it sets going",
                            "items": _object(
                                ["id", "tool", "contract_version", "args", "text"],
                                {
                                    "id": _name("the follow-up's id"),
                                    "tool": _name("the tool that is called"),
                                    "contract_version": _VERSION,
                                    "args": _BINDINGS,
                                    "text": _text("what it is for, as people read it"),
                                },
                            ),
                        },
                    },
                ),
            },
            "business": _object(
                [],
                {
                    "title": _text("what a case is called"),
                    "reference": _BUSINESS_VALUE,
                    "customer": _BUSINESS_VALUE,
                    "amount": _BUSINESS_VALUE,
                    "currency": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "three letters"},
                },
                "how people recognise a case",
            ),
            "deadlines": {
                "type": "object",
                "propertyNames": {
                    "pattern": "^[a-z][a-z_]{0,62}$",
                    "description": "a handoff reason or default",
                },
                "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "description": "minutes"},
                "description": "handoff reason = minutes",
            },
            "titles": {
                "type": "object",
                "additionalProperties": _text("the title in that language"),
                "description": "language = title",
            },
        },
    ),
    "$defs": {"condition": _CONDITION, "step_is": _STEP_IS},
}

PUBLISHED = {
    "contract.schema.json": CONTRACT_SCHEMA,
    "definition.schema.json": DEFINITION_SCHEMA,
    "drill.schema.json": DRILL_SCHEMA,
}


def text_of(schema: Json) -> str:
    """A schema as its published file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def stale(folder: Path = FOLDER) -> list[str]:
    """The names of published files that are missing or out of date."""
    return [
        name
        for name, schema in PUBLISHED.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text_of(schema)
    ]


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` only compare them."""
    if "--check" in arguments:
        for name in stale():
            sys.stderr.write(f"docs/schemas/{name} is out of date: run python -m tools.schemas\n")
        return 1 if stale() else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, schema in PUBLISHED.items():
        (FOLDER / name).write_text(text_of(schema), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
