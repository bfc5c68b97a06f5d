"""A soak can be played again: what is ended when, what is started and how the world misbehaves follow from the seed."""

from collections import Counter

import pytest

from workbench.labs.chaos.jobs import FLOWS, job
from workbench.labs.chaos.schedule import KILLS, PER_MINUTE, schedule
from workbench.labs.chaos.watch import percentile


def test_the_same_seed_gives_the_same_schedule_and_the_same_jobs() -> None:
    assert schedule(7, 600) == schedule(7, 600)
    assert [job(7, number) for number in range(200)] == [job(7, number) for number in range(200)]
    assert schedule(7, 600) != schedule(8, 600)
    assert [job(7, number) for number in range(200)] != [job(8, number) for number in range(200)]


def test_ten_minutes_hold_as_many_faults_as_are_asked_for() -> None:
    kinds = Counter(fault.kind for fault in schedule(1, 600))
    least = {"database": 20, "broker": 20, "worker": 40, "web": 20, "sweep": 20, "relay": 20, "pause": 20}
    assert all(kinds[kind] >= number for kind, number in least.items())
    assert sum(kinds[kind] for kind in KILLS) >= 400
    assert set(kinds) == set(PER_MINUTE)


@pytest.mark.parametrize("seconds", [10, 60])
def test_a_short_soak_has_every_kind_and_nothing_after_its_end(seconds: int) -> None:
    faults = schedule(3, seconds)
    assert {fault.kind for fault in faults} == set(PER_MINUTE)
    assert list(faults) == sorted(faults)
    assert all(0 < fault.at < seconds for fault in faults)
    assert all(6 < fault.down_s < 10 for fault in faults if fault.kind == "pause")  # past the lease


def test_every_flow_is_started_and_the_world_leaves_some_alone() -> None:
    jobs = [job(1, number) for number in range(400)]
    started = {one.body.get("definition", "ad hoc") for one in jobs}
    assert len(started) == len(FLOWS)
    assert any(not one.rules for one in jobs)
    assert any(len(one.rules) == 2 for one in jobs)
    assert len({one.business for one in jobs}) == len(jobs)


def test_a_percentile_of_nothing_is_nothing() -> None:
    assert percentile([], 0.99) == 0.0
    assert percentile([5.0, 1.0, 3.0], 0.99) == 5.0
    assert percentile([float(n) for n in range(1, 101)], 0.5) == 51.0
