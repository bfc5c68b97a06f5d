"""Who may drive a run: one claim takes one run, a live lease is respected, a death is counted once."""

from __future__ import annotations

import re
from typing import Any, LiteralString
from unittest.mock import patch

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg import sql

from sagas import api, lanes
from sagas.errors import ClaimLost
from sagas.executor import Drain, drive, perform
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Evidence, Run, Worker
from sagas.orders import Call
from sagas.states import ActionState, RunState
from sagas.sweep import Recovery
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, drain, effects, settle
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tools.world import World

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.usefixtures("clear_stage")


@pytest.fixture
def clock(clear_stage: Stage) -> Clock:
    return clear_stage.clock


@pytest.fixture
def simulator(clear_stage: Stage) -> Simulator:
    return clear_stage.simulator


def start(order: dict[str, Any], key: str = "k1") -> Run:
    started = api.start_run(actor=AGENT, definition="order_fulfilment", input=order, start_key=key)
    return Run.objects.get(ref=started.run_ref)


@pytest.mark.requirement("S3-17")
def test_one_claim_takes_one_run_of_three_thousand_though_the_table_was_analysed_while_few_were_due(
    order: dict[str, Any], fresh_database: str
) -> None:
    template = start(order)
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        copy_run(owner, template, 3000, due_at="NULL", lane="lane")
        owner.execute("UPDATE sagas_run SET due_at = now_() - interval '1 minute'")
    owner_id = workers.enrol("test")

    claimed = _claim(owner_id)

    assert claimed is not None
    assert list(Run.objects.exclude(owner="").values_list("pk", flat=True)) == [claimed]


def copy_run(owner: psycopg.Connection[Any], template: Run, times: int, **differing: LiteralString) -> None:
    """As many more runs as after days of work, seen by the planner; their trail is not what it is about."""
    own = {"ref": sql.SQL("'run_' || n"), "start_key": sql.SQL("'n' || n")}
    own |= {column: sql.SQL(value) for column, value in differing.items()}
    same = [str(f.column) for f in Run._meta.concrete_fields if f.column not in ("id", *own)]
    owner.execute("SET session_replication_role = replica")
    owner.execute(
        sql.SQL(
            "INSERT INTO sagas_run ({}) SELECT {} FROM sagas_run, generate_series(1, %s) n WHERE id = %s"
        ).format(
            sql.SQL(", ").join(map(sql.Identifier, [*own, *same])),
            sql.SQL(", ").join([*own.values(), *map(sql.Identifier, same)]),
        ),
        [times, template.pk],
    )
    owner.execute("VACUUM ANALYZE sagas_run")


def _claim(owner: str) -> int | None:
    """The claim's own statement, without the step that follows it in the same commit."""
    with patch.object(ledger, "_step", lambda desk, claim, **how: desk.close(release=False)):
        claimed = ledger.claim_next(owner)
    return claimed[0].run_id if claimed else None


@pytest.mark.requirement("S3-17", "S1-6")
def test_a_second_claim_of_the_same_run_finds_nothing(order: dict[str, Any]) -> None:
    run = start(order)
    first, second = workers.enrol("first"), workers.enrol("second")

    assert ledger.claim_run(run.pk, first) is not None
    assert ledger.claim_run(run.pk, second) is None
    assert ledger.claim_next(second) is None


def test_an_incarnation_whose_lease_ran_out_claims_nothing_and_is_never_renewed(
    order: dict[str, Any], clock: Clock
) -> None:
    run, owner = start(order), workers.enrol("slow")

    clock.put_forward(workers.LEASE_S + 1)

    assert workers.beat(owner) is False
    assert ledger.claim_run(run.pk, owner) is None
    assert ledger.claim_next(owner) is None


@pytest.mark.requirement("S4-29")
def test_a_process_that_starts_up_leaves_alone_what_a_live_one_is_doing(order: dict[str, Any]) -> None:
    run, owner = start(order), workers.enrol("busy")
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None

    for _ in range(3):  # three processes boot and look for something to recover
        assert Recovery().look() == 0
        assert ledger.claim_next(workers.enrol("new")) is None

    run.refresh_from_db()
    assert (run.owner, run.fence) == (owner, claimed[0].fence)
    assert api.run_facts(run.ref).action("reserve_stock").state is ActionState.SENT


def test_silence_by_the_database_clock_alone_kills_nobody(order: dict[str, Any], clock: Clock) -> None:
    """The clock of the database jumps; the sweep has not seen a full lease of silence on its own clock."""
    run, owner = start(order), workers.enrol("busy")
    assert ledger.claim_run(run.pk, owner) is not None
    recovery = Recovery()
    recovery.look()

    clock.put_forward(3600)

    assert recovery.look() == 0
    assert Worker.objects.get(pk=owner).ended_at is None


