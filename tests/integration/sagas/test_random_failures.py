"""Runs of the bank flow with a failure at a random step each: what the record says of every one is what is outside."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sagas import api
from sagas.executor import Drain
from sagas.ledger.workers import LEASE_S
from sagas.models import Run
from sagas.states import RunState
from tests.integration.sagas.stage import Stage, clear_stage, stage
from workbench.labs import soak
from workbench.labs.world import Outside

__all__ = ["clear_stage", "stage"]

RUNS, SEED = 40, 11
STRIDE_S = LEASE_S / 2
"""The clock goes on by this much at least, so that many waits end at once; less than a lease of this drain's own."""

SILENT = ("no_answer", "applied_no_answer", "slow")
"""What takes the time of a call's limit by the clock on the wall: the soak itself plays it, with a thousand runs."""


@pytest.mark.requirement("S2-14")
def test_forty_runs_that_fail_at_a_random_step_end_as_their_record_says(
    clear_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "MODES", tuple(mode for mode in soak.MODES if mode not in SILENT))
    monkeypatch.setattr(soak, "COMPENSATION_MODES", ("fail_before", "fail_after", "throttle", "reset"))
    chance, outside = random.Random(SEED), Outside(clear_stage.simulator.admin_url)
    verdict = soak.Verdict(runs=RUNS)
    started = {}
    for number in range(RUNS):
        business = f"A-{SEED}{number:06d}"
        started[business] = soak.start_one(business, number, SEED, chance, outside, verdict)
    _settle(clear_stage)

    for business, ref in started.items():
        soak.judge_one(api.run_facts(ref), business, outside, verdict)

    print(verdict.line())  # noqa: T201
    assert (verdict.inconsistent, verdict.out_of_order, verdict.refused_starts) == ([], [], 0)
    assert sum(verdict.ends.values()) == RUNS
    assert {"completed", "compensated", "failed_clean"} < set(verdict.ends)
    # A record that says otherwise is seen: none of these runs could pass for one that came to another end.
    for business, ref in started.items():
        facts, lies = api.run_facts(ref), soak.Verdict()
        other = RunState.COMPLETED if facts.state is not RunState.COMPLETED else RunState.FAILED_CLEAN
        soak.judge_one(replace(facts, state=other), business, outside, lies)
        assert lies.inconsistent, ref


def _settle(stage: Stage) -> None:
    """Until every run is with a person or at its end; a wait is jumped over as soon as nothing else is due."""
    drainer = Drain("test")
    try:
        for _ in range(200):
            drainer.run(seconds=10.0, linger_s=0.0)
            due = Run.objects.exclude(state="handoff").exclude(due_at=None).order_by("due_at")
            first = due.values_list("due_at", flat=True).first()
            if first is None:
                return
            stage.clock.put_forward(max((first - api.now()).total_seconds(), STRIDE_S))
    finally:
        drainer.close()
    raise AssertionError("The runs do not come to rest.")
