"""A large run is read in part: a step costs the same at its beginning and at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sagas import api
from sagas.executor import perform
from sagas.ledger import advance as ledger
from sagas.ledger import start, window, workers
from sagas.orders import Ask, Call, Claim, Order
from tests.conftest import PUBLISHER
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.counted import touched
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_freeze import stop
from tools.reader import definition_from_document
from tools.world import World
from workbench.labs.bench.long_run import definition

__all__ = ["clear_stage", "stage"]


class Reads:
    """Statements, and the rows they gave back, of this thread's connection while it is kept."""

    def __init__(self) -> None:
        self.statements, self.rows = 0, 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        for statement, rows in zip(sql.split(";\n"), touched(context["cursor"]), strict=True):
            self.statements += 1
            if statement.lstrip().upper().startswith("SELECT"):
                self.rows += max(rows, 0)
        return result


class Long:
    """A run of many reservations, one after the other, in the hand of one worker."""

    def __init__(self, stage: Stage, number: int, steps: int) -> None:
        self.stage, self.steps = stage, steps
        name = f"long_{steps}"
        document = definition_from_document(definition(name, steps, refused=False))
        api.publish_definition(document, actor=PUBLISHER)
        started = api.start_run(
            actor=AGENT, definition=name, input={"order": "O-1"}, start_key=f"run-{number}"
        )
        stage.know(number, started.run_ref)
        self.ref, self.number = started.run_ref, number
        self.world = World(stage.simulator.systems)

    def claim(self) -> tuple[Claim, Order]:
        claimed = ledger.claim_run(self.stage.run(self.number).pk, workers.enrol("test"))
        assert claimed is not None
        return claimed

    def cost(self, turns: int) -> tuple[int, int]:
        """Statements and rows read of so many turns; the first one, which claims, is not counted."""
        reads = Reads()
        claim, order = self.claim()
        with connection.execute_wrapper(reads):
            for _ in range(turns):
                assert isinstance(order, Call | Ask)
                order = ledger.advance(claim, perform(order, self.world))
        assert isinstance(order, Call | Ask)
        ledger.advance(claim, perform(order, self.world), last=True)
        return reads.statements, reads.rows

    def put_forward(self, to: int) -> None:
        """Have the steps before `to` confirmed, with their compensations, as if they had been driven."""
        run_id = self.stage.run(self.number).pk
        owner, done = (
            self.stage.owner,
            ("run_id = %s AND position < %s AND state = 'not_started'", [run_id, to]),
        )
        contract = owner.execute(
            "SELECT contract_id FROM sagas_compensation WHERE run_id = %s LIMIT 1", [run_id]
        ).fetchone()
        assert contract is not None
        owner.execute(
            "INSERT INTO sagas_compensation (run_id, action_id, contract_id, tool, kind, who, state, version, "
            "key, args, ordered_by, attempts_used, refusals, queries, in_doubt, registered_at, settled_by, "
            "provider_ref, error_class, error_detail, calls) SELECT run_id, id, %s, 'release_stock', 'restores', "
            "'automatic', 'registered', 1, key || '~c', jsonb_build_object('reservation', 'RS-' || position), "
            "'', 0, 0, 0, false, now(), '', '', '', '', 0 "
            f"FROM sagas_action WHERE {done[0]}",
            [contract[0], *done[1]],
        )
        owner.execute(
            "UPDATE sagas_action SET state = 'confirmed', version = 4, confirm_seq = position, settled_at = now(), "
            "sent_at = now(), attempts_used = 1, args = '{}', "
            f"result = jsonb_build_object('reservation', 'RS-' || position) WHERE {done[0]}",
            done[1],
        )
        owner.execute("UPDATE sagas_run SET confirmations = %s WHERE id = %s", [to - 1, run_id])


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of fifty steps are large already."""
    monkeypatch.setattr(window, "READ_WHOLE", 20)


@pytest.mark.requirement("S4-16")
def test_a_step_reads_the_same_whatever_the_size_of_the_run_and_however_far_it_is(
    clear_stage: Stage, large: None
) -> None:
    small, great = Long(clear_stage, 9_100_001, 50), Long(clear_stage, 9_100_002, 400)
    small.cost(3)  # fills the caches
    at_first = small.cost(5), great.cost(5)
    great.put_forward(380)
    later = great.cost(5)

    print(f"five steps of 50, of 400 at first and later: {at_first}, {later}")  # noqa: T201
    assert at_first[0] == at_first[1] == later
    assert later[0] <= 5 * 20
    assert later[1] <= 5 * (window.AHEAD * 3 + 20)


@pytest.mark.requirement("S2-10", "S4-16")
def test_a_compensation_reads_the_same_whatever_the_size_of_the_run(clear_stage: Stage, large: None) -> None:
    costs = []
    for number, steps in ((9_100_011, 50), (9_100_012, 400)):
        run = Long(clear_stage, number, steps)
        run.cost(1)
        run.put_forward(steps - 6)
        run.cost(5)  # what is made up for first has really been done
        stop(run.ref)
        costs.append(run.cost(6))

    print(f"three compensations of 50 and of 400: {costs}")  # noqa: T201
    assert costs[0] == costs[1]


@pytest.mark.usefixtures("clear_stage")
def test_the_steps_of_a_large_run_are_stored_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that says nothing to the database for seconds is ended by it: so it says something in between."""
    monkeypatch.setattr(start, "STORED_AT_ONCE", 20)
    api.publish_definition(definition_from_document(definition("long", 50, refused=False)), actor=PUBLISHER)

    with CaptureQueriesContext(connection) as asked:
        started = api.start_run(actor=AGENT, definition="long", input={"order": "O-1"}, start_key="long")

    stored = [query for query in asked.captured_queries if 'INSERT INTO "sagas_action"' in query["sql"]]
    assert len(stored) == 3
    steps = [action.step for action in api.run_facts(started.run_ref).actions]
    assert steps == [f"s{number}" for number in range(1, 51)]
