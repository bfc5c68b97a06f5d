"""Fixtures of the whole suite: the database as the application role sees it, its clock, and the simulated world.

What is made once in a run is made here: a second definition elsewhere would make it a second time.
"""

import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections
from psycopg import sql
from pytest_django import DjangoDbBlocker, Settings

from sagas import api, executor
from sagas.facts import Actor, ActorKind
from sagas.ledger import workers
from tools.contract import Contract, EffectKind
from tools.outcome import Observation
from tools.reader import read_contract, read_definition
from tools.world import World
from workbench.labs import children
from workbench.labs.clock import Clock as Clock

ROOT = Path(__file__).resolve().parents[1]
PUBLISHER = Actor(kind=ActorKind.HUMAN, id="user:1", name="Maya", role="operator")
DIRECTLY = build_opener(ProxyHandler({}))  # never through a proxy of the developer's machine
# Rows that Django itself keeps in step with the code.
KEPT = ("django_migrations", "django_content_type", "auth_permission")
PATIENCE_S = 20.0
"""What a lease and the time in which a call must leave are for workers that a test plays in this process: no loop renews
their lease, and on a busy machine a test takes long from one line to the next."""
LONGEST_FIRST = (("browser", "faults"), ("integration",), ("concurrency", "stateful"))
"""Folders by how long their files take; the others come last. Those named together are mixed: browsers want the
processors, and tests of dead processes wait for leases to run out."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Short files come last, so that no worker is left alone with a long one; within a folder chance orders them."""
    place = {name: number for number, names in enumerate(LONGEST_FIRST) for name in names}
    files: dict[str, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(item.path for item in items):
        files[path.relative_to(Path(__file__).parent).parts[0]].append(path)
    turn = {
        path: (place.get(name, len(place)), number / len(found))
        for name, found in files.items()
        for number, path in enumerate(found)
    }
    items.sort(key=lambda item: turn[item.path])


@pytest.fixture(scope="session")
def django_db_setup(fresh_database: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Migrate a fresh database as its owner; the tests then work in it as the application role."""
    with django_db_blocker.unblock():
        call_command("migrate", database="owner", verbosity=0)
        connections["owner"].close()
    yield
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture(scope="module", autouse=True)
def patience(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leases and windows that outlive whatever the machine does, but where real processes keep to real ones."""
    with pytest.MonkeyPatch.context() as patch:
        if not {"faults", "unit"} & set(request.path.parts):
            patch.setattr(workers, "LEASE_S", PATIENCE_S)
            patch.setattr(executor, "DISPATCH_WINDOW_S", PATIENCE_S)
            patch.setattr(World, "call", _waiting_for_reads(World.call))
        yield


def _waiting_for_reads(call: Callable[..., Observation]) -> Callable[..., Observation]:
    """Calls that wait for what is only read, however slow the machine; silence is planned for writes alone."""

    def patient(self: World, contract: Contract, **how: Any) -> Observation:
        if contract.effect_kind is EffectKind.READ_ONLY:
            contract = replace(contract, limits=replace(contract.limits, total_s=PATIENCE_S))
        return call(self, contract, **how)

    return patient


@pytest.fixture(scope="session")
def empty_tables(
    django_db_setup: None, fresh_database: str, clock_of_tests: Clock
) -> Iterator[Callable[[], None]]:
    """Puts every table back to what the migrations left, past the append-only guards, and the clock to the time it is."""
    connection = psycopg.connect(fresh_database, autocommit=True, options="-c lock_timeout=60s")
    connection.execute("SET session_replication_role = replica")
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL(%s)", [list(KEPT)]
    )
    tables = {str(name): sql.Identifier(str(name)) for (name,) in rows}
    connection.execute("CREATE SCHEMA migrated")
    script = [sql.SQL("DELETE FROM {}").format(table) for table in tables.values()]
    for name, table in tables.items():
        if connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(table)).fetchone() is not None:
            copy = sql.Identifier("migrated", name)
            connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(copy, table))
            script.append(
                sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE TABLE {}").format(table, copy),
            )
    statement = sql.SQL("; ").join([sql.SQL("BEGIN"), *script, sql.SQL("COMMIT")])

    def empty() -> None:
        connection.execute(statement)
        clock_of_tests.set_right()

    yield empty
    connection.close()


