"""The order in which due runs are claimed: lanes with reserved room each (engine.md, section 4). Plain values."""

from __future__ import annotations

from enum import IntEnum


class Lane(IntEnum):
    """What a run is due for. SLOW waits for a slot for long calls, ALONE is suspected of killing whoever works on it."""

    COMMAND = 0
    COMPENSATION = 1
    AGAIN = 2
    NEW = 3
    SLOW = 4
    ALONE = 5


USUAL = (Lane.COMMAND, Lane.COMPENSATION, Lane.AGAIN, Lane.NEW)
EVERY = tuple(Lane)

SLOW_OVER_S = 30.0
"""A tool that may take longer than this has slots of its own, so that it cannot fill them all."""

SUSPECT_AFTER = 2
"""Deaths of workers at one and the same place after which a run is worked on beside no other suspect."""

_APART = len(USUAL) - 1


def order(claim: int, *, slow: bool = True, alone: bool = True) -> tuple[Lane, ...]:
    """The lanes in the order in which the n-th claim looks into them: each comes first in its turn, what it leaves goes
    by rank. `slow` and `alone`: whether there is a slot for such a run.
    """
    first = USUAL[claim % len(USUAL)]
    apart = tuple(lane for lane, free in ((Lane.SLOW, slow), (Lane.ALONE, alone)) if free)
    apart = apart[::-1] if claim // (2 * len(USUAL)) % 2 else apart
    rest = tuple(lane for lane in USUAL if lane is not first)
    # New work and what has a slot of its own share a turn: neither starves the other.
    return (*apart, first, *rest) if claim % (2 * len(USUAL)) == _APART else (first, *rest, *apart)
