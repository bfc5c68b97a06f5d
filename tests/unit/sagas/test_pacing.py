"""Turns at a gate: evenly spaced, shared between those who wait, the oldest first."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sagas import pacing
from sagas.pacing import Shares, Ticket
from tests import builders

NOW = builders.NOW
NOBODY = Shares(flows={}, served=0.0, handed=0)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def ticket(number: int, flow: str, *, reserved: bool = False, waited: float = 0.0) -> Ticket:
    return Ticket(id=number, run_id=number, flow=flow, reserved=reserved, since=after(-waited))


def slots(**how: object) -> list[float]:
    usual: dict[str, object] = {
        "opens_at": NOW,
        "until": after(1),
        "next_at": None,
        "rate": 10.0,
        "burst": 1,
        "most": 100,
    }
    times, _ = pacing.slots(**{**usual, **how})  # type: ignore[arg-type]
    return [round((at - NOW).total_seconds(), 6) for at in times]


def test_turns_are_evenly_spaced_and_none_is_further_off_than_the_horizon() -> None:
    assert slots(rate=4.0) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert slots(rate=4.0, most=2) == [0.0, 0.25]
    assert slots(rate=0.5) == [0.0]


def test_after_a_rest_a_burst_comes_at_once_and_then_the_rate_counts_again() -> None:
    assert slots(rate=4.0, burst=3, next_at=after(-60)) == [0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0]


def test_turns_handed_out_before_are_not_handed_out_again() -> None:
    _, following = pacing.slots(opens_at=NOW, until=after(1), next_at=None, rate=4.0, burst=1, most=3)
    assert slots(rate=4.0, next_at=following) == [0.75, 1.0]


def test_a_closed_gate_lets_nobody_through_before_its_time() -> None:
    assert slots(opens_at=after(30)) == []
    assert slots(opens_at=after(0.5), rate=4.0) == [0.5, 0.75, 1.0]


def test_without_a_rate_everybody_goes_when_the_gate_is_open() -> None:
    assert slots(rate=None, most=3) == [0.0, 0.0, 0.0]
    assert slots(rate=None, opens_at=after(2), most=3) == []


@given(
    rate=st.floats(0.5, 50.0),
    burst=st.integers(1, 5),
    asked=st.lists(st.floats(0.0, 0.7), min_size=1, max_size=60),
)
def test_whenever_it_is_asked_no_second_sees_more_than_rate_and_burst(
    rate: float, burst: int, asked: list[float]
) -> None:
    now, following, taken = NOW, None, list[datetime]()
    for pause in asked:
        now += timedelta(seconds=pause)
        times, following = pacing.slots(
            opens_at=now,
            until=now + timedelta(seconds=pacing.HORIZON_S),
            next_at=following,
            rate=rate,
            burst=burst,
            most=7,
        )
        taken += times
    for first in taken:
        within = [at for at in taken if first <= at < first + timedelta(seconds=1)]
        assert len(within) <= rate + burst + 1e-6


def test_a_flood_of_one_workflow_does_not_make_another_wait_for_all_of_it() -> None:
    flood = [ticket(n, "shop/flood", waited=100) for n in range(500)]
    others = [ticket(1000 + n, "shop/other", waited=1) for n in range(3)]

    chosen, _ = pacing.pick([*flood, *others], NOBODY, 8)

    assert Counter(one.flow for one in chosen) == {"shop/flood": 5, "shop/other": 3}
    assert [one.id for one in chosen if one.flow == "shop/other"] == [1000, 1001, 1002]


def test_one_turn_at_a_time_is_as_fair_as_many() -> None:
    """The shares are remembered: else the one whose call is oldest would have every turn."""
    waiting = [ticket(n, "a", waited=100 - n) for n in range(50)] + [
        ticket(100 + n, "b", waited=10 - n) for n in range(10)
    ]
    shares, order = NOBODY, []
    for _ in range(20):
        (one,), shares = pacing.pick(waiting, shares, 1)
        waiting.remove(one)
        order.append(one.flow)

    assert Counter(order) == {"a": 10, "b": 10}
    assert all(sooner != later for sooner, later in pairwise(order))


def test_within_a_workflow_whoever_has_waited_longest_goes_first() -> None:
    waiting = [ticket(1, "a", waited=3), ticket(2, "a", waited=9), ticket(3, "a", waited=6)]
    chosen, _ = pacing.pick(waiting, NOBODY, 3)
    assert [one.id for one in chosen] == [2, 3, 1]


def test_a_workflow_that_was_away_saves_no_turns_up() -> None:
    _, shares = pacing.pick([ticket(n, "a") for n in range(100)], NOBODY, 100)
    waiting = [ticket(200 + n, "a") for n in range(20)] + [ticket(300 + n, "b") for n in range(20)]
    chosen, _ = pacing.pick(waiting, shares, 10)
    assert Counter(one.flow for one in chosen)["b"] <= 6


def test_what_makes_up_for_things_goes_first_and_leaves_new_work_one_turn_in_four() -> None:
    forward = [ticket(n, "a", waited=1000) for n in range(50)]
    back = [ticket(100 + n, "a", reserved=True) for n in range(50)]

    chosen, _ = pacing.pick([*forward, *back], NOBODY, 16)

    assert Counter(one.reserved for one in chosen) == {True: 12, False: 4}
    alone, _ = pacing.pick(forward, NOBODY, 16)
    assert len(alone) == 16


def test_a_learned_pace_grows_back_and_never_beyond_what_is_declared() -> None:
    def at(seconds: float, declared: float | None = None) -> float | None:
        return pacing.pace(declared, 5.0, NOW, after(seconds))

    assert at(0) == 5.0
    assert at(10) == 10.0
    assert at(-30) == 5.0
    assert at(20, declared=12.0) == 12.0
    assert at(1000) is None
    assert at(1000, declared=12.0) == 12.0
    assert pacing.pace(None, None, None, NOW) is None


def test_another_refusal_halves_the_pace_down_to_a_least() -> None:
    assert pacing.slower(None) == pacing.FIRST_PACE
    assert pacing.slower(8.0) == 4.0
    assert pacing.slower(0.01) == pacing.SLOWEST_PACE


def test_the_time_to_look_again_is_about_when_the_turn_comes() -> None:
    at = pacing.estimate(opens_at=after(30), next_at=None, rate=2.0, before=10)
    assert at == after(35)
