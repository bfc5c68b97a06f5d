"""What a person may leave as it is instead of having it made up for. Pure; who may is decided elsewhere."""

from __future__ import annotations

from sagas import planner
from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState, PermitState

CAN_RUN = frozenset({CompensationState.REGISTERED, CompensationState.DUE, CompensationState.FAILED})
"""The states from which a person can set a compensation going."""


def failed_compensations(facts: RunFacts, step: str) -> tuple[ActionFacts, ...]:
    """The action of a step, or its items, whose compensation has failed."""
    return tuple(unit for unit in planner.units(facts) if unit.step == step and _failed(unit))


def failed_steps(facts: RunFacts) -> frozenset[str]:
    """Every step with a compensation that has failed, found in one pass: a run may have ten thousand."""
    return frozenset(unit.step for unit in planner.units(facts) if _failed(unit))


def _failed(unit: ActionFacts) -> bool:
    return unit.compensation is not None and unit.compensation.state is CompensationState.FAILED


def refused_items(facts: RunFacts, step: str) -> tuple[ActionFacts, ...]:
    """The items of a step done in part that were refused: each can be accepted by itself, as none has an effect."""
    action = next((one for one in planner.current(facts) if one.step == step), None)
    if action is None or action.state is not ActionState.PARTIAL:
        return ()
    return tuple(item for item in action.items if item.state is ActionState.REJECTED)


def can_be_left_out(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """What a plan may leave out, last step first: a compensation that is open, failed ones only after a real try."""
    return tuple(
        unit
        for unit in planner.to_compensate(facts)
        if unit.compensation is not None
        and unit.compensation.state in CAN_RUN
        and (unit.compensation.state is not CompensationState.FAILED or tried(unit))
    )


def tried(action: ActionFacts) -> bool:
    """Whether a failed compensation was really tried: a call went out, or the look before it said no.

    What failed because nobody signed it was never tried.
    """
    compensation = action.compensation
    if compensation is None:
        return False
    permit = compensation.permit
    unsigned = permit is not None and permit.state is PermitState.REJECTED
    return compensation.sent_at is not None or not unsigned
