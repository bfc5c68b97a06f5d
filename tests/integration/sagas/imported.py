"""The chains that others wrote down, imported, as workflows against `tests.downstream`, with what somebody checked.

An import leaves notes for whoever checks it. What was checked here stands in `checked`: nothing else is changed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.integration.sagas.conftest import ROOT
from tools.importer import Imported, import_chain, read_chain

SOURCES = ROOT / "examples" / "sources"
BY_EXAMPLES = ("seed-000-ticket-crm-notify", "seed-002-bank-account-opening", "seed-003-order-fulfilment")
"""These have a workflow among the examples, and their failure cases are played on it (`test_source_cases`)."""

RECOVERY_S = 20.0
"""Seconds until an unknown outcome goes to a person. Shorter than by default: fewer queries until then."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One imported chain: its source, and the documents to publish."""

    name: str
    source: dict[str, Any]
    definition: dict[str, Any]
    contracts: tuple[dict[str, Any], ...]

    def step(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.definition["steps"] if one["id"] == name)
        return found

    def contract(self, tool: str) -> dict[str, Any]:
        return next(one for one in self.contracts if one["tool"] == tool)

    def of_step(self, name: str) -> dict[str, Any]:
        """The contract of a step's tool."""
        return self.contract(self.step(name)["tool"])

    def compensation_of(self, name: str) -> dict[str, Any]:
        """The contract of the tool that makes up for a step."""
        return self.contract(self.of_step(name)["compensation"]["tool"])

    def given(self, number: int) -> dict[str, Any]:
        """The input of the run with this number; every value carries it."""
        return {name: f"{name}-{number}" for name in self.definition["input_schema"]["required"]}

    def tools(self) -> Iterator[dict[str, Any]]:
        """What the downstream has to know of each tool."""
        made_up = {
            one["compensation"]["tool"]: one["operation"] for one in self.contracts if "compensation" in one
        }
        asked = {one["status_query"]["tool"] for one in self.contracts if "status_query" in one}
        for one in self.contracts:
            reads = one["effect_kind"] == "read_only"
            role = "compensate" if one["tool"] in made_up else "do"
            if reads:
                role = "query" if one["tool"] in asked else "read"
            yield {
                "system": one["system"],
                "operation": one["operation"],
                "role": role,
                "fields": one["result_schema"].get("required", []),
                "of": made_up.get(one["tool"], ""),
            }


def chains() -> dict[str, Chain]:
    """Every chain that no example stands for, by the name of its file."""
    names = [path.stem for path in sorted(SOURCES.glob("*.json")) if path.stem not in BY_EXAMPLES]
    return {name: _chain(name) for name in names}


def _chain(name: str) -> Chain:
    path = SOURCES / f"{name}.json"
    imported = checked(import_chain(read_chain(path)))
    return Chain(
        name=imported.name,
        source=json.loads(path.read_text("utf-8")),
        definition=imported.definition,
        contracts=imported.contracts,
    )


def checked(imported: Imported) -> Imported:
    """The import with its notes answered, and with names of its own, because chains share names of tools."""
    definition, contracts = copy.deepcopy((imported.definition, imported.contracts))
    operations = {one["tool"]: one["operation"] for one in contracts}
    for one in contracts:
        one["system"] = f"{imported.name}_{one['system']}"
        query = one.get("status_query")
        if query is not None and not query.get("authoritative", True):
            # "`pending` is in words only; the answer has to say so": the downstream is told which call is meant, and
            # reads the very rows that calls write, so that what it does not find is not there.
            query["args"]["of"] = operations[one["tool"]]
            query["authoritative"] = True
            _also_asked(next(other for other in contracts if other["tool"] == query["tool"]), "of")
    for one in contracts:
        one["tool"] = f"{imported.name}_{one['tool']}"
        for part in ("status_query", "compensation", "prior_state"):
            if part in one:
                one[part]["tool"] = f"{imported.name}_{one[part]['tool']}"
    for step in definition["steps"]:
        step["tool"] = f"{imported.name}_{step['tool']}"
    definition["recovery_deadline_s"] = RECOVERY_S
    return Imported(
        name=imported.name, definition=definition, contracts=tuple(contracts), notes=imported.notes
    )


def _also_asked(contract: dict[str, Any], name: str) -> None:
    if name in contract["args_schema"]["properties"]:
        return
    contract["args_schema"]["properties"][name] = {}
    contract["args_schema"]["required"].append(name)
    contract["call"]["query"][name] = {"from": "args", "pointer": f"/{name}"}
