"""Real processes for tests that end them the hard way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from sagas.facts import RunFacts
from sagas.ledger.workers import LEASE_S
from sagas.models import DefinitionVersion, Run
from sagas.sweep import UNTAKEN
from tests.integration.sagas.stage import Stage, stage
from tests.integration.sagas.test_anti_patterns import contract_of, publish, workflow
from workbench.labs import children

__all__ = ["stage"]

ROOT = Path(__file__).resolve().parents[2]
LEAST_LEASE_S = LEASE_S / 2
"""What is left of a living process's lease when the clock is put forward: time enough to beat."""

GRACE_S = 60.0
"""What a process has to end in by itself; deployments give it as long (compose.yaml)."""
LONG_CALL_S = 25.0
"""Long enough for a test to act while the call is under way, however busy the machine is."""

WORKER = ("-m", "celery", "-A", "workbench.config", "worker", "--concurrency=1", "--loglevel=info")
QUIET = ("--without-mingle", "--without-gossip", "--without-heartbeat")


class Processes:
    """The product's processes, each with a log of its own; all are ended with the module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[children.Child] = []
        self._names: dict[int, str] = {}

    def start(self, name: str, *python: str, env: dict[str, str] | None = None) -> children.Child:
        """Start a Python program of the product. Its environment is ours, and what `env` changes."""
        with (self._folder / f"{name}.log").open("ab") as log:
            child = children.start(
                [sys.executable, *python],
                env={**os.environ, **(env or {})},
                output=log,
                cwd=ROOT,
                when_orphaned=signal.SIGKILL,
            )
        self._running.append(child)
        self._names[child.pid] = name
        return child

    def sweep(self, **env: str) -> children.Child:
        return self.start("sweep", "manage.py", "sweep", env=env)

    def relay(self, **env: str) -> children.Child:
        return self.start("relay", "manage.py", "relay", env=env)

    def workers(self, *names: str, env: dict[str, str] | None = None) -> list[children.Child]:
        """Celery workers, one process each, that are ready to hear the bell."""
        started = [self.start(name, *WORKER, *QUIET, f"--hostname={name}@here", env=env) for name in names]
        for name, child in zip(names, started, strict=True):
            wait_until(lambda name=name: " ready." in self.log(name), f"{name} is ready")  # type: ignore[misc]
            assert child.poll() is None, self.log(name)[-3000:]
        return started

    def all_well(self) -> None:
        """Fail with the log of a process that has ended by itself."""
        for child in self._running:
            name = self._names[child.pid]
            assert child.poll() is None, f"{name} has ended:\n{self.log(name)[-3000:]}"

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def end(self, child: children.Child, *signals: signal.Signals) -> int:
        """End a process, politely unless told otherwise, and return its exit code."""
        self._running.remove(child)
        return children.stop(child, *(signals or (signal.SIGTERM,)), patience=GRACE_S)

    def kill(self, child: children.Child) -> None:
        """SIGKILL for the whole group of a process, children of a worker included."""
        self._running.remove(child)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def end_all(self) -> None:
        for child in list(self._running):
            self.end(child, signal.SIGTERM)


@pytest.fixture(scope="module")
def processes(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes on the module's stage."""
    started = Processes(tmp_path_factory.mktemp("processes"))
    yield started
    started.end_all()


class Victims:
    """The forking process and what it reports."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        self.pids: dict[int, int] = {}
        self.signals: dict[int, int] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            report = json.loads(line)
            if "started" in report:
                self.pids[report["run_id"]] = report["started"]
            else:
                self.signals[report["ended"]] = report["signal"]

    def send(self, **command: Any) -> None:
        assert self.process.stdin is not None
        print(json.dumps(command), file=self.process.stdin, flush=True)

    def no_more(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    @property
    def gone(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        if not self.gone:
            self.process.kill()
        self.process.wait()
        self._reader.join(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def patient_orders(*tools: str) -> str:
    """The order workflow with calls of these tools that may take long; returns its name. Published once a module."""
    if not DefinitionVersion.objects.filter(name="patient_orders").exists():
        slow = [contract_of(tool) for tool in tools]
        for contract in slow:
            contract["limits"]["total_s"] = LONG_CALL_S
        publish(workflow("order_fulfilment"), "patient_orders", *slow)
    return "patient_orders"


def wait_until(
    so: Callable[[], bool], what: str, *, seconds: float = 180.0, meanwhile: Callable[[], None] = lambda: None
) -> float:
    """Wait until something is so and return how many seconds that took. Fails after `seconds`."""
    began = time.monotonic()
    while not so():
        assert time.monotonic() - began < seconds, f"Not within {seconds} s: {what}."
        meanwhile()
        time.sleep(0.05)
    return time.monotonic() - began


def children_of(pid: int) -> list[int]:
    """The processes that a process has forked."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped in the middle of whatever it did."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def hurry(stage: Stage, refs: list[str]) -> None:
    """Put the database's clock forward over a wait of these runs that nothing but time ends.

    Only while nobody holds one of them, and never so far that the lease of a living process runs out.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM min(r.due_at) - now_()), (SELECT extract(epoch FROM min(w.lease_until) - now_()) "
            "FROM sagas_worker w WHERE w.ended_at IS NULL AND w.lease_until > now_()) FROM sagas_run r "
            "WHERE r.ref = ANY(%s) AND r.finished_at IS NULL HAVING bool_and(r.owner = '') AND min(r.due_at) IS NOT NULL",
            [refs],
        )
        for due_s, lease_s in cursor.fetchall():
            ahead_s = float(due_s) + UNTAKEN.total_seconds()
            if lease_s is not None:
                ahead_s = min(ahead_s, float(lease_s) - LEAST_LEASE_S)
            if ahead_s > 0.0:
                stage.clock.put_forward(ahead_s)


def at_rest(refs: list[str]) -> bool:
    """Whether every one of these runs is with a person or at its end, and nobody holds it."""
    resting = ("handoff", "completed", "compensated", "failed_clean", "closed_accepted")
    return not Run.objects.filter(ref__in=refs).exclude(state__in=resting, owner="").exists()


def effects(stage: Stage, facts: RunFacts) -> list[dict[str, Any]]:
    """What took effect outside for this run, in order."""
    return [record for record in stage.simulator.ledger(kind="effect") if facts.ref in record["key"]]


def arrivals(stage: Stage, ref: str, tool: str) -> list[dict[str, Any]]:
    """The calls of one tool for this run that reached the outside."""
    return [r for r in stage.simulator.ledger(tool=tool, kind="arrived") if ref in r["key"]]
