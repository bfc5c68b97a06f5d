"""Every order in which two actors can meet at one run: the first is parked at each fault point it passes, in turn.

While it is parked the second runs as far as it can; whoever has to wait for a lock waits. Judged by the world outside.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from django.conf import settings
from django.db import connections

from sagas import api, faultpoints, relay
from sagas.errors import ClaimLost, NotAllowed
from sagas.executor import drive, perform
from sagas.facts import RunFacts
from sagas.faultpoints import Plan
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Evidence, Outbox, Run
from sagas.orders import Ask, Call, Claim, Order, Seen
from sagas.relay import Event
from sagas.states import ActionState, CompensationState, PermitState, RunState
from tests.integration.sagas.conftest import AGENT, OPERATOR, effects
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.integration.sagas.test_confirmations import begin, permit_of, publish, sign
from tests.integration.sagas.test_failures import BANK
from tools.outcome import Verdict
from tools.world import World

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S3-17", "S1-6")

HEAD_START_S = 0.25
NUMBERS = itertools.count(9_300_001)


class Meeting:
    """Two actors, each on a thread and a connection of its own; the first is parked at one point until let go."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._parked, self._go = threading.Event(), threading.Event()

    def __enter__(self) -> Meeting:
        return self

    def __exit__(self, *exc: object) -> None:
        self._go.set()
        faultpoints.plan()
        self._pool.shutdown(wait=True)

    def play[A, B](
        self, point: str, first: Callable[[], A], second: Callable[[], B]
    ) -> tuple[A | Exception, B | Exception]:
        """What both come back with. Fails when the first never passes the point."""
        faultpoints.plan(Plan(point=point, call=self._park))
        one = self._pool.submit(_apart, first)
        assert self._parked.wait(60), f"the first actor did not pass {point}: {one}"
        other = self._pool.submit(_apart, second)
        _wait(other, HEAD_START_S)
        self._go.set()
        return one.result(60), other.result(60)

    def _park(self) -> None:
        self._parked.set()
        assert self._go.wait(60)


def _apart[T](act: Callable[[], T]) -> T | Exception:
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - judged by the test
        return error
    finally:
        connections.close_all()


def _wait[T](future: Future[T], seconds: float) -> None:
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    done.wait(seconds)


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with Meeting() as met:
        yield met


CLAIM = ("step.begun", "desk.fetched", "claim.before_commit", "claim.after_commit")
CONFIRM = ("step.begun", "desk.fetched", "confirm.before_commit", "confirm.after_commit")
COMMAND = ("desk.fetched", "turn_back.before_commit", "turn_back.after_commit")


@pytest.mark.parametrize("point", CLAIM)
def test_of_two_claims_one_wins_wherever_they_meet(clear_stage: Stage, meeting: Meeting, point: str) -> None:
    number = next(NUMBERS)
    clear_stage.start("order_fulfilment", number)
    run_id = clear_stage.run(number).pk
    claims = [partial(ledger.claim_run, run_id, workers.enrol("rival")) for _ in range(2)]

    won = meeting.play(point, *claims)

    assert [isinstance(claim, tuple) for claim in won].count(True) == 1, won
    assert clear_stage.run(number).fence == 1
    assert clear_stage.facts(number).action("reserve_stock").attempts_used == 1