@pytest.mark.requirement("S4-29", "S1-6")
def test_one_death_found_three_times_uses_up_one_try(
    simulator: Simulator, order: dict[str, Any], clock: Clock
) -> None:
    """A death is found by polling, and corrected once."""
    simulator.plan({"tool": "reserve_stock", "mode": "reset", "attempts": [1]})
    run, owner = start(order), workers.enrol("doomed")
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    clock.put_forward(workers.LEASE_S + 1)

    freed = [workers.bury(owner) for _ in range(3)]
    facts = settle(run.ref, clock)

    assert freed == [1, 0, 0]
    lost = [e for e in api.entries(run.ref) if e.name == "tool.execution.unknown"]
    assert len(lost) == 2  # the death, and the reset of the second try
    assert facts.state is RunState.COMPLETED
    assert facts.action("reserve_stock").attempts_used == 3
    assert effects(simulator, "reserve_stock") == 1


@pytest.mark.requirement("S3-17")
def test_the_late_result_of_a_lost_claim_is_kept_as_evidence_and_advances_nothing(
    simulator: Simulator, order: dict[str, Any], clock: Clock
) -> None:
    run, owner, world = start(order), workers.enrol("slow"), World(simulator.systems)
    claimed = ledger.claim_run(run.pk, owner)
    assert claimed is not None
    claim, call = claimed
    assert isinstance(call, Call)
    seen = perform(call, world)
    clock.put_forward(workers.LEASE_S + 1)
    workers.bury(owner)

    with pytest.raises(ClaimLost):
        ledger.advance(claim, seen)

    facts = api.run_facts(run.ref)
    assert facts.action("reserve_stock").state is ActionState.UNKNOWN
    (proof,) = Evidence.objects.filter(run_id=run.pk)
    assert (proof.source, proof.verdict) == ("late", "found")
    # Whoever claims next applies it: no query is needed, and nothing is called again.
    facts = settle(run.ref, clock)
    assert facts.state is RunState.COMPLETED
    assert facts.action("reserve_stock").settled_by == "late answer"
    assert effects(simulator, "reserve_stock") == 1
    assert simulator.ledger(tool="get_reservation", kind="arrived") == []
    world.close()


