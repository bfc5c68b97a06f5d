"""A soak can be played again: what is ended when, what is started and how the world misbehaves follow from the seed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from workbench.labs.arena import Arena
from workbench.labs.chaos import replay
from workbench.labs.chaos import report as reports
from workbench.labs.chaos.door import Say
from workbench.labs.chaos.jobs import FLOWS, job
from workbench.labs.chaos.report import Report, plan_of
from workbench.labs.chaos.schedule import KILLS, PER_MINUTE, Fault, schedule
from workbench.labs.chaos.striker import PUT_OFF_S, Striker
from workbench.labs.chaos.watch import Figures, Watch, percentile
from workbench.labs.checker.found import Found
from workbench.labs.checker.histories import Histories, Said, Snapshot
from workbench.labs.checker.invariants import INVARIANTS


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


# --- What is counted has happened --------------------------------------------------------------------------------


@dataclass
class Ground:
    """Stands for an arena: a worker whose child comes late, a database."""

    children: list[int] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)

    def names(self, kind: str = "") -> list[str]:
        return ["worker-1"]

    def children_of(self, name: str) -> list[int]:
        return self.children

    def kill_child(self, pid: int) -> None:
        self.struck.append(f"child {pid}")

    def kill_database(self) -> None:
        self.struck.append("database")

    def start_database(self) -> None:
        self.struck.append("database is back")


class NoWatch:
    """Stands for the watch, which measures."""

    def struck(self, kind: str) -> None:
        """Nobody tells the story of it."""

    def killed(self, pids: list[int]) -> None:
        """Nobody measures here."""

    def covers_all(self) -> None:
        """Nor here."""


def fault(kind: str, at: float, *, down_s: float = 0.0) -> Fault:
    return Fault(at=at, kind=kind, pick=0.0, down_s=down_s, group=False)


def striker(ground: Ground, *faults: Fault) -> Striker:
    return Striker(cast(Arena, ground), cast(Watch, NoWatch()), faults)


def test_a_fault_that_finds_nobody_is_put_off_until_it_does_and_counted_once() -> None:
    ground = Ground()
    one = striker(ground, fault("child", 1.0))

    one.strike(1.0)
    assert (one.done["child"], one.left) == (0, 1)

    ground.children.append(4711)
    one.strike(1.0 + PUT_OFF_S)
    assert (one.done["child"], one.left, ground.struck) == (1, 0, ["child 4711"])


def test_what_is_down_is_not_killed_again_before_it_is_back() -> None:
    ground = Ground()
    one = striker(ground, fault("database", 1.0, down_s=60.0), fault("database", 1.1))

    one.strike(2.0)
    assert (one.done["database"], one.left, ground.struck) == (1, 1, ["database"])


# --- How long it takes ---------------------------------------------------------------------------------------------


class Scripted(Watch):
    """A watch whose database is a list, and whose clock is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("")
        self.rows: list[tuple[Any, ...]] = []
        self.now = 100.0
        monkeypatch.setattr("workbench.labs.chaos.watch.time.monotonic", lambda: self.now)

    def ask(self, query: str, values: Any = ()) -> list[Any]:
        return self.rows

    def at(self, now: float, *rows: tuple[Any, ...]) -> Scripted:
        """So late it is, and this is what the database says."""
        self.now, self.rows = now, list(rows)
        return self


HELD, FREED, TAKEN = (1, 4, "dead"), (1, 5, "", False, False), (1, 6, "another", False, False)


def test_recovery_counts_from_the_kill_until_somebody_has_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Scripted(monkeypatch)
    watch.at(100.0, HELD).killed([4711])
    watch.at(105.0, (1, 4, "dead", False, False)).look()
    watch.at(106.5, FREED).look()
    watch.at(107.0, TAKEN).look()

    assert (watch.figures.found, watch.figures.worker) == ([6.5], [7.0])


def test_who_is_killed_twice_counts_from_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Scripted(monkeypatch)
    watch.at(100.0, HELD).killed([4711])
    watch.at(103.0, HELD).killed([4711])
    watch.at(107.0, TAKEN).look()

    assert watch.figures.worker == [4.0]


@pytest.mark.parametrize(("other_since", "counted"), [(99.0, 7.0), (101.0, 5.0)])
def test_a_killed_sweep_covers_a_run_only_when_no_other_has_listened_since_its_worker_fell_silent(
    monkeypatch: pytest.MonkeyPatch, other_since: float, counted: float
) -> None:
    watch = Scripted(monkeypatch)
    watch.at(100.0, HELD).killed([4711])
    watch.at(102.0).sweep_killed([other_since])
    watch.at(107.0, TAKEN).look()

    assert watch.figures.worker == [counted]


