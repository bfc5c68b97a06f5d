"""The order of claims: every lane comes first in its turn, and what it leaves goes by rank."""

from __future__ import annotations

from collections import Counter

from sagas import lanes
from sagas.lanes import Lane


def test_a_command_goes_before_compensations_these_before_retries_and_new_work_comes_last() -> None:
    assert lanes.order(0)[:4] == (Lane.COMMAND, Lane.COMPENSATION, Lane.AGAIN, Lane.NEW)


def test_every_lane_has_room_however_much_waits_in_the_others() -> None:
    firsts = Counter(lanes.order(claim)[0] for claim in range(80))

    assert all(firsts[lane] >= 5 for lane in Lane)
    assert all(set(lanes.order(claim)) == set(Lane) for claim in range(16))


def test_a_lane_whose_slots_are_taken_is_not_looked_into() -> None:
    for claim in range(8):
        assert Lane.SLOW not in lanes.order(claim, slow=False)
        assert Lane.ALONE not in lanes.order(claim, alone=False)
        assert set(lanes.USUAL) <= set(lanes.order(claim, slow=False, alone=False))
