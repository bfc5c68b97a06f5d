"""From the steps of a drill to the product's own documents: contracts, a definition, and what the simulator must know.

The one place where the neutral rules of a step become fields of a contract. Names get a prefix of their own, so that
many drills share one database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tools.contract import Json
from tools.drills.drill import Drill, Step, Undo
from tools.drills.reader import step_of

SYSTEM = "generic"
GATED_LIMIT_S = 120.0
"""Seconds of the wall clock that a call may take which the drill holds outside."""
QUICK_LIMIT_S = 10.0
_ON_FAILURE = {"undo": "compensate", "handoff": "handoff", "continue": "continue"}
_EFFECT = {
    "read": ("read_only", "retryable"),
    "idempotent": ("reversible_write", "retryable"),
    "compensable": ("external_effect", "compensable"),
    "irreversible": ("external_effect", "irreversible"),
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
}
_ESCALATION = {"when": "its outcome cannot be settled", "context": "arguments and key", "to": "the team"}
_PATIENT = {"max_attempts": 1000, "first_delay_s": 1.0, "factor": 1.0, "max_delay_s": 60.0}
_ABOUT = {"type": "string", "minLength": 1}
_SETTLED = [
    "not_started",
    "prepared",
    "confirmed",
    "rejected",
    "partial",
    "compensated",
    "accepted",
    "skipped",
]


@dataclass(frozen=True, kw_only=True)
class Translated:
    """Documents in the order in which they are published, and the tools as the simulator is told them."""

    contracts: tuple[Json, ...]
    definition: Json
    tools: tuple[Json, ...]


@dataclass(frozen=True, kw_only=True)
class Names:
    """How tools of one drill are called in the product."""

    prefix: str

    def tool(self, name: str) -> str:
        """A tool's name in the product."""
        return f"{self.prefix}_{name}"

    def call(self, step: Step, direction: str) -> str:
        """The tool behind STEP.do, STEP.undo or STEP.query."""
        match direction:
            case "do":
                return self.tool(step.tool)
            case "undo" if step.compensation is not None:
                return self.tool(step.compensation.tool)
        return self.tool(f"{step.tool}_status")


def case_of(prefix: str, run: str, number: int) -> str:
    """What one run is called outside. No dot: a dot ends it in `about`."""
    return f"{prefix}-{run}-{number:04d}"


def about(case: str, step: str, item: str = "") -> str:
    """What one call is about: the natural key of its effect."""
    return f"{case}.{step}.{item}"


def input_of(case: str, steps: Iterable[Step]) -> Json:
    """The input of a run."""
    many = {
        step.id: [{"id": item, "about": about(case, step.id, item)} for item in step.parts if item]
        for step in steps
    }
    return {
        "case": case,
        "about": {step.id: about(case, step.id) for step in steps},
        "many": {name: items for name, items in many.items() if items},
    }


def translated(drill: Drill, *, prefix: str, gated: frozenset[str]) -> Translated:
    """The first version. `gated` names the calls that the drill holds outside (STEP.do ...)."""
    return documents(drill.steps, drill.workflow, prefix=prefix, version=1, gated=gated)


def documents(
    steps: Sequence[Step],
    workflow: Mapping[str, Json],
    *,
    prefix: str,
    version: int,
    gated: frozenset[str] = frozenset(),
    texts: Mapping[str, str] | None = None,
    more_args: Mapping[str, Json] | None = None,
) -> Translated:
    """Contracts and the definition of these steps, all of one version."""
    names = Names(prefix=prefix)
    contracts: dict[str, Json] = {}
    tools: dict[str, Json] = {}
    for step in steps:
        common: dict[str, Any] = {"names": names, "step": step, "version": version, "gated": gated}
        if _is_asked(step):
            _put(contracts, _status_contract(**common))
            tools[names.call(step, "query")] = _tool(names, step, "query")
        if step.compensation is not None:
            _put(contracts, _undo_contract(step.compensation, **common))
            tools[names.call(step, "undo")] = _tool(names, step, "undo")
        document = _do_contract(more=(more_args or {}).get(step.id, {}), **common)
        if texts and step.id in texts:
            document = {**document, "texts": {**document["texts"], "title": texts[step.id]}}
        _put(contracts, document)
        tools[names.call(step, "do")] = _tool(names, step, "do")
    return Translated(
        contracts=tuple(contracts.values()),
        definition=_definition(steps, workflow, names, version),
        tools=tuple(tools.values()),
    )


def _put(contracts: dict[str, Json], document: Json) -> None:
    contracts.setdefault(document["tool"], document)


