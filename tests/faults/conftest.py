"""Real processes for tests that end them the hard way."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sagas.models import Run
from tests.integration.sagas.conftest import clock_of_tests
from tests.integration.sagas.stage import Stage, stage
from workbench.labs import children

__all__ = ["clock_of_tests", "stage"]

ROOT = Path(__file__).resolve().parents[2]
WORKER = ("-m", "celery", "-A", "workbench.config", "worker", "--concurrency=1", "--loglevel=info")
QUIET = ("--without-mingle", "--without-gossip", "--without-heartbeat")


class Processes:
    """The product's processes, each with a log of its own; all are ended with the module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[children.Child] = []

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
        return child

    def sweep(self, **env: str) -> children.Child:
        return self.start("sweep", "manage.py", "sweep", env=env)

    def relay(self, **env: str) -> children.Child:
        return self.start("relay", "manage.py", "relay", env=env)

    def worker(self, name: str) -> children.Child:
        """A Celery worker that is ready to hear the bell."""
        child = self.start(name, *WORKER, *QUIET, f"--hostname={name}@here")
        wait_until(
            lambda: " ready." in self.log(name),
            f"{name} is ready",
            meanwhile=lambda: _alive(child, self.log(name)),
        )
        return child

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def end(self, child: children.Child, *signals: signal.Signals) -> int:
        """End a process, politely unless told otherwise, and return its exit code."""
        self._running.remove(child)
        return children.stop(child, *(signals or (signal.SIGTERM,)))

    def kill(self, child: children.Child) -> None:
        """SIGKILL for the whole group of a process, children of a worker included."""
        self._running.remove(child)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def end_all(self) -> None:
        for child in list(self._running):
            self.end(child, signal.SIGTERM)


def _alive(child: children.Child, log: str) -> None:
    assert child.poll() is None, f"The process ended:\n{log[-3000:]}"


@pytest.fixture(scope="module")
def processes(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes on the module's stage."""
    started = Processes(tmp_path_factory.mktemp("processes"))
    yield started
    started.end_all()


def wait_until(
    so: Callable[[], bool], what: str, *, seconds: float = 60.0, meanwhile: Callable[[], None] = lambda: None
) -> float:
    """Wait until something is so and return how many seconds that took. Fails after `seconds`."""
    began = time.monotonic()
    while not so():
        assert time.monotonic() - began < seconds, f"Not within {seconds} s: {what}."
        meanwhile()
        time.sleep(0.05)
    return time.monotonic() - began


def at_rest(refs: list[str]) -> bool:
    """Whether every one of these runs is with a person or at its end, and nobody holds it."""
    resting = ("handoff", "completed", "compensated", "failed_clean", "closed_accepted")
    return not Run.objects.filter(ref__in=refs).exclude(state__in=resting, owner="").exists()