@pytest.mark.requirement("S4-29")
def test_a_run_that_cannot_be_stepped_holds_up_no_other(
    simulator: Simulator, order: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    poison, healthy = start(order, "poison"), start(order, "healthy")
    step = ledger._step

    def broken(desk: Any, *rest: Any, **how: Any) -> Any:
        if desk.run.pk == poison.pk:
            raise RuntimeError("this run cannot be read")
        return step(desk, *rest, **how)

    monkeypatch.setattr(ledger, "_step", broken)

    drain()

    assert api.run_facts(healthy.ref).state is RunState.COMPLETED
    poison.refresh_from_db()
    assert poison.owner == ""
    assert poison.deliveries >= 1
    # Later, or not before a person let it: a slow machine uses the whole budget up in one drain.
    assert poison.due_at is not None or poison.quarantined_at is not None


@pytest.mark.requirement("S3-19")
def test_a_promised_answer_that_never_comes_does_not_hide_the_death_of_a_later_worker(
    simulator: Simulator, order: dict[str, Any], clock: Clock
) -> None:
    """202 first, then silence, then a second try whose worker dies: still unknown, still asked for."""
    accepted = {"reservation": "R-later", "state": "held"}
    simulator.plan(
        {"tool": "reserve_stock", "mode": "refuse", "status": 202, "body": accepted, "attempts": [1]},
        {"tool": "reserve_stock", "mode": "reset", "attempts": [2]},
    )
    run = start(order)
    drain()
    assert api.run_facts(run.ref).action("reserve_stock").state is ActionState.SENT
    owner = ""
    for _ in range(40):
        run.refresh_from_db()
        assert run.due_at is not None, "nobody would ever look at this run again"
        clock.put_forward(max((run.due_at - api.now()).total_seconds(), 0.0))
        owner = workers.enrol("doomed")
        claimed = ledger.claim_run(run.pk, owner)
        assert claimed is not None
        claim, order_ = claimed
        if isinstance(order_, Call) and len(api.run_facts(run.ref).action("reserve_stock").attempts) == 2:
            break
        _finish(claim, order_, simulator)
    clock.put_forward(workers.LEASE_S + 1)
    assert workers.bury(owner) == 1

    facts = api.run_facts(run.ref)
    assert facts.action("reserve_stock").state is ActionState.UNKNOWN
    assert settle(run.ref, clock).state is RunState.COMPLETED
    assert effects(simulator, "reserve_stock") == 1


def _finish(claim: Any, order: Any, simulator: Simulator) -> None:
    world = World(simulator.systems)
    drive(claim, order, world)
    world.close()


@pytest.mark.requirement("S4-29")
def test_a_write_that_fails_after_the_answer_loses_nothing(
    simulator: Simulator, order: dict[str, Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit that confirms breaks: the answer is kept, the call is not made again, the run goes on."""
    advance, failures = ledger.advance, list[int]()

    def fail_once(claim: Any, seen: Any, **how: Any) -> Any:
        if not failures:
            failures.append(1)
            raise RuntimeError("the connection is gone")
        return advance(claim, seen, **how)

    monkeypatch.setattr(ledger, "advance", fail_once)
    run = start(order)

    facts = settle(run.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, "reserve_stock") == 1
    assert len(simulator.ledger(tool="reserve_stock", kind="arrived")) == 1
    assert facts.action("reserve_stock").settled_by == "late answer"


def test_a_drain_whose_lease_ran_out_goes_on_under_a_new_incarnation(
    order: dict[str, Any], clock: Clock
) -> None:
    drainer = Drain("test")
    first = drainer.owner
    clock.put_forward(workers.LEASE_S + 1)
    run = start(order)
    try:
        drainer.run(seconds=20.0)
        assert drainer.owner != first
    finally:
        drainer.close()

    assert api.run_facts(run.ref).state is RunState.COMPLETED


@pytest.mark.requirement("S4-29")
def test_what_an_ended_incarnation_still_holds_is_freed_at_the_next_look(order: dict[str, Any]) -> None:
    run, owner = start(order), workers.enrol("gone")
    assert ledger.claim_run(run.pk, owner) is not None
    workers.sign_off(owner)

    assert Recovery().look() == 1

    run.refresh_from_db()
    assert run.owner == ""


@pytest.mark.requirement("S4-29")
def test_a_run_that_somebody_holds_keeps_no_other_run_of_a_dead_worker(
    order: dict[str, Any], clock: Clock, fresh_database: str
) -> None:
    held, free, owner = start(order), start(order, key="k2"), workers.enrol("dead")
    assert ledger.claim_run(held.pk, owner)
    assert ledger.claim_run(free.pk, owner)
    clock.put_forward(workers.LEASE_S + 1)

    with psycopg.connect(fresh_database) as stopped:
        stopped.execute("SELECT 1 FROM sagas_run WHERE id = %s FOR UPDATE", [held.pk])
        assert workers.bury(owner) == 1
        stopped.rollback()

    free.refresh_from_db()
    assert free.owner == ""
    assert workers.bury(owner) == 1


def test_what_was_begun_goes_before_new_runs_and_leaves_them_room(
    simulator: Simulator, order: dict[str, Any], clock: Clock
) -> None:
    """A backlog of new runs does not let the time for recovering an unknown call run out."""
    simulator.plan({"tool": "reserve_stock", "mode": "cut"})
    begun = start(order, "begun")
    drain_once(begun)
    waiting = [start({**order, "order": f"O-{n}"}, f"new-{n}") for n in range(3)]
    clock.put_forward(2)
    owner = workers.enrol("test")

    first = ledger.claim_next(owner)
    again = ledger.claim_next(owner, lanes=lanes.order(lanes.Lane.NEW))

    assert first is not None
    assert first[0].run_id == begun.pk
    assert again is not None
    assert again[0].run_id == waiting[0].pk


def drain_once(run: Run) -> None:
    """Drive one run until it waits."""
    world = World(settings.TOOL_SYSTEMS)
    claimed = ledger.claim_run(run.pk, workers.enrol("test"))
    assert claimed is not None
    drive(*claimed, world)
    world.close()


@pytest.mark.parametrize(
    ("statement", "parameters"), [(ledger._LANES_DUE, [[0, 3], 0.0]), (ledger._FIRST_DUE, [3, 0.0])]
)
def test_an_index_of_due_runs_is_used_up_to_now_and_no_further(
    order: dict[str, Any], fresh_database: str, statement: str, parameters: list[Any]
) -> None:
    """`due_at` is a bound of whichever index is taken: runs that are due later are not even looked at."""
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        copy_run(owner, start(order), 3000, due_at="now_() + (n - 20) * interval '1 minute'", lane="n %% 4")
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + statement, parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert re.search(r"Index (Only )?Scan using run_due(_lane)? .*\n +Index Cond: .*due_at <= ", plan), plan
    assert "Seq Scan" not in plan
    assert not re.search(r"Filter: .*due_at <= ", plan), plan
