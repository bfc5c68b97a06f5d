"""The pytest plugin that gives a test run its own PostgreSQL, Valkey and database.

Addresses are in the environment before Django's settings read it; the servers start when the first test
needs them. Also keeps the network shut: only this machine can be reached.
"""

import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from workbench.labs.datafolder import forget, is_served
from workbench.labs.embedded import ADDRESSES, Profile, Servers

FOLDER = "amends-test-"
LOOPBACK = ("127.", "::1", "localhost")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """Put the addresses into the environment; a conftest would be too late for pytest-django.

    Under pytest-xdist every worker process does this for itself: own servers, own database. What a worker inherits of
    the controller's environment is told apart from what a developer gave.
    """
    given = {name: os.environ.pop(name) for name in ADDRESSES if name in os.environ}
    os.environ |= json.loads(os.environ.setdefault(GIVEN, json.dumps(given)))
    _sweep()
    servers = Servers(Path(tempfile.mkdtemp(prefix=FOLDER)), Profile.TEST)
    servers.claim()
    early_config.add_cleanup(lambda: _remove(servers))
    early_config.stash[SERVERS] = servers
    early_config.stash[MAINTENANCE] = servers.environment.get("DATABASE_OWNER_URL", "")
    name = f"amends_test_{secrets.token_hex(4)}"
    os.environ |= {
        **servers.environment,
        **{
            url: _with_database(servers.environment[url], name)
            for url in DATABASES
            if url in servers.environment
        },
        "AMENDS_ENV": "test",
        "AMENDS_FAULT_POINTS": "[]",
        "DJANGO_SECRET_KEY": secrets.token_hex(32),
    }
    sys.addaudithook(_shut_network)
    return (yield)


SERVERS: pytest.StashKey[Servers] = pytest.StashKey()
MAINTENANCE: pytest.StashKey[str] = pytest.StashKey()
DATABASES = ("DATABASE_URL", "DATABASE_OWNER_URL")
GIVEN = "AMENDS_TEST_GIVEN"


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Servers:
    """Running PostgreSQL and Valkey; their addresses are in the environment."""
    started = request.config.stash[SERVERS]
    started.start()
    return started


@pytest.fixture(scope="session")
def fresh_database(servers: Servers, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address (as owner) of an empty database that lives as long as the run."""
    owner = os.environ["DATABASE_OWNER_URL"]
    name = sql.Identifier(urlsplit(owner).path.lstrip("/"))
    maintenance = request.config.stash[MAINTENANCE]
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    yield owner
    if "postgres" in servers.pids():
        return  # it goes with its server
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {}").format(name))


def _with_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def _remove(servers: Servers) -> None:
    servers.stop()
    shutil.rmtree(servers.data, ignore_errors=True)


def _sweep() -> None:
    """Remove what test runs left behind that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - 60 and not is_served(folder):
                forget(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _shut_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every connection that would leave this machine."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host and not str(host).startswith(LOOPBACK):
        raise PermissionError(f"A test wanted to reach {host}; tests reach this machine only.")
