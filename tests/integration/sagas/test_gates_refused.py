"""Turns at a gate: what one call that is refused for speed again and again may cost the others; two calls of one run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sagas import api, gates
from sagas.models import Action, Gate, Run, Turn
from sagas.orders import Queue
from tests.conftest import Clock
from tests.integration.sagas.conftest import AGENT, drain
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_gates import TOOL, arrivals, clock, one_step, scene, simulator, start

__all__ = ["clear_stage", "clock", "scene", "simulator", "stage"]


@pytest.mark.requirement("S4-5")
def test_who_was_sent_away_asks_anew_behind_those_who_have_not_been_out(scene: Stage, clock: Clock) -> None:
    definition = one_step("unbounded")
    refused = api.run_ref(AGENT, f"{definition}-1")
    scene.simulator.plan({"tool": TOOL, "mode": "throttle", "match": refused, "retry_after_s": 30})
    assert start(definition, 1) == [refused]
    drain()
    clock.put_forward(31)
    drain()  # it has had a turn, and was sent away again
    others = start(definition, 2, 3)
    drain()
    action = api.run_facts(refused).action(TOOL)
    run = Run.objects.get(ref=refused)
    gates.ask(
        Queue(
            run_id=run.pk,
            action_id=action.id,
            contract=action.contract,
            flow=f"{run.team}/{definition}",
            reserved=False,
            sent_away=True,
        )
    )

    clock.put_forward(31)
    assert gates.hand_out(TOOL) == 3
    given = Turn.objects.exclude(go_at=None).order_by("go_at").values_list("run__ref", flat=True)
    assert list(given) == [*others, refused]


@pytest.mark.requirement("S4-5")
def test_one_call_that_is_refused_again_and_again_slows_the_tool_down_once(
    scene: Stage, clock: Clock
) -> None:
    definition = one_step("unbounded")
    refused = api.run_ref(AGENT, f"{definition}-1")
    scene.simulator.plan({"tool": TOOL, "mode": "throttle", "match": refused, "retry_after_s": 5})
    start(definition, 1)
    paces: list[float] = []
    for _ in range(4):
        drain()
        paces.append(Gate.objects.get().pace or 0.0)
        clock.put_forward(6)

    assert len(arrivals(scene.simulator)) == 4
    # Without a turn of its own the first refusal cannot be told from the tool's; from then on it can.
    assert paces[3] >= paces[2] >= paces[1] > 0.0


@pytest.mark.parametrize("apart", [(5.0, 0.0), (0.0, 5.0)])
def test_a_run_that_waits_with_two_calls_is_due_for_the_first_of_their_turns(
    scene: Stage, monkeypatch: pytest.MonkeyPatch, apart: tuple[float, float]
) -> None:
    (ref,) = start("order_fulfilment", 1)
    run = Run.objects.filter(ref=ref)
    run.update(due_at=api.now() + timedelta(minutes=1))
    Gate.objects.create(tool=TOOL)
    for action in Action.objects.filter(run=run.get()).order_by("pk")[:2]:
        Turn.objects.create(run=run.get(), action=action, tool=TOOL, flow="one")
    spread = iter(apart)
    monkeypatch.setattr("sagas.gates.random.uniform", lambda low, high: next(spread))

    assert gates.hand_out(TOOL) == 2

    first, second = sorted(turn.go_at for turn in Turn.objects.filter(run=run.get()) if turn.go_at)
    assert first < second
    assert run.get().due_at == first
