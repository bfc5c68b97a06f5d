"""A workflow of the soak beside the shipped ones: the bank flow with one call that a person confirms each time."""

from __future__ import annotations

import copy

from sagas import api
from tools.contract import Json
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from workbench.labs.chaos.jobs import CONFIRMED
from workbench.labs.story import PUBLISHER, ROOT

TOOL = "allocate_limit"
VERSION = 91
"""Far above what is shipped, so that a next shipped version does not collide with it."""


def publish() -> None:
    """Publish the contract that asks for a confirmation, and the workflow that pins it."""
    contract: Json = copy.deepcopy(read_contract(ROOT / "tools" / "catalog" / f"{TOOL}.toml").document)
    contract |= {"version": VERSION, "require_confirmation": True}
    api.publish_contract(contract_from_document(contract), actor=PUBLISHER)
    workflow: Json = copy.deepcopy(read_definition(ROOT / "examples" / "bank_opening.toml").document)
    workflow |= {"name": CONFIRMED, "version": 1}
    for step in workflow["steps"]:
        if step["tool"] == TOOL:
            step["contract_version"] = VERSION
    api.publish_definition(definition_from_document(workflow), actor=PUBLISHER)
