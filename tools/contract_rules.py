"""What must agree inside one contract beyond its form: classes with each other, bindings with schemas.

Takes a document whose form is sound; yields faults, knows nothing of files. What needs a second contract is
the lint's work.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools import bindings
from tools.contract import EffectKind, ErrorClass, Json, KeySupport, Meaning, RecoveryClass
from tools.declared import declares, requires
from tools.json_schema import faults_of_schema
from tools.meanings import POSITIVE, may_mean
from tools.problems import Fault, Path
from tools.texts import placeholders
from tools.url_templates import PLACEHOLDER

_CALL_SOURCES = frozenset({"args", "key"})
_TRIED_SOURCES = frozenset({"args"})
_ASK_SOURCES = frozenset({"args", "key", "forward_key", "run", "prior"})
_FOUND_SOURCES = _ASK_SOURCES | {"reference"}
_LATER_SOURCES = _ASK_SOURCES | {"result"}
_READ_SOURCES = _LATER_SOURCES | {"answer"}
_REFUSALS = frozenset({ErrorClass.VALIDATION, ErrorClass.PERMISSION, ErrorClass.REFUSED})
_UNANSWERED = frozenset(
    {ErrorClass.NO_ANSWER, ErrorClass.SERVER, ErrorClass.GARBAGE, ErrorClass.IN_FLIGHT, ErrorClass.CONFLICT}
)
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
# Where each pointer of `items` leads: into which schema, and below which of the two lists.
_ITEM_PLACES = {
    "list": ("args", "list"),
    "id": ("args", "list"),
    "key": ("args", "list"),
    "results": ("result", "results"),
    "result_id": ("result", "results"),
    "result_state": ("result", "results"),
    "result_reference": ("result", "results"),
}
_COMPARING = frozenset({"equals", "not_equals", "one_of", "at_least", "at_most"})


def faults_of_contract(document: Json) -> Iterator[Fault]:
    """Everything that does not agree, in no particular order."""
    yield from _classes(document)
    yield from _statuses(document)
    yield from _codes(document)
    yield from _retries(document)
    yield from _limits(document)
    yield from _rate(document)
    yield from _conditions(document)
    yield from _callback(document)
    unsound = list(_schemas(document))
    yield from unsound
    if not unsound:  # only sound schemas can be asked what they declare
        yield from _http(document)
        yield from _places(document)
        yield from _items(document)
        yield from _bindings(document)


def _classes(document: Json) -> Iterator[Fault]:
    kind, recovery = document["effect_kind"], document["recovery_class"]
    has_compensation = "compensation" in document
    if kind == EffectKind.READ_ONLY and recovery != RecoveryClass.RETRYABLE:
        yield Fault(
            path=("recovery_class",),
            message="a read-only tool can only be retryable",
            remedy="Write recovery_class = retryable, or name the effect in effect_kind.",
        )
    if kind == EffectKind.READ_ONLY and has_compensation:
        yield Fault(
            path=("compensation",),
            message="a read-only tool has nothing to make up for",
            remedy="Remove the compensation, or name the effect in effect_kind.",
        )
    if kind == EffectKind.READ_ONLY and "dry_run" in document:
        yield Fault(
            path=("dry_run",),
            message="a read-only tool has no effect to try without",
            remedy="Remove the dry run, or name the effect in effect_kind.",
        )
    if recovery == RecoveryClass.COMPENSABLE and not has_compensation:
        yield Fault(
            path=("recovery_class",),
            message="a compensable tool declares its compensation",
            remedy="Add a compensation, or write recovery_class = irreversible.",
        )
    if recovery == RecoveryClass.IRREVERSIBLE:
        yield from _irreversible(document)


def _irreversible(document: Json) -> Iterator[Fault]:
    escalation = document.get("escalation", {})
    for name in ("when", "context", "to"):
        if not escalation.get(name):
            yield Fault(
                path=("escalation",) if "escalation" in document else ("recovery_class",),
                message=f"an irreversible tool says to whom it escalates: `escalation.{name}` is missing",
                remedy="Add when, context and to under escalation.",
            )
    if document.get("compensation", {}).get("kind", "mitigates") != "mitigates":
        yield Fault(
            path=("compensation", "kind"),
            message="nothing restores or offsets an irreversible effect",
            remedy="Write kind = mitigates, or recovery_class = compensable.",
        )


def _schemas(document: Json) -> Iterator[Fault]:
    for path in (("args_schema",), ("result_schema",), ("errors", "schema")):
        schema = _at(document, path)
        if schema is not None:
            for inner, message in faults_of_schema(schema):
                yield Fault(path=(*path, *inner), message=message, remedy="See JSON Schema 2020-12.")


def _statuses(document: Json) -> Iterator[Fault]:
    for status, meaning in document.get("statuses", {}).items():
        if not may_mean(int(status), Meaning(meaning)):
            yield Fault(
                path=("statuses", status),
                message=f"status {status} cannot mean `{meaning}`: a contract narrows, it never widens",
                remedy="Write unknown, or leave it out.",
            )


def _codes(document: Json) -> Iterator[Fault]:
    errors = document.get("errors", {})
    if errors.get("codes") and not errors.get("code"):
        yield Fault(
            path=("errors", "codes"),
            message="codes are named, but not where an answer carries its code",
            remedy="Add `code`, a JSON pointer into the error answer.",
        )
    for code, meaning in errors.get("codes", {}).items():
        if meaning in POSITIVE:
            yield Fault(
                path=("errors", "codes", code),
                message=f"an error code cannot mean `{meaning}`",
                remedy="Only a status or a schema confirms.",
            )


def _retries(document: Json) -> Iterator[Fault]:
    rules = document.get("retry", {})
    repeated = {name: rule for name, rule in rules.items() if rule["max_attempts"] > 1}
    for name in sorted(repeated.keys() & _REFUSALS):
        yield Fault(
            path=("retry", name),
            message=f"a call refused with `{name}` is not repeated as it is",
            remedy="Remove the rule, or write max_attempts = 1.",
        )
    if len(ErrorClass) == len(repeated) or (len(repeated) > 2 and _is_blanket(repeated)):
        yield Fault(
            path=("retry",),
            message="one rule for every kind of failure is no rule",
            remedy="Give each error class its own rule, and leave out those that a repeat cannot help.",
        )
    if not _repeat_is_safe(document):
        for name in sorted(repeated.keys() & _UNANSWERED):
            yield Fault(
                path=("retry", name),
                message="after no clear answer a repeat may take effect twice: the key is not honoured"
                " and nothing can be asked",
                remedy="Add a status_query, or remove the rule.",
            )


def _is_blanket(rules: dict[str, Json]) -> bool:
    return bool(rules.keys() & _REFUSALS) and all(
        rule == next(iter(rules.values())) for rule in rules.values()
    )


def _repeat_is_safe(document: Json) -> bool:
    return (
        document["effect_kind"] == EffectKind.READ_ONLY
        or document["idempotency"]["support"] == KeySupport.HONOURED
        or "status_query" in document
    )


def _limits(document: Json) -> Iterator[Fault]:
    limits = document.get("limits", {})
    if "connect_s" in limits and "total_s" in limits and limits["connect_s"] > limits["total_s"]:
        yield Fault(
            path=("limits", "connect_s"),
            message="connecting may not take longer than the whole call",
            remedy="Lower connect_s or raise total_s.",
        )


def _rate(document: Json) -> Iterator[Fault]:
    rate = document.get("rate", {})
    if "burst" in rate and "per_second" not in rate:
        yield Fault(
            path=("rate", "burst"),
            message="a burst says nothing without calls a second",
            remedy="Add per_second, or remove burst.",
        )
    if "at_once" in rate and document["effect_kind"] == EffectKind.READ_ONLY:
        yield Fault(
            path=("rate", "at_once"),
            message="reads under way are not counted, so that at_once would bound nothing",
            remedy="Bound a read by per_second.",
        )


def _http(document: Json) -> Iterator[Fault]:
    call = document["call"]
    if call["adapter"] != "http":
        return
    schema = document["args_schema"]
    for name in PLACEHOLDER.findall(call["path"]):
        if not declares(schema, f"/{name}") or not requires(schema, name):
            yield Fault(
                path=("call", "path"),
                message=f"the path needs the argument `{name}`, which args_schema does not require",
                remedy=f"Declare and require `{name}` in args_schema.",
            )
    if "{" in PLACEHOLDER.sub("", call["path"]) or "}" in PLACEHOLDER.sub("", call["path"]):
        yield Fault(
            path=("call", "path"), message="a brace is left over", remedy="Write {name} for an argument."
        )
    for name in call.get("headers", {}):
        if name.lower() in _OWN_HEADERS or not name.isascii() or not name.replace("-", "").isalnum():
            yield Fault(
                path=("call", "headers", name),
                message=f"the header `{name}` is not a contract's to set",
                remedy="Remove it.",
            )


def _places(document: Json) -> Iterator[Fault]:
    result = document.get("result_schema")
    for name in ("reference", "echo"):
        if name in document and not declares(result, document[name]):
            yield Fault(
                path=(name,),
                message=f"result_schema has nothing at {document[name]}",
                remedy="Correct the pointer, or declare the property.",
            )
    for name, text in document["texts"].items():
        for root, dotted in sorted(placeholders(text)):
            schema = document["args_schema"] if root == "args" else result
            if not declares(schema, "/" + dotted.replace(".", "/")):
                yield Fault(
                    path=("texts", name),
                    message=f"{{{root}.{dotted}}} is declared by no schema",
                    remedy="Correct the placeholder, or declare the property.",
                )


def _items(document: Json) -> Iterator[Fault]:
    items = document.get("items")
    if items is None:
        return
    for name, (root, within) in _ITEM_PLACES.items():
        pointer = items[within] + ("" if name == within else "/0" + items.get(name, ""))
        if (name == within or name in items) and not declares(document.get(f"{root}_schema"), pointer):
            yield Fault(
                path=("items", name),
                message=f"{root}_schema has nothing at {pointer}",
                remedy="Correct the pointer, or declare the property.",
            )


def _callback(document: Json) -> Iterator[Fault]:
    callback = document.get("callback")
    if callback is None:
        return
    if ("header" in callback) == ("url_argument" in callback):
        yield Fault(
            path=("callback",),
            message="our address goes along in one place",
            remedy="Write either header or url_argument.",
        )
    if "accepted_answer_s" not in document:
        yield Fault(
            path=("callback",),
            message="an answer that comes by itself has a time by which it must have come",
            remedy="Add accepted_answer_s.",
        )
    if "url_argument" in callback and not declares(document["args_schema"], callback["url_argument"]):
        yield Fault(
            path=("callback", "url_argument"),
            message=f"args_schema has nothing at {callback['url_argument']}",
            remedy="Correct the pointer, or declare the argument.",
        )


def _bindings(document: Json) -> Iterator[Fault]:
    for path, known in _bound_places(document):
        whole = path[0] in {"call", "dry_run"}
        allowed = known | {"item"} if "items" in document and not whole else known
        template = _at(document, path)
        if template is not None:
            yield from _binding_faults(document, path, template, allowed)


def _bound_places(document: Json) -> Iterator[tuple[Path, frozenset[str]]]:
    for name in ("query", "headers", "body"):
        yield ("call", name), _CALL_SOURCES
    yield ("status_query", "args"), _ASK_SOURCES
    yield ("prior_state", "args"), _ASK_SOURCES - {"prior"}
    yield ("compensation", "args"), _LATER_SOURCES
    yield ("dry_run", "args"), _TRIED_SOURCES
    for path in condition_paths(document):
        tried = path[0] == "dry_run"
        yield (*path, "args"), _TRIED_SOURCES if tried else _LATER_SOURCES
        yield (*path, "value"), _TRIED_SOURCES | {"answer"} if tried else _READ_SOURCES
    yield ("by_reference", "args"), _FOUND_SOURCES
    yield ("by_reference", "value"), _FOUND_SOURCES | {"answer"}


def condition_paths(document: Json) -> Iterator[Path]:
    """The paths of all conditions that a contract document holds."""
    paths: list[Path] = [("succeeded_when",), ("status_query", "found"), ("status_query", "denied")]
    paths += [("dry_run", "accepted"), ("compensation", "already_done"), ("compensation", "verify")]
    for index in range(len(_at(document, ("compensation", "preconditions")) or [])):
        paths.append(("compensation", "preconditions", index))
    for path in paths:
        if _at(document, path) is not None:
            yield path


def _binding_faults(document: Json, path: Path, template: Json, allowed: frozenset[str]) -> Iterator[Fault]:
    schemas = {"args": document["args_schema"], "result": document.get("result_schema")}
    within = {}
    if "items" in document and path[0] in {"status_query", "compensation"}:
        schemas["item"] = document["args_schema"]
        within = {"item": document["items"]["list"] + "/0", "result": document["items"]["results"] + "/0"}
    for inner, part in bindings.paths(template):
        where = (*path, *inner)
        if wrong := bindings.fault(part):
            yield Fault(path=where, message=wrong, remedy="Write {from, pointer}, or {literal = ...}.")
        elif part["from"] not in allowed:
            yield Fault(
                path=where,
                message=f"`{part['from']}` is not known at this place",
                remedy=f"Sources here: {', '.join(sorted(allowed))}.",
            )
        elif "default" not in part and not declares(
            schemas.get(part["from"]), within.get(part["from"], "") + part.get("pointer", "")
        ):
            yield Fault(
                path=where,
                message=f"{part['from']}_schema has nothing at {part['pointer']}",
                remedy="Correct the pointer, declare the property, or give a default.",
            )


def _conditions(document: Json) -> Iterator[Fault]:
    for path in condition_paths(document):
        condition = _at(document, path)
        if path[0] in {"succeeded_when", "status_query", "dry_run"} and "read" in condition:
            yield Fault(
                path=(*path, "read"),
                message="this condition is about the answer at hand",
                remedy="Remove `read`.",
            )
        yield from value_faults(condition, path)


def value_faults(condition: Json, path: Path) -> Iterator[Fault]:
    """Whether a condition compares with something that its operator can compare with."""
    operator, given = condition.get("operator", "exists"), "value" in condition
    value = condition.get("value")
    if operator in _COMPARING and not given:
        yield Fault(path=path, message=f"`{operator}` needs a value to compare with", remedy="Add `value`.")
    elif operator not in _COMPARING and given:
        yield Fault(
            path=(*path, "value"), message=f"`{operator}` compares with nothing", remedy="Remove `value`."
        )
    elif operator == "one_of" and not isinstance(value, list) and not bindings.is_binding(value):
        yield Fault(path=(*path, "value"), message="`one_of` compares with a list", remedy="Write a list.")
    elif operator in {"at_least", "at_most"} and isinstance(value, str | list | bool):
        yield Fault(
            path=(*path, "value"), message=f"`{operator}` compares with a number", remedy="Write a number."
        )


def _at(document: Json, path: Path) -> Json:
    for part in path:
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return None
    return document
