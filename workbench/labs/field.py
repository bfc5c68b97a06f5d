"""A proving ground on servers that run already: the simulated world, workers, sweep and relay as real processes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from django.conf import settings
from django.core.management import call_command

from workbench.labs.supervisor import Program, Supervisor
from workbench.labs.world import Outside

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0


class Field:
    """Starts what is missing around the database and the broker of the environment; leaving it stops all of it."""

    def __init__(self, *, workers: int = 2) -> None:
        self._workers = workers
        self._stack = ExitStack()
        self.environment = dict(os.environ)
        self.supervisor: Supervisor
        self.outside: Outside

    def __enter__(self) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="amends-field-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.supervisor = Supervisor(logs=folder / "logs", environment=self.environment, cwd=ROOT)
        self._stack.callback(self.supervisor.stop)
        if os.environ.get("DATABASE_OWNER_URL"):
            call_command("migrate", verbosity=0)
        self._world(folder)
        python = sys.executable
        worker = ["-m", "celery", "-A", "workbench.config", "worker", "--loglevel=warning"]
        quiet = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
        self._keep("worker", [python, *worker, *quiet, f"--concurrency={self._workers}"])
        self._keep("sweep", [python, "manage.py", "sweep"])
        self._keep("relay", [python, "manage.py", "relay"])
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _keep(self, name: str, command: list[str]) -> None:
        self.supervisor.start(Program(name=name, command=command))

    def _world(self, folder: Path) -> None:
        announcement = folder / "world.json"
        place = ["--store", str(folder / "world"), "--announce", str(announcement)]
        ports = ["--port", "0", "--admin-port", "0", "--fast"]
        self._keep("world", [sys.executable, "-m", "tools.simulator", *ports, *place])
        deadline = time.monotonic() + PATIENCE_S
        while not announcement.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the simulated world did not start")
            time.sleep(0.05)
        announced = json.loads(announcement.read_text())
        settings.TOOL_SYSTEMS = announced["systems"]
        self.environment["AMENDS_SYSTEMS"] = json.dumps(announced["systems"])
        self.outside = Outside(announced["admin_url"])
