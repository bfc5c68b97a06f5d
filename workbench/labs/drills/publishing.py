"""Publishes contracts and workflow of a drill, whatever the lint thinks of it, and tells the outside its tools."""

from __future__ import annotations

from collections.abc import Mapping

from sagas import api
from sagas.facts import Actor
from tools import lint
from tools.contract import Json
from tools.drills.drill import Step
from tools.drills.translate import Translated, changed, documents, translated
from tools.reader import contract_from_document, definition_from_document
from workbench.labs.drills.cue import Score
from workbench.labs.drills.inside import rows
from workbench.labs.drills.outside import gated_calls
from workbench.labs.world import Outside

REASON = "a drill plays what such a workflow leads to"


class Publisher:
    """The versions of one drill's workflow."""

    def __init__(self, score: Score, outside: Outside) -> None:
        self._score, self._outside = score, outside
        self._gated = gated_calls(score.drill)
        self.version = 0
        self.steps: tuple[Step, ...] = score.drill.steps
        self.warnings: set[str] = set()
        self._more_args: dict[str, Json] = {}
        self._texts: dict[str, str] = {}

    def first(self, actor: Actor) -> None:
        """Publish the version that the runs start with."""
        self.version = 1
        workflow = self._score.drill.workflow
        if "calendar" in workflow:
            team = {"name": workflow["team"], **workflow["calendar"]}
            api.publish_team(api.team_from_document(team), team, actor=actor)
        self._publish(
            translated(self._score.drill, prefix=self._score.names.prefix, gated=self._gated), actor
        )

    def next(self, change: Mapping[str, Json], actor: Actor) -> None:
        """Publish the next version."""
        self.version += 1
        self.steps = changed(self.steps, change)
        for step, more in change.get("args_schema", {}).items():
            self._more_args[step] = more
        self._texts |= change.get("text", {})
        made = documents(
            self.steps,
            self._score.drill.workflow,
            prefix=self._score.names.prefix,
            version=self.version,
            gated=self._gated,
            texts=self._texts,
            more_args=self._more_args,
        )
        self._publish(made, actor)

    def contract(self, step: str, change: Mapping[str, Json], actor: Actor) -> None:
        """Publish the next version of one step's contract, and of nothing else."""
        self.version += 1
        made = documents(
            changed(self.steps, change),
            self._score.drill.workflow,
            prefix=self._score.names.prefix,
            version=self.version,
            gated=self._gated,
            texts={**self._texts, **change.get("text", {})},
            more_args={**self._more_args, **change.get("args_schema", {})},
        )
        tool = self._score.names.call(self._score.drill.step(step), "do")
        for document in made.contracts:
            if document["tool"] == tool:
                api.publish_contract(contract_from_document(document), actor=actor)

    def withdraw(self, tool: str, actor: Actor) -> None:
        """Take every version of a tool out of use, whoever still needs it."""
        name = self._score.names.tool(tool)
        for version in self._versions(name):
            api.retire_contract(name, version, actor=actor, reason=REASON, withdraw=True)

    def restore(self, tool: str, actor: Actor) -> None:
        """Put what was taken out of use back into it; a version that came afterwards never was out of it."""
        name = self._score.names.tool(tool)
        for one in api.retirements():
            if (one.kind, one.name) == ("contract", name):
                api.reinstate("contract", name, one.version, actor=actor, reason=REASON)

    def _versions(self, name: str) -> list[int]:
        found = rows("SELECT version FROM sagas_contractversion WHERE tool = %s ORDER BY version", [name])
        return [int(row["version"]) for row in found]

    def _publish(self, made: Translated, actor: Actor) -> None:
        self._outside.teach(*made.tools)
        contracts = {document["tool"]: contract_from_document(document) for document in made.contracts}
        for contract in contracts.values():
            api.publish_contract(contract, actor=actor)
        definition = definition_from_document(made.definition)
        found = lint.check(definition, contracts)
        self.warnings |= {finding.code for finding in found}
        blocked = {finding.code for finding in found if lint.blocks([finding])}
        waivers = [lint.Waiver(code=code, reason=REASON) for code in sorted(blocked)]
        api.publish_definition(definition, actor=actor, waivers=waivers)