@pytest.fixture
def db_clean(
    empty_tables: Callable[[], None], django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Really committed data, for what locks, threads and other processes must see; emptied afterwards.

    A test joins its threads and ends its processes before it returns.
    """
    with django_db_blocker.unblock():
        yield
        connections.close_all()
    empty_tables()


class Simulator:
    """The simulated world, a process of its own with an address for each system and one to command it."""

    def __init__(self, *, systems: dict[str, str], admin_url: str) -> None:
        self.systems, self.admin_url = systems, admin_url

    def reset(self) -> None:
        """Forget every arrival, effect and plan."""
        self.post("/reset")

    def plan(self, *rules: dict[str, Any]) -> None:
        """Have tools misbehave; a rule's names are those of the simulator's POST /plan."""
        self.post("/plan", {"rules": rules})

    def ledger(self, **filters: str) -> list[dict[str, Any]]:
        """Every arrival, effect and reply so far, the oldest first; filters are tool, kind, key, business."""
        answer = self._ask(Request(f"{self.admin_url}/ledger?{urlencode(filters)}"))  # noqa: S310 - our own
        records: list[dict[str, Any]] = answer["records"]
        return records

    def held_at(self, gate: str) -> int:
        """How many calls wait at this gate; a rule's `gate` or `gate_of_answer` names it."""
        return len(self._ask(Request(f"{self.admin_url}/gates"))["waiting"].get(gate, ()))  # noqa: S310 - our own

    def let_pass(self, gate: str) -> None:
        """Let whoever waits there pass, now and from now on."""
        self.post("/gates", {"open": gate})

    def post(self, path: str, body: Any = None) -> Any:
        content = json.dumps(body or {}).encode()
        headers = {"Content-Type": "application/json"}
        return self._ask(Request(self.admin_url + path, content, headers))  # noqa: S310 - our own

    def _ask(self, request: Request) -> Any:
        with DIRECTLY.open(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")


@pytest.fixture(scope="session")
def simulator_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    folder = tmp_path_factory.mktemp("simulator")
    announcement, log = folder / "announce.json", folder / "log"
    command = [sys.executable, "-m", "tools.simulator", "--port", "0", "--admin-port", "0", "--fast"]
    with log.open("wb") as output:
        process = children.start(
            [*command, "--store", folder / "store", "--announce", announcement], output=output
        )
    try:
        deadline = time.monotonic() + 60
        while not announcement.exists():
            assert process.poll() is None, f"The simulator ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"The simulator did not start:\n{log.read_text()}"
            time.sleep(0.02)
        announced = json.loads(announcement.read_text())
        yield Simulator(systems=announced["systems"], admin_url=announced["admin_url"])
    finally:
        children.stop(process, signal.SIGTERM)


@pytest.fixture
def simulator(simulator_process: Simulator, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """The simulated world, new; contracts find its systems here and in child processes."""
    simulator_process.reset()
    settings.TOOL_SYSTEMS = simulator_process.systems
    monkeypatch.setenv("AMENDS_SYSTEMS", json.dumps(simulator_process.systems))
    monkeypatch.setenv("SIMULATOR_ADMIN_URL", simulator_process.admin_url)
    return simulator_process


type PutBack = Callable[[], None]


@pytest.fixture(scope="session")
def shelf(
    empty_tables: Callable[[], None], fresh_database: str, django_db_blocker: DjangoDbBlocker
) -> Iterator[PutBack]:
    """Puts the shipped catalogue and the example definitions, published once, back into emptied tables."""
    with django_db_blocker.unblock():
        for path in sorted((ROOT / "tools" / "catalog").glob("*.toml")):
            api.publish_contract(read_contract(path), actor=PUBLISHER)
        for path in sorted(p for p in (ROOT / "examples").iterdir() if p.suffix in (".toml", ".json")):
            api.publish_definition(read_definition(path), actor=PUBLISHER)
        connections.close_all()
    with kept("shelf", fresh_database, "sagas_contractversion", "sagas_definitionversion") as put_back:
        empty_tables()
        yield put_back


@pytest.fixture(scope="session")
def premises(
    shelf: PutBack, empty_tables: Callable[[], None], fresh_database: str, django_db_blocker: DjangoDbBlocker
) -> Iterator[PutBack]:
    """Puts people, contracts and the workflows of the workbench's tests, stored once, back into emptied tables."""
    from tests.integration.workbench import flows
    from workbench.labs import cast

    with django_db_blocker.unblock():
        cast.load()
        shelf()
        flows.publish()
        connections.close_all()
    with kept("premises", fresh_database) as put_back:
        empty_tables()
        yield put_back


@contextmanager
def kept(schema: str, owner: str, *tables: str) -> Iterator[PutBack]:
    """Copies of what the tables hold now (without any named: all that tests empty), and how to put it back."""
    with psycopg.connect(owner, autocommit=True, options="-c session_replication_role=replica") as connection:
        names = tables or tuple(
            str(name)
            for (name,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL(%s) "
                "AND tablename NOT IN (SELECT tablename FROM pg_tables WHERE schemaname = 'migrated')",
                [list(KEPT)],
            )
        )
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        script = []
        for name in names:
            table, copy = sql.Identifier(name), sql.Identifier(schema, name)
            connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(copy, table))
            insert = sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE TABLE {}").format(table, copy)
            if connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(copy)).fetchone() is not None:
                script.append(insert)
        statement = sql.SQL("; ").join([sql.SQL("BEGIN"), *script, sql.SQL("COMMIT")])

        def put_back() -> None:
            connection.execute(statement)

        yield put_back


class KeptClock(Clock):
    """One that keeps its connection: tests set it thousands of times."""

    def __init__(self, owner_url: str) -> None:
        super().__init__(owner_url)
        self.connection = psycopg.connect(owner_url, autocommit=True)

    @contextmanager
    def _as_owner(self) -> Iterator[psycopg.Connection[Any]]:
        yield self.connection


@cache
def clock_of(owner_url: str) -> KeptClock:
    """The clock of this database, for what is no fixture."""
    return KeptClock(owner_url)


@pytest.fixture(scope="session")
def clock_of_tests(django_db_setup: None, fresh_database: str) -> Iterator[Clock]:
    clock = clock_of(fresh_database)
    clock.install(django_settings.APP_DB_ROLE)
    yield clock
    clock.connection.close()