@pytest.mark.parametrize("point", CLAIM)
@pytest.mark.requirement("S2-11")
def test_a_stop_that_meets_a_claim_lets_at_most_the_call_in_flight_happen(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    number = next(NUMBERS)
    clear_stage.start("order_fulfilment", number)
    run_id, owner = clear_stage.run(number).pk, workers.enrol("test")

    claimed, stopped = meeting.play(point, lambda: ledger.claim_run(run_id, owner), lambda: _stop(run_id))

    assert stopped is None, stopped
    assert isinstance(claimed, tuple), claimed
    _go_on(clear_stage, claimed)
    _judge_stopped(clear_stage, number)


LINE = {"customer": "C-31", "product": "dsl-50", "customer_mail": "c@example.org", "text": "Your line works."}
ANSWER = ("call.answered", "accepted.before_commit", "accepted.after_commit")
CALLBACK = ("callback.verified", "callback.before_commit", "callback.after_commit")


@pytest.mark.parametrize("point", ANSWER)
@pytest.mark.requirement("S0-7", "S3-8")
def test_a_callback_that_meets_the_answer_it_belongs_to_counts_once(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    drive_on, call_back, ref = _promised(clear_stage)

    driven, received = meeting.play(point, drive_on, call_back)

    assert driven is None, driven
    _judge_promised(clear_stage, ref, received)


@pytest.mark.parametrize("point", CALLBACK)
@pytest.mark.requirement("S0-7", "S3-8")
def test_an_answer_that_meets_its_callback_counts_once(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    drive_on, call_back, ref = _promised(clear_stage)

    received, driven = meeting.play(point, call_back, drive_on)

    assert driven is None, driven
    _judge_promised(clear_stage, ref, received)


def _promised(stage: Stage) -> tuple[Callable[[], None], Callable[[], api.Received], str]:
    """A run whose call will be answered "accepted as J-..."; and the callback that speaks of J-... alone."""
    number = next(NUMBERS)
    job = f"J-{number}"
    taken = {"status": 202, "body": {"job": job, "state": "running"}}
    stage.simulator.plan({"tool": "provision_line", "mode": "ok", **taken})
    key = f"run-{number}"
    ref = api.start_run(actor=AGENT, definition="line_activation", input=dict(LINE), start_key=key).run_ref
    run_id, owner = Run.objects.get(ref=ref).pk, workers.enrol("test")
    said = api.Callback(
        system="jobs", verdict=Verdict.FOUND, reference=job, result={"job": job, "line": "LN-9"}
    )

    def drive_on() -> None:
        claimed = ledger.claim_run(run_id, owner)
        assert claimed is not None
        drive(*claimed, World(settings.TOOL_SYSTEMS))

    return drive_on, lambda: api.receive(said), ref


def _judge_promised(stage: Stage, ref: str, received: object) -> None:
    assert isinstance(received, api.Received), received
    stage.settle()
    line = next(action for action in api.run_facts(ref).actions if action.tool == "provision_line")
    assert (line.state, line.settled_by) == (ActionState.CONFIRMED, "callback")
    assert Evidence.objects.filter(source="callback", run_id__isnull=False).count() == 1
    assert [entry.name for entry in api.entries(ref) if entry.step == line.step].count(
        "tool.execution.succeeded"
    ) == 1


@pytest.mark.parametrize("point", COMMAND)
def test_of_two_stops_one_turns_the_run_back(clear_stage: Stage, meeting: Meeting, point: str) -> None:
    number = next(NUMBERS)
    clear_stage.start("order_fulfilment", number)
    run_id = clear_stage.run(number).pk

    assert meeting.play(point, lambda: _stop(run_id), lambda: _stop(run_id)) == (None, None)

    clear_stage.settle()
    names = Counter(entry.name for entry in api.entries(clear_stage.ref(number)))
    assert names["run.turned_back"] == 1
    assert clear_stage.facts(number).state is RunState.FAILED_CLEAN


@pytest.mark.parametrize("point", CONFIRM)
@pytest.mark.requirement("S2-11")
def test_a_stop_that_meets_the_confirmation_makes_up_for_exactly_what_happened(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    number = next(NUMBERS)
    claimed, answered = _first_call(clear_stage, number)
    run_id = clear_stage.run(number).pk

    order, stopped = meeting.play(point, lambda: ledger.advance(claimed[0], answered), lambda: _stop(run_id))

    assert stopped is None, stopped
    assert not isinstance(order, Exception), order
    _go_on(clear_stage, (claimed[0], order))
    _judge_stopped(clear_stage, number)


@pytest.mark.parametrize("point", COMMAND)
@pytest.mark.requirement("S2-11")
def test_a_confirmation_that_meets_the_stop_is_recorded_and_made_up_for(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    number = next(NUMBERS)
    claimed, answered = _first_call(clear_stage, number)
    run_id = clear_stage.run(number).pk

    stopped, order = meeting.play(point, lambda: _stop(run_id), lambda: ledger.advance(claimed[0], answered))

    assert stopped is None, stopped
    assert not isinstance(order, Exception), order
    _go_on(clear_stage, (claimed[0], order))
    _judge_stopped(clear_stage, number)


@pytest.mark.parametrize(
    "point", ["step.begun", "desk.fetched", "confirm.before_commit", "confirm.after_commit"]
)
def test_a_late_reply_that_meets_the_recovery_of_its_compensation_undoes_once(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    """The worker that made the compensating call was buried; its answer comes while another asks what became of it."""
    number = next(NUMBERS)
    clear_stage.simulator.plan({"tool": "create_shipment", "match": f"O-{number}", "mode": "refuse"})
    claim, order = _until_compensating(clear_stage, number)
    world = World(clear_stage.simulator.systems)
    late = perform(order, world)
    workers.sign_off(claim.owner)
    workers.bury(claim.owner)
    clear_stage.clock.put_forward(1)
    again = ledger.claim_run(clear_stage.run(number).pk, workers.enrol("new"))
    assert again is not None
    assert isinstance(again[1], Ask)
    found = perform(again[1], world)

    brought, replied = meeting.play(
        point, lambda: ledger.advance(again[0], found), lambda: ledger.advance(claim, late)
    )

    assert isinstance(replied, ClaimLost), replied
    assert not isinstance(brought, Exception), brought
    _go_on(clear_stage, (again[0], brought))
    facts = clear_stage.facts(number)
    assert facts.state is RunState.COMPENSATED
    made_up = facts.action("reserve_stock").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.CONFIRMED
    assert effects(clear_stage.simulator, "release_stock") == 1
    world.close()


@pytest.mark.parametrize(
    "point", ["relay.read", "relay.published", "relay.before_commit", "relay.after_commit"]
)
@pytest.mark.requirement("S4-19")
def test_two_relays_publish_every_event_of_a_run_in_order(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    number = next(NUMBERS)
    ref = clear_stage.start("order_fulfilment", number)
    clear_stage.settle()
    published: list[Event] = []

    meeting.play(
        point,
        lambda: relay.relay_once(published.append),
        lambda: relay.relay_once(published.append),
    )

    relay.relay_once(published.append)
    own = [event.id for event in published if event.subject == ref]
    assert own == [f"{ref}:{seq}" for seq in range(1, clear_stage.run(number).seq + 1)]
    assert not Outbox.objects.filter(published_at=None).exists()


@pytest.mark.parametrize("point", ["desk.fetched", "grant.before_commit", "grant.after_commit"])
@pytest.mark.requirement("S1-4", "S0-7")
def test_a_signature_that_meets_a_stop_lets_nothing_out(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    asked = _asked(clear_stage)

    signed, stopped = meeting.play(
        point, lambda: sign(permit_of(asked)), lambda: _stop(clear_stage.run(SIGNED).pk)
    )

    assert (signed, stopped) == (None, None)
    _judge_unsent(clear_stage)


@pytest.mark.parametrize("point", COMMAND)
@pytest.mark.requirement("S1-4", "S0-7")
def test_a_stop_that_meets_a_signature_leaves_nothing_to_sign(
    clear_stage: Stage, meeting: Meeting, point: str
) -> None:
    asked = _asked(clear_stage)

    stopped, signed = meeting.play(
        point, lambda: _stop(clear_stage.run(SIGNED).pk), lambda: sign(permit_of(asked))
    )

    assert stopped is None, stopped
    assert isinstance(signed, NotAllowed), signed
    _judge_unsent(clear_stage)


# --- Shared -------------------------------------------------------------------------------------------------------


def _stop(run_id: int) -> None:
    with api.transaction(), opened(run_id) as desk:
        faultpoints.mark("command")
        ledger.turn_back(desk, "stopped", OPERATOR)
        desk.run.due_at = desk.run.due_at if desk.run.owner else desk.now
        desk.close(release=False)


def _first_call(stage: Stage, number: int) -> tuple[tuple[Claim, Order], Seen]:
    stage.start("order_fulfilment", number)
    claimed = ledger.claim_run(stage.run(number).pk, workers.enrol("test"))
    assert claimed is not None
    assert isinstance(claimed[1], Call)
    world = World(stage.simulator.systems)
    answered = perform(claimed[1], world)
    world.close()
    return claimed, answered


def _until_compensating(stage: Stage, number: int) -> tuple[Claim, Call]:
    """A claim whose next order is the compensating call."""
    claimed, answered = _first_call(stage, number)
    world = World(stage.simulator.systems)
    order: Order = ledger.advance(claimed[0], answered)
    while not (isinstance(order, Call) and order.compensation_id is not None):
        assert isinstance(order, Call | Ask)
        order = ledger.advance(claimed[0], perform(order, world))
    world.close()
    return claimed[0], order


def _go_on(stage: Stage, claimed: tuple[Claim, Order]) -> None:
    world = World(stage.simulator.systems)
    drive(*claimed, world)
    world.close()
    stage.settle()


def _judge_stopped(stage: Stage, number: int) -> None:
    """Stock is as it was, nobody was told, and the run turned back once."""
    facts = stage.facts(number)
    reserved, released = effects(stage.simulator, "reserve_stock"), effects(stage.simulator, "release_stock")
    assert reserved == released <= 1
    assert facts.state is (RunState.COMPENSATED if reserved else RunState.FAILED_CLEAN)
    assert effects(stage.simulator, "send_notice") == 0
    assert [entry.name for entry in api.entries(facts.ref)].count("run.turned_back") == 1


SIGNED = 9_390_001


def _asked(stage: Stage) -> RunFacts:
    """A run that waits for a signature before its third call."""
    publish("bank_confirmed", "bank_opening.toml", "allocate_limit")
    facts = begin("bank_confirmed", BANK)
    stage.know(SIGNED, facts.ref)
    assert facts.state is RunState.AWAITING_APPROVAL
    return facts


def _judge_unsent(stage: Stage) -> None:
    """What was to be signed never went out, what came before it is made up for, the signature is good for nothing."""
    stage.settle()
    facts = stage.facts(SIGNED)
    assert facts.state is RunState.COMPENSATED
    assert effects(stage.simulator, "allocate_limit") == 0
    assert effects(stage.simulator, "create_customer") == effects(stage.simulator, "release_customer_no") == 1
    assert permit_of(facts).state is PermitState.WITHDRAWN
