"""What a run costs: commits and statements, pinned so that nobody raises them unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from sagas import api
from sagas.executor import drive
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.states import RunState
from tests.conftest import PUBLISHER
from tests.integration.sagas.counted import touched
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.trips import start, trip
from tools.reader import definition_from_document
from tools.world import World

__all__ = ["clear_stage", "stage"]


class Bill:
    """Commits, statements and trips of this thread's connection while it is kept; a trip carries some statements."""

    def __init__(self) -> None:
        self.commits, self.statements, self.trips = 0, 0, 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        self.statements += len(touched(context["cursor"]))
        self.trips += 1
        return result


@contextmanager
def kept() -> Iterator[Bill]:
    bill, commit = Bill(), connection._commit  # type: ignore[attr-defined]

    def counted() -> None:
        bill.commits += 1
        commit()

    with connection.execute_wrapper(bill), pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_commit", counted)
        yield bill


@pytest.mark.requirement("S4-16")
@pytest.mark.parametrize(
    ("definition", "steps", "commits"),
    [
        # One to claim and send, one for each step to confirm it and send the next, the last to confirm and finish.
        ("bank_opening", 5, 6),
        ("order_fulfilment", 3, 4),
        # One more for the step whose state is read before it is overwritten.
        ("ticket_crm_notice", 3, 5),
    ],
)
def test_a_run_alone_costs_one_commit_a_step_and_one(
    clear_stage: Stage, definition: str, steps: int, commits: int
) -> None:
    for number in (9_000_001, 9_000_002):  # the first one fills the caches
        clear_stage.start(definition, number)
    owner, world = workers.enrol("test"), World(clear_stage.simulator.systems)
    for _ in range(2):
        with kept() as bill:
            claimed = ledger.claim_next(owner)
            assert claimed is not None
            drive(*claimed, world)
    world.close()

    assert clear_stage.facts(9_000_002).state is RunState.COMPLETED
    each = bill.statements / steps
    print(f"{definition}: {steps} steps, {bill.commits} commits, {each:.1f} statements, {bill.trips} trips")  # noqa: T201
    assert bill.commits == commits
    assert bill.statements <= 26 * steps
    assert bill.trips <= 6 * bill.commits


@pytest.mark.requirement("S4-16")
def test_a_group_costs_no_more_commits_than_its_steps_one_after_the_other(clear_stage: Stage) -> None:
    """One marks all of the group as sent, each result is recorded by its own, and the last of them goes on."""
    api.publish_definition(definition_from_document(trip("trip_counted")), actor=PUBLISHER)
    start(clear_stage, 9_000_031, "trip_counted")
    owner, world = workers.enrol("test"), World(clear_stage.simulator.systems)
    with kept() as bill:
        claimed = ledger.claim_next(owner)
        assert claimed is not None
        drive(*claimed, world)
    world.close()

    assert clear_stage.facts(9_000_031).state is RunState.COMPLETED
    assert bill.commits == 5 + 1


@pytest.mark.requirement("S2-10")
def test_compensating_three_steps_costs_two_commits_each(clear_stage: Stage) -> None:
    """One to look and send, one to record; no compensation shares a commit with another's call."""
    clear_stage.simulator.plan({"tool": "send_sms", "mode": "refuse"})
    clear_stage.start("bank_opening", 9_000_011)
    owner, world = workers.enrol("test"), World(clear_stage.simulator.systems)
    with kept() as bill:
        claimed = ledger.claim_next(owner)
        assert claimed is not None
        drive(*claimed, world)
    world.close()

    assert clear_stage.facts(9_000_011).state is RunState.COMPENSATED
    print(f"4 steps forward, 3 back: {bill.commits} commits, {bill.statements} statements")  # noqa: T201
    assert bill.commits == 4 + 1 + 2 * 3


def test_looking_for_work_where_there_is_none_is_one_short_transaction(clear_stage: Stage) -> None:
    owner = workers.enrol("test")
    with kept() as bill:
        assert ledger.claim_next(owner) is None

    assert bill.statements <= 4  # with BEGIN and COMMIT where they are counted


@pytest.mark.requirement("S4-19")
def test_a_five_step_run_writes_one_outbox_row_a_commit(clear_stage: Stage) -> None:
    clear_stage.start("bank_opening", 9_000_021)
    clear_stage.settle()

    facts = clear_stage.facts(9_000_021)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sagas_outbox WHERE run_id = %s", [facts.id])
        (rows,) = cursor.fetchone()
    assert rows == 1 + 6  # the start, and each commit of the run
    assert len(api.entries(facts.ref)) == clear_stage.run(9_000_021).seq