def changed(steps: Sequence[Step], change: Mapping[str, Json]) -> tuple[Step, ...]:
    """The steps of the next version."""
    tools = change.get("compensation_tool", {})
    classes = change.get("class", {})
    kept: list[Step] = []
    for step in steps:
        if step.id in change.get("remove_steps", ()):
            continue
        undo = step.compensation
        if step.id in tools and undo is not None:
            undo = replace(undo, tool=tools[step.id])
        kind = classes.get(step.id, step.kind)
        kept.append(replace(step, kind=kind, compensation=undo if kind == "compensable" else None))
    place = next((n for n, step in enumerate(kept) if step.id == change.get("before")), len(kept))
    kept[place:place] = [step_of(one) for one in change.get("insert_steps", ())]
    return tuple(kept)


def _is_asked(step: Step) -> bool:
    return step.status_query != "none" or step.read_by_ref


# --- Contracts --------------------------------------------------------------------------------------------------------


def _base(names: Names, step: Step, direction: str, version: int, *, limit_s: float) -> dict[str, Json]:
    tool = names.call(step, direction)
    what = {"do": step.tool, "undo": step.compensation.tool if step.compensation else "", "query": "status"}
    title = what[direction].replace("_", " ")
    return {
        "tool": tool,
        "version": version,
        "system": SYSTEM,
        "operation": what[direction],
        "level": step.level,
        "texts": {"title": title, "done": f"{title}: done", "question": f"was this done: {title}?"},
        "errors": {"schema": _ERROR, "code": "/error", "codes": {"key_reused": "conflict"}},
        "statuses": {"503": "temporary"},
        "limits": {"connect_s": 1.0, "total_s": limit_s, "body_bytes": step.answer_limit_bytes},
    }


def _limit(step: Step, direction: str, gated: frozenset[str]) -> float:
    if f"{step.id}.{direction}" in gated:
        return GATED_LIMIT_S
    return step.limit_s or QUICK_LIMIT_S


def _idempotency(support: str, *, natural: bool, retention_h: float) -> Json:
    kept = {"retention_s": retention_h * 3600} if support == "honoured" else {}
    return {"support": support, **kept, **({"natural": True} if natural else {})}


def _retry(tries: int, first_delay_s: float, *, safe: bool, asynchronous: bool = False) -> Json:
    rule = {"max_attempts": tries, "first_delay_s": first_delay_s, "factor": 2.0, "max_delay_s": 60.0}
    rules: dict[str, Json] = {"temporary": rule, "throttled": _PATIENT, "not_sent": _PATIENT}
    if safe:
        rules |= {name: dict(rule) for name in ("no_answer", "server", "garbage", "in_flight")}
    return rules


def _do_contract(
    *, names: Names, step: Step, version: int, gated: frozenset[str], more: Mapping[str, Json]
) -> Json:
    kind, recovery = _EFFECT[step.kind]
    document = _base(names, step, "do", version, limit_s=_limit(step, "do", gated))
    document |= {
        "effect_kind": kind,
        "recovery_class": recovery,
        "reference": "/ref",
        "call": {
            "adapter": "http",
            "method": "POST",
            "path": f"/{document['tool']}",
            "body": {"from": "args", "pointer": ""},
        },
        "args_schema": _args_schema(step, more),
        "result_schema": _result_schema(step),
        "idempotency": _idempotency(
            step.downstream_key, natural=step.kind == "idempotent", retention_h=step.key_retention_h
        ),
        "retry": _retry(step.max_attempts, step.first_delay_s, safe=_repeat_is_safe(step)),
        "statuses": {**document["statuses"], **step.statuses},
        "errors": {**document["errors"], "codes": {**document["errors"]["codes"], **step.codes}},
    }
    if step.secret_args:
        document["secret_fields"] = [f"/args/{name}" for name in step.secret_args]
    if step.approval_required:
        document["require_confirmation"] = True
    if step.kind == "irreversible":
        document["escalation"] = _ESCALATION
    if step.items:
        document["items"] = _items(step)
        document["statuses"]["207"] = "partial"
    if step.asynchronous:
        document["accepted_answer_s"] = step.answer_within_s
        document["result_schema"] = {"type": "object"}
        if step.callback:
            document["callback"] = _callback()
    if step.status_query != "none":
        document["status_query"] = _status_query(names, step)
    elif step.read_by_ref:
        document["by_reference"] = {
            "text": "what stands under the reference is this call's",
            "read": names.call(step, "query"),
            "args": {"about": _part(step, "/about"), "ref": {"from": "reference"}},
            "pointer": "/about",
            "operator": "equals",
            "value": _part(step, "/about"),
        }
    if step.compensation is not None:
        document["compensation"] = _compensation(names, step, step.compensation)
    return document


def _repeat_is_safe(step: Step) -> bool:
    return step.kind == "read" or step.downstream_key == "honoured" or step.status_query != "none"


