"""A run that is read in part ends as if it had been read whole, with the same trail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sagas import api
from sagas.ledger import window
from sagas.ledger.start import run_ref
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import INPUTS, Stage, stage
from tests.integration.sagas.trips import publish as publish_trips
from tests.integration.sagas.trips import start as start_trip

__all__ = ["stage"]


@contextmanager
def read_narrowly() -> Iterator[None]:
    """Every run is read in part, no further ahead than a group of three needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "READ_WHOLE", 0)
        patch.setattr(window, "AHEAD", 3)
        yield


FLOWS: tuple[tuple[str, tuple[dict[str, Any], ...]], ...] = (
    ("bank_opening", ()),
    ("bank_opening", ({"tool": "send_sms", "mode": "refuse"},)),
    ("bank_opening", ({"tool": "debit_fee", "mode": "refuse"},)),
    ("bank_opening", ({"tool": "create_customer", "mode": "refuse"},)),
    (
        "bank_opening",
        ({"tool": "send_sms", "mode": "refuse"}, {"tool": "withdraw_file", "mode": "refuse"}),
    ),
    ("order_fulfilment", ({"tool": "create_shipment", "mode": "reset", "applied": True, "attempts": [1]},)),
    ("order_fulfilment", ({"tool": "create_shipment", "mode": "reset", "attempts": [1]},)),
    ("ticket_crm_notice", ({"tool": "update_account", "mode": "refuse"},)),
    ("trip_at_once", ()),
    ("trip_at_once", ({"tool": "book_car", "mode": "refuse"},)),
    ("trip_asked", ({"tool": "book_hotel", "mode": "refuse"},)),
)


@pytest.fixture(scope="module")
def both_ways(stage: Stage) -> Stage:
    """Every flow, read whole and read narrowly."""
    publish_trips()
    numbers = [9_200_000 + 100 * narrow + flow for narrow in (0, 1) for flow in range(len(FLOWS))]
    rules = [
        {**rule, "match": run_ref(AGENT, f"run-{number}")}
        for number in numbers
        for rule in FLOWS[number % 100][1]
    ]
    stage.simulator.plan(*rules)
    for narrow in (0, 1):
        for number in numbers[narrow * len(FLOWS) :][: len(FLOWS)]:
            name = FLOWS[number % 100][0]
            if name in INPUTS:
                stage.start(name, number)
            else:
                start_trip(stage, number, name)
        if narrow:
            with read_narrowly():
                stage.settle()
        else:
            stage.settle()
    return stage


@pytest.mark.parametrize("flow", range(len(FLOWS)), ids=[f"{name}-{n}" for n, (name, _) in enumerate(FLOWS)])
def test_a_run_that_is_read_in_part_leaves_the_same_trail(both_ways: Stage, flow: int) -> None:
    whole, narrow = (both_ways.facts(9_200_000 + 100 * kind + flow) for kind in (0, 1))

    assert narrow.state is whole.state
    # In a group what answers first is confirmed first.
    assert sorted(narrow.effects_left) == sorted(whole.effects_left)
    assert [(a.step, a.state, a.confirm_seq is None) for a in narrow.actions] == [
        (a.step, a.state, a.confirm_seq is None) for a in whole.actions
    ]
    trails = [
        Counter((e.name, e.step, e.source, e.target) for e in api.entries(f.ref)) for f in (whole, narrow)
    ]
    for trail in trails:
        # How often was asked depends on the clock.
        for told in [one for one in trail if one[0] == "tool.execution.queried"]:
            del trail[told]
    assert trails[0] == trails[1]
