"""Any order of starts, steps, doubled and stale deliveries, deaths, clocks and commands of three people: the engine does
what the model says, and no invariant breaks on the way.

The real code on a real PostgreSQL, without Celery. `HYPOTHESIS_PROFILE=long` plays many more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connections
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sagas import api, faultpoints
from sagas.errors import ClaimLost, NotAllowed
from sagas.executor import perform
from sagas.facts import Actor, ActorKind
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Run
from sagas.orders import Ask, Call, Claim, Done, Order, Seen
from sagas.relay import Event, relay_once
from sagas.tx import retrying
from tests.integration.sagas.stage import Stage, clear_stage, stage
from tests.stateful import model
from tests.stateful.model import ModelRun
from tools.world import World
from workbench.labs.checker import outside, record
from workbench.labs.checker.gather import gather
from workbench.labs.checker.histories import Said
from workbench.labs.checker.invariants import judge
from workbench.labs.world import Outside

__all__ = ["clear_stage", "stage"]

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
EXAMPLES, RULES, MOST_RUNS = (150, 40, 4) if LONG else (3, 12, 2)
PEOPLE = tuple(
    Actor(kind=ActorKind.HUMAN, id=f"user:{name}", name=name.title(), role=role)
    for name, role in (("maya", "operator"), ("jonas", "operator"), ("lin", "lead"))
)
VERBS = (
    "retry",
    "query_status",
    "resume",
    "compensate",
    "stop_and_compensate",
    "claim",
    "release",
    "escalate",
)
AT_ANY_MOMENT = (
    outside.v3_at_most_once,
    outside.v5_order,
    outside.v6_no_late_orphan,
    outside.v13_conservation,
    record.v7_stop_means_stop,
    record.v9_audited,
    record.v12_fence,
)
"""What holds at any moment; the others hold once everything is at rest."""


class Engine(RuleBasedStateMachine):
    """Rules are what may happen; the stage is emptied before each example."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.outside = Outside(stage.simulator.admin_url)
        self.world = World(stage.simulator.systems)
        self.runs: dict[str, ModelRun] = {}
        self.held: list[tuple[Claim, Call | Ask]] = []
        self.seen: list[tuple[Claim, Seen]] = []
        self.frozen: list[int] = []
        self.events: list[tuple[str, int]] = []

    @initialize()
    def empty(self) -> None:
        self.stage.clear()
        connections.close_all()

    # --- What may happen ----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.runs) < MOST_RUNS)
    @rule(step=st.sampled_from(model.STEPS), mode=st.sampled_from(model.MODES))
    def start(self, step: str, mode: str) -> None:
        number = 9_700_000 + len(self.runs)
        ref = api.run_ref(AGENT, f"run-{number}")
        if mode == "query_absent":  # taken effect, and the query does not know it yet
            self.outside.plan({"tool": step, "mode": "fail_after", "match": ref, "attempts": [1]})
            self.outside.plan({"tool": QUERIES[step], "mode": mode, "match": ref, "times": 1})
        elif mode != "ok":
            first = {} if mode in model.DEFINITE else {"attempts": [1]}
            self.outside.plan({"tool": step, "mode": mode, "match": ref, **first})
        assert self.stage.start("order_fulfilment", number) == ref
        self.runs[ref] = ModelRun(step=step, mode=mode)

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 9))
    def claim(self, pick: int) -> None:
        ref = list(self.runs)[pick % len(self.runs)]
        found = retrying(partial(ledger.claim_run, self.run_id(ref), workers.enrol("hand")))
        if found is not None:
            self._take(*found)

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 9), twice=st.booleans(), last=st.booleans())
    def step(self, pick: int, twice: bool, last: bool) -> None:
        """Do what was ordered and deliver what was seen, perhaps twice."""
        claim, order = self.held.pop(pick % len(self.held))
        seen = perform(order, self.world)
        self.seen.append((claim, seen))
        after: Order = Done(due_at=None)
        with suppress(ClaimLost):
            after = retrying(partial(ledger.advance, claim, seen, last=last))
        if twice:
            with suppress(ClaimLost):
                again = retrying(partial(ledger.advance, claim, seen))
                after = after if isinstance(again, Done) else again
        self._take(claim, after)

    @precondition(lambda self: self.seen)
    @rule(pick=st.integers(0, 9))
    def deliver_something_stale(self, pick: int) -> None:
        claim, seen = self.seen[pick % len(self.seen)]
        if any(claim == held for held, _ in self.held):
            return  # not stale: its owner is still at it
        with suppress(ClaimLost):
            self._take(claim, retrying(partial(ledger.advance, claim, seen)))

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 9), called=st.booleans())
    def die(self, pick: int, called: bool) -> None:
        """A worker dies before or after its call; what it held is freed when its lease has run out."""
        claim, order = self.held.pop(pick % len(self.held))
        self.runs[claim.run_ref].deaths += 1
        if called:
            self.seen.append((claim, perform(order, self.world)))
        self._lapse()
        workers.bury(claim.owner)

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 9), point=st.sampled_from(("desk.fetched", "step.begun")))
    def crash_in_the_commit(self, pick: int, point: str) -> None:
        """The commit of a result fails half-way: what was seen is kept, the run is given up."""
        claim, order = self.held.pop(pick % len(self.held))
        seen = perform(order, self.world)
        self.runs[claim.run_ref].deaths += 1
        faultpoints.plan(faultpoints.Plan(point=point, do="raise", run=claim.run_ref))
        try:
            self._take(claim, ledger.advance(claim, seen))
        except ClaimLost:
            pass
        except faultpoints.Injected:
            faultpoints.plan()
            retrying(partial(workers.abandon, claim, seen))
        finally:
            faultpoints.plan()

    @rule(seconds=st.sampled_from((0.3, 1.5, 4.0)))
    def time_goes_by(self, seconds: float) -> None:
        self.stage.clock.put_forward(seconds)

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 9), who=st.sampled_from(PEOPLE), verb=st.sampled_from(VERBS))
    def command(self, pick: int, who: Actor, verb: str) -> None:
        """One of three people gives a command; whether it is possible is the engine's word."""
        ref = list(self.runs)[pick % len(self.runs)]
        facts = api.run_facts(ref)
        if facts.handoff is None:
            return
        step = next(iter(api.targets(facts, verb)), "")
        with (
            suppress(NotAllowed),
            api.transaction(),
            api.desk(facts.handoff.ref, actor=who, reason="why") as desk,
        ):
            _give(desk, verb, step)
            self.runs[ref].touched = True
            self.runs[ref].stopped |= verb in ("stop_and_compensate", "compensate")

    @rule(on=st.booleans())
    def freeze(self, on: bool) -> None:
        with api.transaction():
            if on and not self.frozen:
                self.frozen.append(api.freeze(actor=PEOPLE[2], reason="why"))
            elif not on:
                self._lift()

    @rule()
    def relay(self) -> None:
        relay_once(self._publish)

    # --- What must hold -----------------------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong_now(self) -> None:
        if not self.runs:
            return
        histories = self._histories()
        for one in AT_ANY_MOMENT:
            assert not one(histories).wrong, one.__name__

    def teardown(self) -> None:
        """Heal, let everything come to rest, and hold it against the model and all invariants."""
        faultpoints.plan()
        try:
            if self.runs:
                self._rest()
        finally:
            self.world.close()

    def _rest(self) -> None:
        with api.transaction():
            self._lift()
        for claim, _ in self.held:
            self.runs[claim.run_ref].deaths += 1
        self._lapse()
        for claim, _ in self.held:
            workers.bury(claim.owner)
        self.stage.settle()
        while relay_once(self._publish):
            pass
        for ref, run in self.runs.items():
            facts = self.stage_facts(ref)
            assert facts.state.value in model.ends(run), (run, facts.state)
            standing = self.outside.net(business=facts.business_ref)
            for step, may in model.may_stand(run, facts.state.value).items():
                assert standing.get(step, 0) in may, (run, facts.state, standing)
        wrong = {name: found.wrong for name, found in judge(self._histories()).items() if found.wrong}
        assert not wrong

    # --- Shared -------------------------------------------------------------------------------------------

    def _take(self, claim: Claim, order: Order) -> None:
        """Hold what is ordered next; the steps of this workflow come one by one, so that it is one thing or nothing."""
        if isinstance(order, Call | Ask):
            self.held.append((claim, order))
        else:
            assert isinstance(order, Done)

    def run_id(self, ref: str) -> int:
        return int(Run.objects.values_list("pk", flat=True).get(ref=ref))

    def stage_facts(self, ref: str) -> Any:
        return api.run_facts(ref)

    def _lapse(self) -> None:
        """Every lease runs out; those of workers that live are renewed by new ones."""
        self.stage.clock.put_forward(workers.LEASE_S + 0.1)

    def _lift(self) -> None:
        for one in self.frozen:
            api.unfreeze(actor=PEOPLE[2], freeze_id=one, reason="why")
        self.frozen.clear()

    def _publish(self, event: Event) -> None:
        ref, _, seq = event.id.rpartition(":")
        self.events.append((ref, int(seq)))

    def _histories(self) -> Any:
        return gather(
            outside=self.outside,
            owner_url=str(os.environ["DATABASE_OWNER_URL"]),
            said=[Said(kind="start", id=ref, outcome="ok", ref=ref) for ref in self.runs],
            seen=self.events,
            clock_moved=True,
        )


QUERIES = {
    "reserve_stock": "get_reservation",
    "create_shipment": "get_shipment",
    "send_notice": "query_notice",
}
AGENT = Actor(kind=ActorKind.AGENT, id="agent:shop", name="Shop agent", role="agent")


def _give(desk: api.Desk, verb: str, step: str) -> None:
    match verb:
        case "claim":
            desk.claim(minutes=30)
        case "retry" | "query_status":
            getattr(desk, verb)(step)
        case _:
            getattr(desk, verb)()


@pytest.mark.timeout(3600 if LONG else 600)
@pytest.mark.requirement("S2-11", "S3-8")
def test_whatever_happens_in_whatever_order_the_engine_does_what_the_model_says(clear_stage: Stage) -> None:
    assert django_settings.AMENDS_ENV == "test"
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=RULES,
        deadline=None,
        database=None,
        derandomize=not LONG,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: Engine(clear_stage), settings=profile)  # type: ignore[arg-type]
