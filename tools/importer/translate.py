"""A chain becomes a definition and contracts: names, order, end states, and a note for everything assumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.contract import Json
from tools.importer import contracts
from tools.importer.chain import Chain
from tools.importer.contracts import Bound, slug, words
from tools.importer.values import CallValues, composed, forward, taken_from

APPLIED = "/applied"
"""Where the answer to a query that does not know our key says whether the call took effect."""

_ALL_DONE = frozenset({"all steps confirmed", "all confirmed"})
_NOTHING_LEFT = frozenset({"every effective step undone", "every effective step is compensated"})
_NOT_DONE = ["rejected", "skipped", "not_started"]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The documents of a chain, and what somebody has to check because the chain does not say it."""

    name: str
    definition: Json
    contracts: tuple[Json, ...]
    notes: tuple[str, ...]


@dataclass(kw_only=True)
class _Names:
    """The contract names of a chain's tools: qualified by system where one name stands for several tools."""

    systems: dict[str, list[str]] = field(default_factory=dict)
    unlike: set[str] = field(default_factory=set)

    def of(self, tool: str, system: str) -> str:
        if len(self.systems[tool]) == 1 or tool in self.unlike:
            return slug(tool)
        return slug(f"{system}_{tool}")


def import_chain(chain: Chain) -> Imported:
    """The documents of a chain. They can be read by `tools.reader`; whether they are in order, the lint says."""
    names, notes = _names(chain.document), list(_assumptions(chain))
    bound: list[Bound] = []
    for step in chain.document["steps"]:
        one = _bind(step, names, notes)
        bound.append(one)
    definition, carried = _definition(chain, bound)
    notes += carried
    name = slug(chain.document["saga_id"])
    found = tuple(sorted(_contracts(chain, bound, names), key=lambda one: str(one["tool"])))
    return Imported(name=name, definition=definition, contracts=found, notes=tuple(dict.fromkeys(notes)))


def _names(document: Json) -> _Names:
    names = _Names()
    made_up_for: dict[str, set[str]] = {}
    for step in document["steps"]:
        called = [
            step["tool"],
            *(part["tool"] for part in (step["compensation"], step["status_query"]) if part),
        ]
        for tool in called:
            systems = names.systems.setdefault(tool, [])
            if step["system"] not in systems:
                systems.append(step["system"])
        if step["compensation"]:
            made_up_for.setdefault(step["compensation"]["tool"], set()).add(step["tool"])
    names.unlike = {tool for tool, forward_tools in made_up_for.items() if len(forward_tools) > 1}
    return names


def _bind(step: Json, names: _Names, notes: list[str]) -> Bound:
    where = slug(step["step"])
    values = CallValues.of(step["args"])
    query = _query(step, values, names) if step["status_query"] else None
    compensation = _compensation(step, values, names) if step["compensation"] else None
    template = step["compensation"]["args"] if step["compensation"] else {}
    prior = None
    if taken_from(template, "before") and query is not None and "key" not in _sources(query["args"]):
        prior = {"tool": query["tool"], "args": query["args"]}
        notes.append(f"{where}: the state before the call is read by {query['tool']}")
    for name in values.renamed:
        notes.append(f"{where}: the argument `{name}` is written `{name}_`, because `{name}` marks a lookup")
    for name in values.carried:
        notes.append(
            f"{where}: `{name}` goes along with the call, because its query or compensation needs it"
        )
    for name in composed(values.args):
        notes.append(
            f"{where}: the argument `{name}` is put together from parts; here it is given with the input"
        )
    if query is not None and not query.get("authoritative", True):
        text = query["found"]["text"]
        notes.append(f"{where}: `{text}` is in words only; the answer has to say so at {APPLIED}")
    if step["action_class"] == "compensable" and compensation is None:
        notes.append(
            f"{where}: is called compensable but names no compensation: it is taken as one to repeat"
        )
    return Bound(
        step=step,
        tool=names.of(step["tool"], step["system"]),
        args=values.args,
        fields=tuple(taken_from(template, "result", "after")),
        query=query,
        compensation=compensation,
        prior=prior,
    )


def _query(step: Json, values: CallValues, names: _Names) -> Json:
    """Asked by our key, whatever is found is ours. Asked otherwise the answer must say so, and silence proves nothing."""
    asked = step["status_query"]
    fields = taken_from((step["compensation"] or {"args": {}})["args"], "result", "after")
    text = asked.get("applied_when") or "found"
    args = values.later(asked["args"], key="key")
    query: Json = {"tool": names.of(asked["tool"], step["system"]), "args": args}
    if "key" not in _sources(args):
        query["found"] = {"text": text, "pointer": APPLIED, "operator": "equals", "value": True}
        query["authoritative"] = False
    elif fields:
        query["found"] = {"text": text, "pointer": f"/{fields[0]}", "operator": "exists"}
        query["reference"] = f"/{fields[0]}"
    else:
        query["found"] = {"text": text, "operator": "exists"}
    return query


