"""COMMIT is applied and its acknowledgement never arrives: what was written is read again, nothing is done twice."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection

from sagas import api, faultpoints
from sagas.executor import drive
from sagas.faultpoints import Plan
from sagas.ledger import advance, workers
from sagas.states import RunState
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tools.world import World

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S1-6", "S2-11")
NUMBERS = itertools.count(9_400_001)


@pytest.fixture(autouse=True)
def nothing_left_planned() -> Iterator[None]:
    yield
    faultpoints.plan()
    connection.close()


def lose(point: str, **about: str) -> Plan:
    """Lose the acknowledgement there; the plan says afterwards whether it came to that."""
    plan = Plan(point=point, do="lose", **about)  # type: ignore[arg-type]
    faultpoints.plan(plan)
    return plan


def test_a_start_that_was_stored_unknown_to_its_caller_is_found_by_its_key(clear_stage: Stage) -> None:
    number, plan = next(NUMBERS), lose("start.commit_lost")
    with pytest.raises(OperationalError):
        clear_stage.start("order_fulfilment", number)
    connection.close()

    ref = clear_stage.start("order_fulfilment", number)

    assert plan.seen >= 1
    assert [entry.name for entry in api.entries(ref)] == ["run.started"]


@pytest.mark.parametrize("point", ["confirm.commit_lost", "prepare.commit_lost", "sent.commit_lost"])
def test_a_step_that_was_stored_unknown_to_its_worker_takes_effect_once(
    clear_stage: Stage, point: str
) -> None:
    number, world = next(NUMBERS), World(clear_stage.simulator.systems)
    ref = clear_stage.start("order_fulfilment", number)
    claimed = advance.claim_run(clear_stage.run(number).pk, workers.enrol("test"))
    assert claimed is not None
    plan = lose(point, tool="reserve_stock" if point.startswith("confirm") else "create_shipment")

    drive(*claimed, world)
    clear_stage.settle()

    assert plan.seen >= 1
    assert clear_stage.facts(number).state is RunState.COMPLETED
    done = Counter(record["tool"] for record in clear_stage.simulator.ledger(kind="effect"))
    assert done == Counter(["reserve_stock", "create_shipment", "send_notice"])
    seqs = [entry.seq for entry in api.entries(ref)]
    assert seqs == list(range(1, len(seqs) + 1))
    world.close()