def _args_schema(step: Step, more: Mapping[str, Json]) -> Json:
    properties: dict[str, Json] = {"about": _ABOUT, **{name: {} for name in step.args}, **more}
    properties |= {f"of_{name}": {} for name in step.uses_output_of}
    if step.items:
        part = {"id": _ABOUT, "about": _ABOUT, "key": {"type": "string"}}
        properties["items"] = {
            "type": "array",
            "items": {"type": "object", "required": ["id", "about"], "properties": part},
        }
    required = ["about", *(["items"] if step.items else [])]
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


def _result_schema(step: Step) -> Json:
    properties: dict[str, Json] = {
        "about": _ABOUT,
        "ref": {"type": "string", "minLength": 1},
        "state": {"type": "string"},
    }
    if step.items:
        part = {"id": _ABOUT, "state": {"type": "string"}, "ref": {"type": "string"}}
        properties["results"] = {
            "type": "array",
            "items": {"type": "object", "required": ["id"], "properties": part},
        }
        return {"type": "object", "required": ["about", "results"], "properties": properties}
    return {"type": "object", "required": ["about", "ref"], "properties": properties}


def _items(step: Step) -> Json:
    return {
        "list": "/items",
        "id": "/id",
        "key": "/key",
        "results": "/results",
        "result_id": "/id",
        "result_state": "/state",
        "result_reference": "/ref",
        "states": {"done": "confirmed", "refused": "refused"},
        "most": max(len(step.items), 1),
    }


def _callback() -> Json:
    return {
        "secret": SYSTEM,
        "header": "Callback-Url",
        "key": "/key",
        "reference": "/ref",
        "state": "/state",
        "at": "/at",
        "version": "/version",
        "result": "/result",
        "states": {"done": "confirmed", "failed": "refused", "withdrawn": "refused", "pending": "accepted"},
    }


def _part(step: Step, pointer: str) -> Json:
    return {"from": "item" if step.items else "args", "pointer": pointer}


def _status_query(names: Names, step: Step) -> Json:
    asked: dict[str, Json] = {"about": _part(step, "/about")}
    if step.status_query == "by_key":
        asked["key"] = {"from": "key"}
    return {
        "tool": names.call(step, "query"),
        "args": asked,
        "found": {
            "text": "it is there",
            "pointer": "/state",
            "operator": "one_of",
            "value": ["done", "undone"],
        },
        "denied": {"text": "it was refused", "pointer": "/state", "operator": "equals", "value": "denied"},
        "reference": "/ref",
        "absent_statuses": [404],
        "settle_s": step.settle_after_s,
        "first_delay_s": 0.2,
        "every_s": step.query_every_s,
        "max_every_s": 60.0,
    }


def _compensation(names: Names, step: Step, undo: Undo) -> Json:
    place = {"about": _part(step, "/about"), "ref": {"from": "result", "pointer": "/ref"}}
    document: dict[str, Json] = {
        "tool": names.call(step, "undo"),
        "kind": undo.kind,
        "who": "approval" if undo.needs_approval else "automatic",
        "args": place,
    }
    if undo.leaves:
        document["leaves"] = undo.leaves
    if _is_asked(step) and undo.checked:
        look = {"read": names.call(step, "query"), "args": place, "pointer": "/state", "operator": "equals"}
        document["preconditions"] = [{**look, "text": "it is still there", "value": "done"}]
        document["already_done"] = {**look, "text": "it is gone already", "value": "undone"}
        document["verify"] = {**look, "text": "it is gone", "value": "undone"}
    return document


def _undo_contract(undo: Undo, *, names: Names, step: Step, version: int, gated: frozenset[str]) -> Json:
    document = _base(names, step, "undo", version, limit_s=_limit(step, "undo", gated))
    asked = _is_asked(step) and undo.checked
    document |= {
        "effect_kind": "reversible_write",
        "recovery_class": "retryable",
        "call": {
            "adapter": "http",
            "method": "POST",
            "path": f"/{document['tool']}",
            "body": {"from": "args", "pointer": ""},
        },
        "args_schema": {
            "type": "object",
            "required": ["about", "ref"],
            "properties": {"about": _ABOUT, "ref": {"type": "string"}},
        },
        "result_schema": {
            "type": "object",
            "required": ["state"],
            "properties": {"state": {"type": "string"}},
        },
        "idempotency": _idempotency(undo.downstream_key, natural=undo.natural, retention_h=24.0),
        "retry": _retry(undo.max_attempts, 1.0, safe=asked or undo.downstream_key == "honoured"),
        "statuses": {**document["statuses"], **undo.statuses},
        "errors": {**document["errors"], "codes": {**document["errors"]["codes"], **undo.codes}},
    }
    if asked:
        document["status_query"] = {
            "tool": names.call(step, "query"),
            "args": {
                "about": {"from": "args", "pointer": "/about"},
                "ref": {"from": "args", "pointer": "/ref"},
            },
            "found": {"text": "it is gone", "pointer": "/state", "operator": "equals", "value": "undone"},
            "absent_statuses": [],
            "settle_s": step.settle_after_s,
            "first_delay_s": 0.2,
            "every_s": step.query_every_s,
        }
    return document