def _compensation(step: Json, values: CallValues, names: _Names) -> Json:
    given = step["compensation"]
    offsets = given.get("leaves") or step.get("outside_effect", "none").startswith("money")
    compensation = {
        "tool": names.of(given["tool"], step["system"]),
        "kind": "offsets" if offsets else "restores",
        "args": values.later(given["args"], key="forward_key"),
        "who": "approval" if step.get("compensation_needs_approval") else "automatic",
    }
    return {**compensation, "leaves": given["leaves"]} if given.get("leaves") else compensation


def _sources(args: Json) -> set[str]:
    return {value["from"] for value in args.values() if isinstance(value, dict) and "from" in value}


def _definition(chain: Chain, bound: list[Bound]) -> tuple[Json, list[str]]:
    document, given = chain.document, dict.fromkeys(chain.document.get("input_example", {}))
    made: dict[str, str] = {}
    steps, behind = [], False
    for one in bound:
        where = slug(one.step["step"])
        args = forward(dict(one.args), made, lambda name: given.setdefault(name))
        step = {"id": where, "tool": one.tool, "contract_version": 1, "args": args}
        if behind:
            step["on_rejected"] = "handoff"
        behind = behind or one.step["step"] == document.get("point_of_no_return")
        made |= {name: where for name in one.fields if name not in document.get("input_example", {})}
        steps.append(step)
    end_states, notes = _end_states(document, bound)
    definition = {
        "name": slug(document["saga_id"]),
        "version": 1,
        "title": document["title"],
        "on_failure": "compensate",
        "input_schema": {
            "type": "object",
            "required": list(given),
            "properties": {name: {} for name in given},
        },
        "steps": steps,
        "end_states": end_states,
    }
    return definition, notes


def _end_states(document: Json, bound: list[Bound]) -> tuple[list[Json], list[str]]:
    states, notes = [], []
    effective = [one for one in bound if one.step["action_class"] != "read"]
    for text in document.get("acceptable_end_states", ()):
        if text in _ALL_DONE:
            states.append(_end_state("all_confirmed", "All steps are confirmed", bound, ["confirmed"]))
        elif text in _NOTHING_LEFT:
            title = "Every effective step is compensated"
            states.append(_end_state("all_compensated", title, effective, ["compensated", *_NOT_DONE]))
        else:
            notes.append(f"the end state “{text}” is in words only and is left out")
    return states, notes


def _end_state(name: str, title: str, steps: list[Bound], states: list[str]) -> Json:
    conditions = []
    for one in steps:
        allowed = [s for s in states if s != "compensated" or one.compensation is not None]
        done = "was carried out" if states == ["confirmed"] else "has no effect left"
        text = f"{words(one.step['step'])} {done}"
        conditions.append({"step": slug(one.step["step"]), "states": allowed, "text": text})
    return {"id": name, "title": title, "conditions": conditions}


def _contracts(chain: Chain, bound: list[Bound], names: _Names) -> Iterator[Json]:
    own: dict[str, Json] = {}
    for one in bound:
        if one.tool in own:
            own[one.tool] = contracts.widened(own[one.tool], one.args)
        else:
            own[one.tool] = contracts.of_step(chain, one)
    compensations: dict[str, list[Bound]] = {}
    queries: dict[str, list[Bound]] = {}
    for one in bound:
        if one.compensation is not None:
            compensations.setdefault(one.compensation["tool"], []).append(one)
        if one.query is not None:
            queries.setdefault(one.query["tool"], []).append(one)
    for tool, steps in compensations.items():
        for one in steps:
            if tool in own:
                own[tool] = contracts.widened(own[tool], one.compensation["args"])
        own.setdefault(
            tool, contracts.of_compensation(chain, tool, steps[0].step["compensation"]["tool"], steps)
        )
    for tool, steps in queries.items():
        own.setdefault(tool, contracts.of_query(tool, steps[0].step["status_query"]["tool"], steps))
    yield from own.values()


def _assumptions(chain: Chain) -> Iterator[str]:
    if chain.calls_once:
        yield "the failure cases expect a repeated call to take effect once: calls are said to honour a key"
    else:
        yield "nothing says that a repeated call takes effect once: calls are said to know no key"
    if chain.compensations_once:
        yield "the failure cases expect a repeated compensation to take effect once: it is said to honour a key"
    else:
        yield "nothing says that a repeated compensation takes effect once: it is said to know no key"
    yield "one retry rule stands for every failure: it was turned into a rule for each class of failure"
