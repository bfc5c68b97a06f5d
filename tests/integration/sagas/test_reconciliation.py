"""The record is compared with the systems (S2-16): confirmed, drift, or could not be checked; and what dangles is told
of (S2-12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sagas import alarms, api, reconcile
from sagas.facts import RunFacts
from sagas.models import Finding, Handoff, Reconciliation
from sagas.reconcile import Pass
from sagas.states import CompensationState, HandoffState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, OPERATOR, drain, effects, settle
from tools.world import World


@pytest.fixture
def compare(published: None, simulator: Simulator) -> Iterator[Callable[[], Pass]]:
    """One pass of the comparison."""
    world = World(simulator.systems)

    def once() -> Pass:
        found = reconcile.reconcile(world)
        assert found is not None
        return found

    yield once
    world.close()


def in_force() -> dict[str, int]:
    return {alarm.code: alarm.count for alarm in alarms.in_force()}


def remove(simulator: Simulator, facts: RunFacts) -> None:
    """A third party releases the stock that a run holds."""
    reservation = facts.action("reserve_stock").provider_ref
    simulator.post("/third-party", {"kind": "reservation", "id": reservation, "state": "gone"})


@pytest.mark.requirement("S2-16")
def test_what_is_there_is_confirmed_and_not_asked_for_again_until_something_changes(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    facts = drained("order_fulfilment", order)

    assert compare() == Pass(looked=3, confirmed=3)
    assert compare() == Pass()
    assert api.run_facts(facts.ref).version == facts.version
    assert Finding.objects.count() == 0
    assert effects(simulator, "reserve_stock") == 1


@pytest.mark.requirement("S2-16", "S2-12")
def test_what_was_compensated_and_is_so_is_confirmed(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    drained("order_fulfilment", order)

    assert compare() == Pass(looked=1, confirmed=1)


@pytest.mark.requirement("S2-16", "S3-20")
def test_a_compensation_that_does_not_hold_is_drift_and_goes_to_a_person_beside_the_final_run(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})
    facts = drained("order_fulfilment", order)
    reservation = facts.action("reserve_stock").provider_ref
    simulator.post("/third-party", {"kind": "reservation", "id": reservation, "state": "held"})

    assert compare() == Pass(looked=1, drift=1)

    (handoff,) = Handoff.objects.all()
    assert (handoff.linked, handoff.reason) == (True, api.Reason.LATE_FACT)
    after = api.run_facts(facts.ref)
    assert after.state is RunState.COMPENSATED
    assert in_force()["reconciliation.drift"] == 1
    assert effects(simulator, "release_stock") == 1  # nothing is repaired by itself


@pytest.mark.requirement("S2-16", "S2-20")
def test_drift_that_stands_opens_one_case_however_often_it_is_found(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    facts = drained("order_fulfilment", order)
    simulator.plan({"tool": "get_reservation", "mode": "query_absent"})

    assert compare() == Pass(looked=3, confirmed=2, drift=1)
    assert compare() == Pass(looked=3, confirmed=2, drift=1)

    (handoff,) = Handoff.objects.all()
    assert handoff.linked
    assert handoff.params["step"] == "reserve_stock"
    drift = [entry for entry in api.entries(facts.ref) if entry.name == "reconciliation.drift"]
    assert drift[0].step == "reserve_stock"
    assert in_force()["reconciliation.drift"] == 1
    # Somebody looks into it and closes the case: the same finding is not held against them every hour.
    looked = api.look(api.handoff_facts(handoff.ref), "mark_acceptable")
    met = [state.id for state in looked.end_states if state.met]
    with api.transaction(), api.desk(handoff.ref, actor=OPERATOR, reason="counted by hand") as desk:
        desk.mark_acceptable(end_state=met[0], looked=looked)
    assert Handoff.objects.get(pk=handoff.pk).state == HandoffState.RESOLVED
    compare()
    assert Handoff.objects.count() == 1


@pytest.mark.requirement("S2-16")
def test_what_could_not_be_checked_is_no_drift_and_is_looked_at_again_next_time(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    drained("order_fulfilment", order)
    simulator.plan({"tool": "get_shipment", "mode": "query_down"})

    assert compare() == Pass(looked=3, confirmed=2, unread=1)
    assert [one.verdict for one in Finding.objects.all()] == ["could_not_check"]
    assert Handoff.objects.count() == 0
    assert "reconciliation.drift" not in in_force()

    simulator.plan({"tool": "get_shipment", "mode": "ok"})
    assert compare() == Pass(looked=3, confirmed=3)
    assert compare() == Pass()


@pytest.mark.requirement("S2-16")
def test_a_comparison_that_is_told_to_stop_goes_on_where_it_was(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any], compare: Callable[[], Pass]
) -> None:
    for number in range(3):
        drained("order_fulfilment", {**order, "order": f"O-{number + 1}"}, key=f"k{number}")
    asked = iter([True, False])
    world = World(simulator.systems)

    first = reconcile.reconcile(world, go_on=lambda: next(asked))
    world.close()

    assert first == Pass(looked=3, confirmed=3)
    assert compare() == Pass(looked=6, confirmed=6)
    assert Reconciliation.objects.filter(finished_at=None).count() == 0


@pytest.mark.requirement("S2-12", "S2-7")
def test_a_compensation_that_dangles_for_five_minutes_raises_an_alarm_until_it_is_done(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"}, {"tool": "release_stock", "mode": "refuse"})
    facts = drained("order_fulfilment", order)
    assert facts.state is RunState.HANDOFF
    assert "compensation.dangling" not in in_force()

    clock.put_forward(4 * 60)
    assert "compensation.dangling" not in in_force()
    clock.put_forward(61)
    assert in_force()["compensation.dangling"] == 1
    assert "compensation.older_than_a_day" not in in_force()
    clock.put_forward(24 * 3600)
    assert in_force()["compensation.older_than_a_day"] == 1

    simulator.plan({"tool": "release_stock", "mode": "ok"})
    assert facts.handoff is not None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="it works again") as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)
    assert facts.state is RunState.COMPENSATED
    assert not {"compensation.dangling", "compensation.older_than_a_day"} & in_force().keys()


@pytest.mark.requirement("S2-12")
def test_a_compensation_whose_outcome_is_unknown_counts_from_when_it_was_lost(
    published: None, simulator: Simulator, clock: Clock, order: dict[str, Any]
) -> None:
    simulator.plan(
        {"tool": "create_shipment", "mode": "refuse"},
        {"tool": "release_stock", "mode": "applied_no_answer"},
    )
    started = api.start_run(actor=AGENT, definition="order_fulfilment", input=order, start_key="lost")
    clock.put_forward(10 * 60)  # however old the run is
    drain()
    made_up = api.run_facts(started.run_ref).action("reserve_stock").compensation
    assert made_up is not None
    if made_up.state is CompensationState.UNKNOWN:
        assert "compensation.dangling" not in in_force()

    facts = settle(started.run_ref, clock)

    assert facts.state is RunState.COMPENSATED
    assert effects(simulator, "release_stock") == 1
