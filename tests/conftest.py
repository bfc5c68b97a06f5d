"""Fixtures of the whole suite: the database as the application role sees it, and the simulated world."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from psycopg import sql
from pytest_django import DjangoDbBlocker, Settings

from workbench.labs import children

# Rows that Django itself keeps in step with the code.
KEPT = ("django_migrations", "django_content_type", "auth_permission")


@pytest.fixture(scope="session")
def django_db_setup(fresh_database: str, django_db_blocker: DjangoDbBlocker) -> None:
    """Migrate a fresh database as its owner; the tests then work in it as the application role."""
    with django_db_blocker.unblock():
        call_command("migrate", database="owner", verbosity=0)
        connections["owner"].close()


@pytest.fixture(scope="session")
def empty_tables(django_db_setup: None, fresh_database: str) -> Iterator[Callable[[], None]]:
    """Puts every table back to what the migrations left, past the append-only guards."""
    connection = psycopg.connect(fresh_database, autocommit=True, options="-c lock_timeout=10s")
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
    yield lambda: connection.execute(statement) and None
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
    """The simulated world as a process of its own: stock, shipments, notices, tickets, CRM, bank."""

    systems = ("stock", "shipments", "notifications", "tickets", "crm", "bank")

    def __init__(self, tool_url: str, admin_url: str) -> None:
        self.tool_url, self.admin_url = tool_url, admin_url
        self.addresses = {system: f"{tool_url}/{system}" for system in self.systems}

    def reset(self) -> None:
        """Forget every arrival, effect and plan."""
        self._ask("POST", "/reset", {})

    def plan(self, **rule: Any) -> Any:
        """Have a tool misbehave; the rule's names are those of the simulator's POST /plan."""
        return self._ask("POST", "/plan", rule)

    def ledger(self) -> Any:
        """Every arrival, effect and reply so far."""
        return self._ask("GET", "/ledger", None)

    def _ask(self, method: str, path: str, body: object) -> Any:
        request = Request(  # noqa: S310 - loopback, the address is our own
            self.admin_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.loads(answer.read() or "null")


@pytest.fixture(scope="session")
def simulator_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    folder = tmp_path_factory.mktemp("simulator")
    announcement, log = folder / "announce.json", folder / "log"
    command: list[str | Path] = [sys.executable, "-m", "tools.simulator", "--port", "0", "--admin-port", "0"]
    command += ["--store", folder / "store", "--announce", announcement]
    with log.open("wb") as output:
        process = children.start(command, output=output)
    try:
        deadline = time.monotonic() + 15
        while not announcement.exists():
            assert process.poll() is None, f"The simulator ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"The simulator did not start:\n{log.read_text()}"
            time.sleep(0.02)
        yield Simulator(**json.loads(announcement.read_text()))
    finally:
        children.stop(process, signal.SIGTERM)


@pytest.fixture
def simulator(simulator_process: Simulator, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """The simulated world, new; contracts find its systems here and in child processes."""
    simulator_process.reset()
    settings.TOOL_SYSTEMS = simulator_process.addresses
    monkeypatch.setenv("AMENDS_SYSTEMS", json.dumps(simulator_process.addresses))
    monkeypatch.setenv("SIMULATOR_ADMIN_URL", simulator_process.admin_url)
    return simulator_process
