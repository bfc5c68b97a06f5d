"""Published contracts and definitions, and a driver that drains in this very process."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sagas import api
from sagas.executor import Drain
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.models import Run
from tests.conftest import Clock, Simulator, clock_of

ROOT = Path(__file__).resolve().parents[3]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:shop", name="Shop agent", role="agent")
OPERATOR = Actor(kind=ActorKind.HUMAN, id="user:1", name="Maya", role="operator")


@pytest.fixture
def published(db_clean: None, simulator: Simulator, shelf: Callable[[], None]) -> None:
    """The shipped catalogue and the example definitions."""
    shelf()


@pytest.fixture
def clock(clock_of_tests: Clock, published: None) -> Clock:
    return clock_of_tests


@pytest.fixture
def drained(published: None, clock: Clock) -> Callable[..., RunFacts]:
    """Start a run, let it go as far as it goes by itself, and return the facts."""

    def start(definition: str, given: dict[str, object], *, key: str = "k1") -> RunFacts:
        started = api.start_run(actor=AGENT, definition=definition, input=given, start_key=key)
        return settle(started.run_ref, clock)

    return start


def settle(run_ref: str, clock: Clock) -> RunFacts:
    """Drain a run, putting the clock forward over its waits, until it is with a person or at its end."""
    for _ in range(100):
        drain()
        run = Run.objects.get(ref=run_ref)
        if run.due_at is None or run.state == "handoff":
            return api.run_facts(run_ref)
        clock.put_forward(max((run.due_at - api.now()).total_seconds(), 0.0))
    raise AssertionError(f"{run_ref} does not come to rest")


def drain() -> None:
    """Drain in this process what is due now; what will be due later is later, however long this takes."""
    drainer = Drain("test")
    try:
        with clock_of(os.environ["DATABASE_OWNER_URL"]).standing_still():
            drainer.run(seconds=120.0)
    finally:
        drainer.close()


@pytest.fixture
def order() -> dict[str, object]:
    """The input of one order."""
    return {
        "order": "O-20931",
        "customer": "C-88",
        "amount": "86.40",
        "sku": "SKU-118",
        "qty": 2,
        "address": "Harbour Street 4",
        "text": "Your parcel is on its way.",
    }


def effects(simulator: Simulator, tool: str) -> int:
    """How often the tool really took effect, counted outside."""
    return len(simulator.ledger(tool=tool, kind="effect"))
