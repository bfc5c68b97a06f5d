"""The contracts of a chain's tools: of its calls, of what makes up for them, and of what is asked about them.

Takes steps whose values are bound already; decides nothing about order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tools.contract import Json
from tools.importer.chain import Chain

DEFAULT_TIMEOUT_S = 10.0
_INSIDE = frozenset({"none", "case_opened"})
_LEVELS = {"money": "high", "message": "medium", "goods": "medium"}


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A step with its values bound: what a contract of its tool is made from. `fields` are the result's."""

    step: Json
    tool: str
    args: Mapping[str, Json]
    fields: tuple[str, ...]
    query: Json
    compensation: Json
    prior: Json


def slug(text: str) -> str:
    """A name as definitions and contracts write it."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")[:63]


def words(text: str) -> str:
    """A name as people read it."""
    return slug(text).replace("_", " ")


def retry_rules(given: Mapping[str, Json], *, repeat_is_safe: bool) -> Json:
    """One rule for everything, turned into a rule for each error class that a repeat can help (S0-33).

    What is busy is tried as often as the chain says; what never left may be tried longer, what is throttled as
    long as it takes; after silence only where a repeat is safe, and less often. A refusal is not repeated.
    """
    tries, first = given.get("max_attempts", 3), given.get("first_delay_s", 1)
    factor = given.get("factor", 2)
    in_the_dark = tries if tries <= 2 else tries - 1
    rules = {
        "temporary": {"max_attempts": tries, "first_delay_s": first, "factor": factor},
        "not_sent": {"max_attempts": tries * 5, "first_delay_s": first, "factor": factor, "max_delay_s": 30},
        "throttled": {"max_attempts": 50, "first_delay_s": first, "factor": 1, "max_delay_s": 30},
    }
    if repeat_is_safe:
        rules["no_answer"] = {"max_attempts": in_the_dark, "first_delay_s": first * 2, "factor": factor}
        rules["server"] = {"max_attempts": in_the_dark, "first_delay_s": first, "factor": factor}
    return rules


def of_step(chain: Chain, bound: Bound) -> Json:
    """The contract of a step's own tool."""
    step = bound.step
    irreversible = step["action_class"] == "irreversible"
    outside = step.get("outside_effect", "none")
    reads = step["action_class"] == "read"
    # What can neither be taken back nor asked about is never said to know a key: then it is never sent again unasked.
    keeps_keys = chain.calls_once and not (irreversible and bound.query is None)
    contract = {
        **_frame(bound.tool, step["system"], step["tool"], step),
        "effect_kind": "read_only"
        if reads
        else "reversible_write"
        if outside in _INSIDE and not irreversible
        else "external_effect",
        "recovery_class": "irreversible"
        if irreversible
        else "compensable"
        if bound.compensation is not None
        else "retryable",
        "level": "low" if reads else _level(outside, irreversible=irreversible),
        "texts": _texts(step["tool"], "" if outside == "none" else f"{words(outside).capitalize()}"),
        "call": _call(step["tool"], bound.args, reads=reads),
        "args_schema": _args_schema([bound.args]),
        "result_schema": _result_schema(bound.fields),
        "idempotency": _idempotency(
            honoured=keeps_keys and not reads, natural=step["action_class"] == "idempotent"
        ),
        "retry": retry_rules(
            step.get("retry", {}), repeat_is_safe=reads or keeps_keys or bound.query is not None
        ),
    }
    if bound.fields and not reads:
        contract["reference"] = f"/{bound.fields[0]}"
    for name, part in (
        ("status_query", bound.query),
        ("prior_state", bound.prior),
        ("compensation", bound.compensation),
    ):
        if part is not None:
            contract[name] = part
    if irreversible:
        contract["escalation"] = {
            "when": "the outcome is unknown and nothing that can be asked tells it",
            "context": "arguments, key and time of the call",
            "to": "The workflow's team",
        }
    return contract


