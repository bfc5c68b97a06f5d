"""What a person may state of an unknown: from when "it is not there" counts, and when it takes two persons. Pure."""

from __future__ import annotations

from datetime import datetime

from sagas import planner
from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState
from tools.contract import RecoveryClass


def is_unknown(action: ActionFacts) -> bool:
    """Whether the outcome of an action or of an item is unknown, or that of its compensation."""
    compensation = action.compensation
    return action.state is ActionState.UNKNOWN or (
        compensation is not None and compensation.state is CompensationState.UNKNOWN
    )


def not_found_counts_at(unit: ActionFacts) -> datetime | None:
    """The settling point of what is unknown: the action, or its compensation (engine.md, section 3)."""
    if unit.state is ActionState.UNKNOWN:
        return unit.not_found_counts_at
    return unit.compensation.not_found_counts_at if unit.compensation is not None else None


def unknown_units(facts: RunFacts, step: str = "") -> tuple[ActionFacts, ...]:
    """Actions and items, of one step or of all, that are unknown themselves or by their compensation."""
    return tuple(u for u in planner.units(facts) if step in ("", u.step) and is_unknown(u))


def needs_second(facts: RunFacts, verb: str, *, step: str = "", proven: bool = False) -> bool:
    """Whether a verdict counts only once a second person confirms it: of what cannot be taken back and is unknown,
    unless a read proves it (engine.md, sections 6 and 11).
    """
    match verb:
        case "resolve_happened" | "resolve_not_happened":
            return not proven and any(_cannot_be_taken_back(u) for u in unknown_units(facts, step)[:1])
        case "mark_acceptable":
            return any(_cannot_be_taken_back(u) for u in unknown_units(facts))
        case _:
            return False


def _cannot_be_taken_back(unit: ActionFacts) -> bool:
    made_up = unit.compensation
    unknown = unit.contract if unit.state is ActionState.UNKNOWN or made_up is None else made_up.contract
    return unknown.recovery_class is RecoveryClass.IRREVERSIBLE
