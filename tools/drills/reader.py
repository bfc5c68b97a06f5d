"""Reads drill files into frozen values; reports everything that is wrong at once, with line and column."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from tools.contract import Json
from tools.drills.drill import Drill, Runs, Step, Undo
from tools.drills.rules import faults_of_drill
from tools.problems import Fault
from tools.reader import read_document, refuse
from tools.structure import faults_of_form


def read_drill(path: str | FilePath) -> Drill:
    """The drill in a JSON file. Raises `FileProblems` with all that is wrong; OSError as usual."""
    document, positions = read_document(path)
    refuse(_faults(document), str(path), positions)
    return _drill(document, str(path))


def drill_from_document(document: Json) -> Drill:
    """A drill from a document. Raises `FileProblems` (without lines)."""
    refuse(_faults(document), "", None)
    return _drill(document, "")


def _faults(document: Json) -> list[Fault]:
    return faults_of_form(document, "drill") or list(faults_of_drill(document))


def _drill(document: Json, path: str) -> Drill:
    scenario: dict[str, Json] = document["scenario"]
    workflow: dict[str, Json] = scenario["workflow"]
    more = {name: document[name] for name in ("area", "time_limit_s") if name in document}
    return Drill(
        id=document["id"],
        title=document["title"],
        steps=tuple(step_of(step) for step in workflow["steps"]),
        runs=tuple(_runs(one) for one in scenario.get("runs", [{"id": "W"}])),
        workflow=workflow,
        downstream=tuple(scenario.get("downstream", ())),
        faults=tuple(scenario.get("faults", ())),
        actors={name: tuple(roles) for name, roles in scenario.get("actors", {}).items()},
        commands=tuple(scenario.get("commands", ())),
        expected=document["expected"],
        path=path,
        begins_at=str(scenario.get("begins_at", "")),
        **more,
    )


def _runs(given: dict[str, Json]) -> Runs:
    return Runs(**{name: value for name, value in given.items() if name != "note"})


def step_of(given: dict[str, Json]) -> Step:
    """A step as a drill declares it."""
    fields = {name: _frozen(value) for name, value in given.items()}
    fields["kind"] = fields.pop("class")
    undo = given.get("compensation")
    fields["compensation"] = (
        None if undo is None else Undo(**{name: _frozen(value) for name, value in undo.items()})
    )
    return Step(**fields)


def _frozen(value: Json) -> Any:
    return tuple(value) if isinstance(value, list) else value
