"""One call that a tool refuses for speed again and again: what it may cost the others."""

from __future__ import annotations

import pytest

from sagas import api, gates
from sagas.models import Gate, Run, Turn
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
