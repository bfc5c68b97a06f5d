"""Claims of people that have lapsed: whoever meets one first, the sweep or who claims next, puts its end on record."""

from __future__ import annotations

from sagas.entries import engine
from sagas.ledger.desk import Desk
from sagas.models import Handoff
from sagas.states import HandoffState


def has_lapsed(desk: Desk, handoff: Handoff) -> bool:
    """Whether the claim is over by the database's clock."""
    until = handoff.claim_until
    return handoff.state == HandoffState.CLAIMED and until is not None and until <= desk.now


def let_go(desk: Desk, handoff: Handoff) -> None:
    """Give the case back to the queue in the name of the engine."""
    desk.move(
        handoff,
        "release",
        HandoffState.OPEN,
        actor=engine("planner"),
        reason="the claim lapsed",
        after={"held_by": handoff.claimed_by_name},
        claimed_by="",
        claimed_by_name="",
        claimed_at=None,
        claim_until=None,
    )
