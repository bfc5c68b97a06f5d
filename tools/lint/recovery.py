"""Checks of a definition about what happens when a step fails: order, compensation, questions that can be asked.

Whether its steps can be called at all is `tools.lint.definitions`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.canonical import canonical
from tools.contract import CompensationKind, Contract, KeySupport, RecoveryClass
from tools.definition import Definition, OnFailure, Step
from tools.lint import codes
from tools.lint.findings import Contracts, Finding, found

WANTED_SHARE = (4, 5)
"""The share of steps that can be compensated or safely repeated (S2-13: 80 %), as a fraction."""


def in_order(definition: Definition) -> tuple[Step, ...]:
    """The steps in the order in which they are called: held ones after all others (S2-9)."""
    return tuple(step for front in definition.fronts for step in front)


def beside(definition: Definition, step: Step) -> tuple[Step, ...]:
    """The other steps of its group, called at the same time."""
    return tuple(one for one in definition.fronts[definition.front_of(step.id)] if one is not step)


def beside_or_after(definition: Definition, step: Step) -> Iterator[Step]:
    """What may still fail once the step is out."""
    yield from beside(definition, step)
    for front in definition.fronts[definition.front_of(step.id) + 1 :]:
        yield from front


def turns_back(definition: Definition, step: Step) -> bool:
    """Whether a definite failure of the step has the run compensated."""
    return (step.on_rejected or definition.on_failure) is OnFailure.COMPENSATE


def outside_last_third(definition: Definition, step: Step) -> bool:
    """Whether a step's position, counted from 1, is not beyond two thirds; a held one counts as the last."""
    count = len(definition.steps)
    position = count if step.held else definition.steps.index(step) + 1
    return 3 * position <= 2 * count


def recoverable(contract: Contract) -> bool:
    """Whether an effect can be compensated or its call safely repeated, and no step back is barred by it."""
    if contract.recovery_class is RecoveryClass.IRREVERSIBLE:
        return False
    return not contract.has_effect or contract.compensation is not None or _repeatable(contract)


def _repeatable(contract: Contract) -> bool:
    return contract.idempotency.support is KeySupport.HONOURED or contract.idempotency.natural


def _irreversible_comes_last(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """Decisions 7 and 10; S2-8, S2-13, S2-17."""
    count = len(definition.steps)
    for step in in_order(definition):
        contract = contracts.get(step.tool)
        if contract is None or contract.recovery_class is not RecoveryClass.IRREVERSIBLE:
            continue
        later = [
            one.id
            for one in beside_or_after(definition, step)
            if one.tool in contracts and contracts[one.tool].has_effect
        ]
        if outside_last_third(definition, step):
            position = definition.steps.index(step) + 1
            message = f"an irreversible step at position {position} of {count}"
            yield found(
                codes.IN_THE_MIDDLE, step.id, message + (f", before {_listed(later)}" if later else "")
            )
        elif later:
            yield found(
                codes.WRITE_AFTER, step.id, f"an irreversible step is followed by a write: {_listed(later)}"
            )


def _irreversible_stands_alone(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """Law 6: a group turns back as soon as one of it fails, and waits for the others."""
    for step, contract in _known(definition, contracts):
        turning = [one.id for one in beside(definition, step) if turns_back(definition, one)]
        if contract.recovery_class is RecoveryClass.IRREVERSIBLE and turning:
            message = f"{step.tool} is called at the same time as {_listed(turning)}"
            yield found(codes.IN_A_GROUP, step.id, message)


def _effects_can_be_made_up_for(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """S4-23: each effect has a compensation, or nothing after it compensates the run by itself."""
    for step in in_order(definition):
        contract = contracts.get(step.tool)
        if (
            contract is None
            or not contract.has_effect
            or contract.compensation is not None
            or contract.recovery_class is RecoveryClass.IRREVERSIBLE
        ):
            continue
        turning = [one.id for one in beside_or_after(definition, step) if turns_back(definition, one)]
        if turning:
            message = f"{step.tool} has no compensation, and the run is compensated when one of these fails: "
            yield found(codes.NO_REMEDY, step.id, message + _listed(turning))
        else:
            yield found(codes.PERSON_DECIDES, step.id, f"{step.tool} has no compensation")


def _compensations_are_idempotent(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """S2-5, S2-15: a compensation that is repeated takes effect once."""
    for step, contract in _known(definition, contracts):
        compensation = contract.compensation
        maker = contracts.get(compensation.tool) if compensation is not None else None
        if compensation is None or maker is None or compensation.already_done is not None:
            continue
        if not _repeatable(maker):
            yield found(
                codes.NOT_IDEMPOTENT,
                step.id,
                f"{maker.tool} does not honour a key, and nothing shows whether it was done already",
            )


def _irreversible_can_be_asked(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """S0-82, S1-24, S3-11: what cannot be taken back is at least known."""
    for step, contract in _known(definition, contracts):
        if contract.recovery_class is RecoveryClass.IRREVERSIBLE and contract.status_query is None:
            yield found(
                codes.CANNOT_BE_ASKED, step.id, f"{step.tool} is irreversible and cannot be asked afterwards"
            )


def _each_has_its_own_compensation(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """Unlike: of different systems, or made up for with different arguments."""
    sharing: dict[str, dict[str, bytes]] = {}
    for step, contract in _known(definition, contracts):
        compensation = contract.compensation
        if compensation is not None and compensation.kind is not CompensationKind.MITIGATES:
            likeness = canonical([contract.system, dict(compensation.args)])
            sharing.setdefault(compensation.tool, {})[step.id] = likeness
    for tool, steps in sharing.items():
        if len(set(steps.values())) > 1:
            for step_id in steps:
                others = _listed([other for other in steps if other != step_id])
                message = f"{tool} is to make up for this step and for unlike ones: {others}"
                yield found(codes.SHARED_COMPENSATION, step_id, message)


def _most_steps_are_recoverable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """S2-13: reversible share at least 80 %."""
    known = list(_known(definition, contracts))
    good = sum(recoverable(contract) for _, contract in known)
    of, share = len(definition.steps), WANTED_SHARE
    if len(known) == of and good * share[1] < of * share[0]:
        message = f"{good} of {of} steps can be compensated or safely repeated: {100 * good // of} %"
        yield found(codes.FEW_RECOVERABLE, "", message)


def _known(definition: Definition, contracts: Contracts) -> Iterator[tuple[Step, Contract]]:
    return ((step, contracts[step.tool]) for step in definition.steps if step.tool in contracts)


def _listed(names: list[str]) -> str:
    return ", ".join(names)


CHECKS: tuple[Callable[[Definition, Contracts], Iterator[Finding]], ...] = (
    _irreversible_comes_last,
    _irreversible_stands_alone,
    _effects_can_be_made_up_for,
    _compensations_are_idempotent,
    _irreversible_can_be_asked,
    _each_has_its_own_compensation,
    _most_steps_are_recoverable,
)
