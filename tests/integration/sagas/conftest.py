"""Published contracts and definitions, and a driver that drains in this very process."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from pytest_django import DjangoDbBlocker

from sagas import api
from sagas.executor import Drain
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.models import Run
from tests.conftest import Simulator
from tools.reader import read_contract, read_definition

ROOT = Path(__file__).resolve().parents[3]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:shop", name="Shop agent", role="agent")
OPERATOR = Actor(kind=ActorKind.HUMAN, id="user:1", name="Maya", role="operator")


@pytest.fixture(scope="session")
def shelf(
    empty_tables: Callable[[], None], fresh_database: str, django_db_blocker: DjangoDbBlocker
) -> Iterator[Callable[[], None]]:
    """Puts the shipped catalogue and the example definitions, published once, back into emptied tables."""
    with django_db_blocker.unblock():
        for path in sorted((ROOT / "tools" / "catalog").glob("*.toml")):
            api.publish_contract(read_contract(path), actor=OPERATOR)
        for path in sorted(p for p in (ROOT / "examples").iterdir() if p.suffix in (".toml", ".json")):
            api.publish_definition(read_definition(path), actor=OPERATOR)
        connections.close_all()
    tables = ("sagas_contractversion", "sagas_definitionversion")
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shelf")
        for table in tables:
            connection.execute(f"CREATE TABLE shelf.{table} AS TABLE {table}")
        empty_tables()
        put_back = "; ".join(
            f"INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE shelf.{table}" for table in tables
        )

        def put() -> None:
            connection.execute(put_back)

        yield put


@pytest.fixture
def published(db_clean: None, simulator: Simulator, shelf: Callable[[], None]) -> None:
    """The shipped catalogue and the example definitions."""
    shelf()


class Clock:
    """The database's clock, which a test may put forward so that nobody has to wait for a due time."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    def put_forward(self, seconds: float) -> None:
        """From now on `now_()` is later by so many seconds more."""
        with psycopg.connect(self._owner_url, autocommit=True) as connection:
            connection.execute("UPDATE test_clock.ahead SET ahead = ahead + %s", [timedelta(seconds=seconds)])


@pytest.fixture(scope="session")
def clock_of_tests(django_db_setup: None, fresh_database: str) -> Clock:
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA test_clock")
        connection.execute("CREATE TABLE test_clock.ahead (ahead interval NOT NULL)")
        connection.execute("INSERT INTO test_clock.ahead VALUES (interval '0')")
        connection.execute(f"GRANT USAGE ON SCHEMA test_clock TO {settings.APP_DB_ROLE}")
        connection.execute(f"GRANT SELECT ON test_clock.ahead TO {settings.APP_DB_ROLE}")
        connection.execute(
            "CREATE OR REPLACE FUNCTION now_() RETURNS timestamptz LANGUAGE sql VOLATILE "
            "AS 'SELECT clock_timestamp() + (SELECT sum(ahead) FROM test_clock.ahead)'"
        )
    return Clock(fresh_database)


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
    """Drain in this process what is due now."""
    drainer = Drain("test")
    try:
        drainer.run(seconds=30.0)
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