def _status_contract(*, names: Names, step: Step, version: int, gated: frozenset[str]) -> Json:
    document = _base(names, step, "query", version, limit_s=_limit(step, "query", gated))
    asked = {"about": {"from": "args", "pointer": "/about"}}
    asked |= {name: {"from": "args", "pointer": f"/{name}", "default": ""} for name in ("key", "ref")}
    return document | {
        "effect_kind": "read_only",
        "recovery_class": "retryable",
        "call": {"adapter": "http", "method": "GET", "path": f"/{document['tool']}", "query": asked},
        "args_schema": {
            "type": "object",
            "required": ["about"],
            "properties": {"about": _ABOUT, "key": {"type": "string"}, "ref": {"type": "string"}},
        },
        "result_schema": {
            "type": "object",
            "required": ["state"],
            "properties": {"about": {}, "state": {"type": "string"}, "ref": {"type": "string"}},
        },
        "idempotency": {"support": "none"},
        "retry": _retry(2, 0.2, safe=True),
    }


# --- The definition ---------------------------------------------------------------------------------------------------


def _definition(steps: Sequence[Step], workflow: Mapping[str, Json], names: Names, version: int) -> Json:
    first = steps[0].id
    document: dict[str, Json] = {
        "name": names.tool("flow"),
        "version": version,
        "title": "A drill",
        "on_failure": _ON_FAILURE[workflow.get("on_failure", "undo")],
        "input_schema": {
            "type": "object",
            "required": ["case", "about", "many"],
            "properties": {
                "case": _ABOUT,
                "about": {"type": "object", "additionalProperties": _ABOUT},
                "many": {"type": "object", "additionalProperties": {"type": "array"}},
                "amount": {"type": "string"},
            },
        },
        "steps": [_step(step, names, version) for step in steps],
        "end_states": [
            {
                "id": "as_it_is",
                "title": "Left as it is",
                "conditions": [
                    {"step": first, "states": _SETTLED, "text": "the first step is settled, however it ended"}
                ],
            }
        ],
        "business": {"title": "A drill", "reference": {"from": "input", "pointer": "/case"}},
    }
    if "amount" in workflow:
        document["business"]["amount"] = workflow["amount"]
        document["business"]["currency"] = "EUR"
    if "team" in workflow:
        document["team"] = workflow["team"]
    if "deadline_min" in workflow:
        document["deadlines"] = {"default": workflow["deadline_min"]}
    return document


def _step(step: Step, names: Names, version: int) -> Json:
    args: dict[str, Json] = {"about": {"from": "input", "pointer": f"/about/{step.id}"}}
    document: dict[str, Json] = {"id": step.id, "tool": names.call(step, "do")}
    if step.items:
        args["items"] = {"from": "input", "pointer": f"/many/{step.id}"}
    if step.loop:
        args["about"] = {"from": "item", "pointer": "/about"}
        document["each"] = {"from": "input", "pointer": f"/many/{step.id}"}
    args |= {name: {"literal": value} for name, value in step.args.items()}
    args |= {
        f"of_{name}": {"from": f"steps.{name}.result", "pointer": "/ref"} for name in step.uses_output_of
    }
    document |= {"contract_version": version, "args": args}
    if step.on_failure:
        document["on_rejected"] = _ON_FAILURE[step.on_failure]
    if step.group:
        document["group"] = step.group.lower()
    if step.if_not_approved != "fail":
        document["if_not_approved"] = step.if_not_approved
    return document


# --- The other side ---------------------------------------------------------------------------------------------------


def _tool(names: Names, step: Step, direction: str) -> Json:
    document: dict[str, Json] = {"tool": names.call(step, direction), "role": direction}
    if direction == "do":
        return document | {
            "honours_key": step.downstream_key == "honoured" and not step.items,
            "item_keys": step.downstream_key == "honoured",
            "natural": step.kind == "idempotent",
            "effect": step.kind != "read",
        }
    document["of"] = names.call(step, "do")
    undo = step.compensation
    if direction == "undo" and undo is not None:
        document |= {
            "honours_key": undo.downstream_key == "honoured",
            "natural": undo.natural,
            "only_after": list(undo.only_after),
        }
    if direction == "query":
        document["by_key"] = step.status_query == "by_key"
    return document
