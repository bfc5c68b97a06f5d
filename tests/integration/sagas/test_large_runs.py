"""A large run is read in part: a step costs the same at its beginning and at its end, and it ends as if read whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from sagas import api
from sagas.executor import perform
from sagas.ledger import advance as ledger
from sagas.ledger import window, workers
from sagas.ledger.start import run_ref
from sagas.orders import Ask, Call, Claim, Order
from sagas.states import RunState
from tests.conftest import PUBLISHER
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage
from tests.integration.sagas.test_freeze import stop
from tests.integration.sagas.trips import publish as publish_trips
from tests.integration.sagas.trips import start as start_trip
from tools.reader import definition_from_document
from tools.world import World
from workbench.labs.bench.long_run import definition

__all__ = ["clear_stage", "stage"]


# --- What a step costs --------------------------------------------------------------------------------------------


class Reads:
    """Statements, and the rows they gave back, of this thread's connection while it is kept."""

    def __init__(self) -> None:
        self.statements, self.rows = 0, 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        self.statements += 1
        if sql.lstrip().upper().startswith("SELECT"):
            self.rows += max(context["cursor"].rowcount, 0)
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
            "provider_ref, error_class, error_detail) SELECT run_id, id, %s, 'release_stock', 'restores', "
            "'automatic', 'registered', 1, key || '~c', jsonb_build_object('reservation', 'RS-' || position), "
            "'', 0, 0, 0, false, now(), '', '', '', '' "
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
        run.cost(2)
        run.put_forward(steps - 5)
        stop(run.ref)
        costs.append(run.cost(6))

    print(f"three compensations of 50 and of 400: {costs}")  # noqa: T201
    assert costs[0] == costs[1]


# --- What it comes to -------------------------------------------------------------------------------------------


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
    ("order_fulfilment", ({"tool": "create_shipment", "mode": "applied_no_answer", "attempts": [1]},)),
    ("order_fulfilment", ({"tool": "create_shipment", "mode": "no_answer", "attempts": [1]},)),
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
    assert narrow.effects_left == whole.effects_left or whole.state not in ("handoff", *FINAL)
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


FINAL = (RunState.COMPLETED, RunState.COMPENSATED, RunState.FAILED_CLEAN)
