"""Lanes side by side: each a process with a database and a simulated world of its own, on one PostgreSQL.

Owns the folder, the servers and the processes; leaving stops and removes all of it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlsplit

import psycopg
from django.core.management import call_command
from django.db import connections
from psycopg import sql

from sagas import api
from sagas.facts import Actor, ActorKind
from tools import lint
from tools.reader import contract_from_document, definition_from_document
from workbench.labs import cast, children
from workbench.labs.chaos.case import Outcome
from workbench.labs.chaos.cells import Cell, cells
from workbench.labs.chaos.contracts import SIGNED, definition, documents
from workbench.labs.chaos.errands import Signature
from workbench.labs.clock import Clock
from workbench.labs.embedded import APPLICATION, CLONE, DATABASE, Profile, Servers
from workbench.labs.repoint import django_at

PUBLISHER = Actor(kind=ActorKind.HUMAN, id="user:chaos", name="Chaos", role="owner")
PATIENCE_S = 60.0
_SETTINGS = ("enable_seqscan", "jit")
"""Off: these tables begin empty, and what was planned for them then is wrong a thousand cases later."""


class Lane:
    """A process that plays cells."""

    def __init__(self, number: int, environment: dict[str, str], log: IO[bytes]) -> None:
        self.number = number
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workbench.labs.chaos.lane"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=CLONE,
            text=True,
        )

    def play(
        self, cell: Cell, *, only: str = "", points: Iterable[str] = (), most: int | None = None
    ) -> Iterator[Outcome]:
        """Have a cell played. Raises `RuntimeError` when the lane ends instead."""
        place = [cell.kind, cell.behaviour, cell.position, cell.direction]
        return self._ask({"cell": place, "only": only, "points": list(points), "most": most})

    def run_errand(self, point: str) -> Iterator[Outcome]:
        """Have the errand run in which this point comes by."""
        return self._ask({"errand": point})

    def _ask(self, order: dict[str, Any]) -> Iterator[Outcome]:
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018
        print(json.dumps(order), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "played" in answer:
                return
            yield Outcome.of(answer)
        raise RuntimeError(f"lane {self.number} ended while it played {order}")

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Lanes:
    """PostgreSQL with the tables, the contracts and the workflows stored once, and `count` lanes on copies of it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._stack = ExitStack()
        self.lanes: list[Lane] = []
        self.folder: Path

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="amends-chaos-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        servers = Servers(self.folder, Profile.TEST, own=True)
        self._stack.callback(servers.stop)
        servers.start()
        own = servers.environment | {
            "AMENDS_ENV": "test",
            "AMENDS_FAULT_POINTS": "[]",
            "DJANGO_SECRET_KEY": secrets.token_hex(32),
            "DJANGO_SETTINGS_MODULE": "workbench.config.settings",
        }
        with django_at(own):
            call_command("migrate", verbosity=0)
            _publish()
            connections.close_all()
        owner = own["DATABASE_OWNER_URL"]
        Clock(owner).install(APPLICATION)
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute(
                sql.SQL("GRANT UPDATE ON test_clock.ahead TO {}").format(sql.Identifier(APPLICATION))
            )
        for number in range(1, self._count + 1):
            self._add(number, own)

    def _add(self, number: int, own: dict[str, str]) -> None:
        name = f"{DATABASE}_{number}"
        elsewhere = _at(own["DATABASE_OWNER_URL"], "postgres")
        with psycopg.connect(elsewhere, autocommit=True) as connection:
            statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(DATABASE)))
            for setting in _SETTINGS:
                connection.execute(
                    sql.SQL("ALTER DATABASE {} SET {} = off").format(sql.Identifier(name), sql.SQL(setting))
                )
        announced = self._world(number)
        environment = {
            **os.environ,
            **own,
            "DATABASE_URL": _at(own["DATABASE_URL"], name),
            "DATABASE_OWNER_URL": _at(own["DATABASE_OWNER_URL"], name),
            "AMENDS_SYSTEMS": json.dumps(announced["systems"]),
            "SIMULATOR_ADMIN_URL": announced["admin_url"],
            "AMENDS_CALLBACK_URL": "hold:/api/v1/callbacks",
            "AMENDS_CALLBACK_SECRETS": json.dumps({"jobs": announced["callback_secret"]}),
            "CHAOS_LANE": f"c{number}n",
        }
        log = self._stack.enter_context((self.folder / f"lane-{number}.log").open("wb"))
        lane = Lane(number, environment, log)
        self._stack.callback(lane.close)
        self.lanes.append(lane)

    def _world(self, number: int) -> dict[str, Any]:
        announcement = self.folder / f"world-{number}.json"
        place = (f"--store={self.folder / f'world-{number}'}", f"--announce={announcement}")
        log = self._stack.enter_context((self.folder / f"world-{number}.log").open("wb"))
        command = [sys.executable, "-m", "tools.simulator", "--in-memory", "--fast", *place]
        child = children.start(command, output=log, cwd=CLONE)
        self._stack.callback(children.stop, child)
        deadline = time.monotonic() + PATIENCE_S
        while not announcement.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the simulated world did not start")
            time.sleep(0.02)
        announced: dict[str, Any] = json.loads(announcement.read_text())
        return announced

    def log(self, lane: Lane) -> str:
        """What a lane has said so far."""
        return (self.folder / f"lane-{lane.number}.log").read_text(errors="replace")


def _publish() -> None:
    cast.load()
    for document in documents():
        api.publish_contract(contract_from_document(document), actor=PUBLISHER)
    waivers = [
        lint.Waiver(code="W103", reason="What such a tool does when it is struck is what is looked at here.")
    ]
    for cell in {cell.workflow: cell for cell in cells()}.values():
        workflow = definition_from_document(definition(cell.workflow, cell.tools(), refused=cell.back))
        waived = waivers if cell.kind in ("asked", "blind") else ()
        api.publish_definition(workflow, actor=PUBLISHER, waivers=waived)
    signed = definition(Signature.workflow, [SIGNED], refused=False)
    api.publish_definition(definition_from_document(signed), actor=PUBLISHER)


def _at(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