def test_a_slow_recovery_is_told_with_what_was_struck_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Scripted(monkeypatch)
    for at, kind in ((90.0, "web"), (99.0, "child"), (102.0, "database")):
        watch.at(at).struck(kind)
        if kind == "child":
            watch.at(100.0, HELD).killed([4711])
    watch.at(104.0, FREED).look()
    watch.at(107.0, TAKEN).look()

    assert [str(one) for one in watch.figures.slow] == [
        "run 1: found after 4.0 s, taken after 7.0 s; struck: child -1.0, database +2.0"
    ]


# --- What the report says ----------------------------------------------------------------------------------------


def report(*outcomes: str, wrong: tuple[str, ...] = (), **more: Any) -> Report:
    """A soak whose operations ended so and whose invariants were looked at a thousand times."""
    said = tuple(
        Said(kind="command", id=str(n), outcome=one, verb="retry", detail="stale: It has moved on.")
        for n, one in enumerate(outcomes)
    )
    tables = {"run": ()}
    return Report(
        seed=7,
        seconds=60.0,
        kills={"worker": 4, "child": 30, "pause": 2},
        histories=Histories(said=said, records=(), told={}, snapshot=Snapshot(tables=tables, contracts={})),
        found={
            name: Found(trials=1000, wrong=list(wrong) if name == "V1 no loss" else []) for name in INVARIANTS
        },
        **{"figures": Figures(), "settled_s": 3.0, **more},
    )


def test_the_line_counts_kills_and_has_a_bound_beside_each_zero() -> None:
    sound = report(*["ok"] * 100)

    assert sound.holds
    assert sound.verdict().startswith("kills 34 lost 0 (< 0.0030) doubled 0 (< 0.0030)")
    assert sound.verdict().endswith("ok 100.0% seed 7: holds")
    assert sound.verdict().count(" 0 (< 0.0030)") == len(INVARIANTS)


def test_a_refusal_is_no_success_and_too_few_successes_prove_nothing() -> None:
    assert not report(*["ok"] * 90, *["refused"] * 10).void
    assert report(*["ok"] * 89, *["refused"] * 11).void
    assert report(*["ok"] * 89, *["info"] * 11).void
    assert report().void
    assert report(*["ok"] * 89, *["refused"] * 11).verdict().endswith(": VOID")
    assert "refused retry stale 11" in list(report(*["ok"] * 89, *["refused"] * 11).lines())


def test_one_contradiction_or_a_late_recovery_and_it_does_not_hold() -> None:
    assert not report("ok", wrong=("run_a was acknowledged and is gone",)).holds
    few, many = [9.0] * 99, [9.0] * 100
    assert report("ok", figures=Figures(worker=few)).holds  # of fewer than 100 a 99th percentile says nothing
    assert report("ok", figures=Figures(worker=many)).late == ["worker_p99 9.0 > 8.0"]
    assert report("ok", figures=Figures(broker=[11.0] * 100)).late == ["broker_p99 11.0 > 10.0"]
    assert report("ok", figures=Figures(worker=[1.0] * 100, found=[16.0] * 100)).late == [
        "found_p99 16.0 > 15.0"
    ]


def test_a_report_is_told_again_and_played_again_only_with_the_same_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "soak.json"
    kept.write_text(json.dumps(report("ok").document()))
    told: list[str] = []
    played: list[dict[str, Any]] = []

    def play(options: dict[str, Any], say: Say) -> bool:
        played.append(options)
        return True

    monkeypatch.setattr("workbench.labs.chaos.soak.run", play)

    assert reports.DOOR.run({"file": kept}, told.append)
    assert told[-1] == report("ok").verdict()
    assert replay.DOOR.run({"file": kept, "json": None}, told.append)
    assert played == [{"seed": 7, "minutes": 1.0, "json": None}]

    changed = json.loads(kept.read_text()) | {"jobs_sha256": "another"}
    kept.write_text(json.dumps(changed))
    assert not replay.DOOR.run({"file": kept, "json": None}, told.append)
    assert len(played) == 1


def test_a_plan_is_known_by_its_seed_and_its_length() -> None:
    assert plan_of(7, 60) == plan_of(7, 60)
    assert plan_of(7, 60) != plan_of(8, 60)
    assert plan_of(7, 60)["jobs_sha256"] == plan_of(7, 120)["jobs_sha256"]
