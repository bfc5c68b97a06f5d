"""What must agree inside one definition beyond its form. What needs contracts is the lint's work."""

from __future__ import annotations

from collections.abc import Iterator

from tools import bindings
from tools.contract import Json
from tools.contract_rules import value_faults
from tools.declared import declares
from tools.json_schema import faults_of_schema
from tools.problems import Fault, Path


def faults_of_definition(document: Json) -> Iterator[Fault]:
    """Everything that does not agree, in no particular order."""
    yield from _twice(document, "steps")
    yield from _twice(document, "end_states")
    yield from _torn_groups(document["steps"])
    for number, end_state in enumerate(document.get("end_states", [])):
        yield from _twice(end_state, "follow_ups", ("end_states", number))
    unsound = faults_of_schema(document["input_schema"])
    for inner, message in unsound:
        yield Fault(path=("input_schema", *inner), message=message, remedy="See JSON Schema 2020-12.")
    if not unsound:  # only a sound schema can be asked what it declares
        yield from _bindings(document)
    for path, condition in _conditions(document):
        if "step" not in condition:
            yield from value_faults(condition, path)


def _twice(document: Json, name: str, place: Path = ()) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, part in enumerate(document.get(name, [])):
        if part["id"] in first:
            yield Fault(
                path=(*place, name, index, "id"),
                message=f"`{part['id']}` is the id of {name}[{first[part['id']]}] already",
                remedy="Give it an id of its own.",
            )
        first.setdefault(part["id"], index)


def _torn_groups(steps: list[dict[str, Json]]) -> Iterator[Fault]:
    """A group is one place in the order of the calls, in which held steps come last."""
    ended: set[str] = set()
    last = ""
    for index, step in sorted(enumerate(steps), key=lambda one: one[1].get("held", False)):
        group = step.get("group", "")
        if group != last:
            ended.add(last)
        if group and group in ended:
            yield Fault(
                path=("steps", index, "group"),
                message=f"the group `{group}` had ended before: its steps are not called one after the other",
                remedy="Put the steps of a group next to each other; hold back all of them or none.",
            )
        last = group


def _conditions(document: Json) -> Iterator[tuple[Path, Json]]:
    for index, end_state in enumerate(document.get("end_states", [])):
        for number, condition in enumerate(end_state["conditions"]):
            yield ("end_states", index, "conditions", number), condition


def _bindings(document: Json) -> Iterator[Fault]:
    templates: list[tuple[Path, Json]] = [(("business",), document.get("business", {}))]
    templates += [(("steps", index, "args"), step["args"]) for index, step in enumerate(document["steps"])]
    for number, end_state in enumerate(document.get("end_states", [])):
        for index, follow_up in enumerate(end_state.get("follow_ups", [])):
            templates.append((("end_states", number, "follow_ups", index, "args"), follow_up["args"]))
    for path, condition in _conditions(document):
        templates += [
            ((*path, "args"), condition.get("args", {})),
            ((*path, "value"), condition.get("value")),
        ]
    for path, template in templates:
        for inner, part in bindings.paths(template):
            yield from _binding(document, (*path, *inner), part)


def _binding(document: Json, where: Path, part: dict[str, Json]) -> Iterator[Fault]:
    if wrong := bindings.fault(part):
        yield Fault(path=where, message=wrong, remedy="Write {from, pointer}, or {literal = ...}.")
    elif where[0] == "business" and part["from"] != "input":
        yield Fault(
            path=where, message="a case is recognised by its input alone", remedy='Write from = "input".'
        )
    elif (
        part["from"] == "input"
        and "default" not in part
        and not declares(document["input_schema"], part.get("pointer", ""))
    ):
        yield Fault(
            path=where,
            message=f"input_schema has nothing at {part['pointer']}",
            remedy="Correct the pointer, declare the property, or give a default.",
        )
