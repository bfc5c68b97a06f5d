"""How well a definition can be recovered from, as numbers: what the seed's targets are compared with (S2-13)."""

from __future__ import annotations

from dataclasses import dataclass

from tools.contract import Contract, RecoveryClass
from tools.definition import Definition, OnFailure, Step
from tools.lint.findings import Contracts
from tools.lint.recovery import outside_last_third, recoverable


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Steps, and how many of them are as they should be.

    `recoverable` of `steps` can be compensated or safely repeated (target: 80 %), `late` of the `irreversible` ones
    stand in the last third, and `covered` of the `effects` have a compensation or a person who takes over.
    """

    steps: int
    recoverable: int
    irreversible: int
    late: int
    effects: int
    covered: int

    def __add__(self, other: Measures) -> Measures:
        return Measures(
            steps=self.steps + other.steps,
            recoverable=self.recoverable + other.recoverable,
            irreversible=self.irreversible + other.irreversible,
            late=self.late + other.late,
            effects=self.effects + other.effects,
            covered=self.covered + other.covered,
        )


NOTHING = Measures(steps=0, recoverable=0, irreversible=0, late=0, effects=0, covered=0)


def measure(definition: Definition, contracts: Contracts) -> Measures:
    """The numbers of one definition; a step whose tool is not published counts as a step and as nothing else."""
    known = [(step, contracts[step.tool]) for step in definition.steps if step.tool in contracts]
    irreversible = [step for step, one in known if one.recovery_class is RecoveryClass.IRREVERSIBLE]
    effects = [(step, one) for step, one in known if one.has_effect]
    return Measures(
        steps=len(definition.steps),
        recoverable=sum(recoverable(one) for _, one in known),
        irreversible=len(irreversible),
        late=sum(not outside_last_third(definition, step) for step in irreversible),
        effects=len(effects),
        covered=sum(_covered(definition, step, one) for step, one in effects),
    )


def _covered(definition: Definition, step: Step, contract: Contract) -> bool:
    """Whether somebody or something deals with the effect when it may not stay."""
    if contract.compensation is not None or contract.escalation.to:
        return True
    return (step.on_rejected or definition.on_failure) is OnFailure.HANDOFF
