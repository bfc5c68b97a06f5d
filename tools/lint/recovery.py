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
    return tuple(sorted(definition.steps, key=lambda step: step.held))


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
    order = in_order(definition)
    count = len(order)
    for index, step in enumerate(order):
        contract = contracts.get(step.tool)
        if contract is None or contract.recovery_class is not RecoveryClass.IRREVERSIBLE:
            continue
        later = [s.id for s in order[index + 1 :] if s.tool in contracts and contracts[s.tool].has_effect]
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


def _effects_can_be_made_up_for(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """S4-23: each effect has a compensation, or nothing after it compensates the run by itself."""
    order = in_order(definition)
    for index, step in enumerate(order):
        contract = contracts.get(step.tool)
        if (
            contract is None
            or not contract.has_effect
            or contract.compensation is not None
            or contract.recovery_class is RecoveryClass.IRREVERSIBLE
        ):
            continue
        turning = [
            later.id
            for later in order[index + 1 :]
            if (later.on_rejected or definition.on_failure) is OnFailure.COMPENSATE
        ]
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
    _effects_can_be_made_up_for,
    _compensations_are_idempotent,
    _irreversible_can_be_asked,
    _each_has_its_own_compensation,
    _most_steps_are_recoverable,
)