def of_compensation(chain: Chain, tool: str, name: str, steps: list[Bound]) -> Json:
    """The contract of a tool that makes up for the given steps' calls. `name` is the chain's for it."""
    first = steps[0].step
    safe = chain.compensations_once
    return {
        **_frame(tool, first["system"], name, first),
        "effect_kind": "reversible_write",
        "recovery_class": "retryable",
        "level": max((_level(one.step.get("outside_effect", "none")) for one in steps), key=_rank),
        "texts": _texts(name, f"Makes up for: {', '.join(words(one.step['tool']) for one in steps)}"),
        "call": _call(name, {argument: None for one in steps for argument in one.compensation["args"]}),
        "args_schema": _args_schema([one.compensation["args"] for one in steps]),
        "result_schema": {"type": "object"},
        "idempotency": _idempotency(honoured=safe, natural=False),
        "retry": retry_rules(first.get("retry", {}), repeat_is_safe=safe),
    }


def of_query(tool: str, name: str, steps: list[Bound]) -> Json:
    """The contract of the tool that is asked about the given steps' calls."""
    first = steps[0].step
    asked = [part["args"] for one in steps for part in (one.query, one.prior) if part is not None]
    return {
        **_frame(tool, first["system"], name, first),
        "effect_kind": "read_only",
        "recovery_class": "retryable",
        "level": "low",
        "texts": _texts(name, ""),
        "call": _call(name, {argument: None for args in asked for argument in args}, reads=True),
        "args_schema": _args_schema(asked),
        "result_schema": {"type": "object"},
        "idempotency": _idempotency(honoured=False, natural=False),
        "retry": retry_rules(first.get("retry", {}), repeat_is_safe=True),
    }


def widened(contract: Json, more: Mapping[str, Json]) -> Json:
    """The contract, whose tool is also called with other arguments (as its own compensation, say)."""
    schema = contract["args_schema"]
    properties = {**schema["properties"], **{name: {} for name in more if name not in schema["properties"]}}
    required = [name for name in schema["required"] if name in more]
    return {**contract, "args_schema": {**schema, "required": required, "properties": properties}}


def _frame(tool: str, system: str, operation: str, step: Json) -> Json:
    total = step.get("timeout_s", DEFAULT_TIMEOUT_S)
    return {
        "tool": tool,
        "version": 1,
        "system": slug(system),
        "operation": slug(operation),
        "limits": {"connect_s": min(3, total), "total_s": total},
    }


def _texts(name: str, effect: str) -> Json:
    title = words(name).capitalize()
    return {
        "title": title,
        "done": f"{title}: carried out",
        "question": f"was “{words(name)}” carried out?",
        "effect": effect,
    }


def _call(name: str, args: Mapping[str, Json], *, reads: bool = False) -> Json:
    if not reads:
        return {"adapter": "http", "method": "POST", "path": f"/{slug(name)}", "body": {"from": "args"}}
    query = {argument: {"from": "args", "pointer": f"/{argument}", "default": ""} for argument in args}
    return {"adapter": "http", "method": "GET", "path": f"/{slug(name)}", "query": query}


def _args_schema(uses: list[Mapping[str, Json]]) -> Json:
    names = list(dict.fromkeys(name for use in uses for name in use))
    return {
        "type": "object",
        "required": [name for name in names if all(name in use for use in uses)],
        "additionalProperties": False,
        "properties": {name: {} for name in names},
    }


def _result_schema(fields: tuple[str, ...]) -> Json:
    if not fields:
        return {"type": "object"}
    return {"type": "object", "required": list(fields), "properties": {name: {} for name in fields}}


def _idempotency(*, honoured: bool, natural: bool) -> Json:
    said: dict[str, Json] = {"support": "honoured" if honoured else "none"}
    return {**said, "natural": True} if natural else said


def _level(outside: str, *, irreversible: bool = False) -> str:
    level = _LEVELS.get(outside.split("_")[0], "low")
    return "medium" if irreversible and level == "low" else level


def _rank(level: str) -> int:
    return ("low", "medium", "high").index(level)
