"""An arena: PostgreSQL, broker, simulated world and the product's processes, all our own, each of which can be ended.

Owns a folder of its own that goes with it, however it ends. Must be entered and used from the main thread, where
children are started; reading (`outside`, `pid`, `names`) is free to all threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from signal import Signals
from typing import Self
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from django.core.management import call_command
from redis import Redis

from workbench.labs.clock import Clock
from workbench.labs.datafolder import CannotStart
from workbench.labs.embedded import APPLICATION, CLONE, Profile, Servers
from workbench.labs.repoint import django_at
from workbench.labs.strays import MARK, end_strays, ending_on_sigterm, family_of, janitor
from workbench.labs.supervisor import Program, Supervisor
from workbench.labs.world import Outside

PATIENCE_S = 180.0
DATABASE, BROKER, WORLD = "database", "broker", "world"
_SERVERS = {DATABASE: "postgres", BROKER: "valkey"}
_WEB = ("--no-control-socket", "--worker-class=gthread", "--threads=8", "--log-level=warning")
_WORKER = ("--loglevel=info", "--without-mingle", "--without-gossip", "--without-heartbeat")
_DIRECTLY = build_opener(ProxyHandler({}))


class Arena:
    """Starts everything on entering and points this process's Django at it; leaving stops and removes all of it.

    Names: `database`, `broker`, `world`, then `web-1`, `worker-1`, `sweep-1`, `relay-1` and so on. `environment` is
    added to that of the product's processes. A worker is a Celery process with `concurrency` children.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        web: int = 0,
        sweeps: int = 1,
        relays: int = 1,
        concurrency: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._counts = {"web": web, "worker": workers, "sweep": sweeps, "relay": relays}
        self._concurrency = concurrency
        self._added = dict(environment or {})
        self._stack = ExitStack()
        self._stopped: set[str] = set()
        self.environment: dict[str, str] = {}
        self.folder: Path
        self.servers: Servers
        self.supervisor: Supervisor
        self.outside: Outside
        self.web_url = ""

    # --- Coming and going

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
        self._stack.enter_context(ending_on_sigterm())
        self.folder = Path(tempfile.mkdtemp(prefix="amends-arena-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.servers = Servers(self.folder, Profile.ARENA, own=True)
        self.servers.claim()
        self._stack.enter_context(janitor(self.folder, self.servers.sockets))
        self._stack.callback(self.servers.stop)
        own = self.servers.environment | {
            "AMENDS_ENV": os.environ.get("AMENDS_ENV", "demo"),
            "DJANGO_SECRET_KEY": secrets.token_hex(32),
            # The people of an arena are scripts, and as fast.
            "AMENDS_COMMANDS_A_MINUTE": "60000",
            "DJANGO_SETTINGS_MODULE": "workbench.config.settings",
        }
        self.environment |= os.environ | own | {MARK: str(self.folder)}
        self.supervisor = Supervisor(logs=self.folder / "logs", environment=self.environment, cwd=CLONE)
        self._stack.callback(end_strays, self.folder)
        self._stack.callback(self.supervisor.stop)
        self._stack.callback(self._wake_all)
        announcement = self._start_world()
        self.servers.start()
        own |= self._addresses(announcement)
        self._stack.enter_context(django_at(own))
        call_command("migrate", verbosity=0)
        self.environment |= own | self._added
        for kind, count in self._counts.items():
            for number in range(1, count + 1):
                self._keep(f"{kind}-{number}", *self._command(kind, f"{kind}-{number}"))

    def _start_world(self) -> Path:
        announcement = self.folder / "world.json"
        place = (f"--store={self.folder / 'world'}", f"--announce={announcement}")
        self._keep(WORLD, "-m", "tools.simulator", "--port=0", "--admin-port=0", "--fast", *place)
        return announcement

    def _addresses(self, announcement: Path) -> dict[str, str]:
        _wait_for("the simulated world", announcement.exists)
        announced = json.loads(announcement.read_text())
        self.outside = Outside(announced["admin_url"])
        found = {
            "AMENDS_SYSTEMS": json.dumps(announced["systems"]),
            "SIMULATOR_ADMIN_URL": str(announced["admin_url"]),
        }
        if self._counts["web"]:
            self._listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            self.web_url = "http://{}:{}/".format(*self._listener.getsockname())
            found["AMENDS_CALLBACK_URL"] = f"{self.web_url}api/v1/callbacks"
            found["AMENDS_CALLBACK_SECRETS"] = json.dumps({"jobs": announced["callback_secret"]})
        return found

    def _command(self, kind: str, name: str) -> tuple[str, ...]:
        match kind:
            case "web":
                bind = f"--bind=fd://{self._listener.fileno()}"
                return ("-m", "gunicorn", "workbench.config.wsgi", *_WEB, bind)
            case "worker":
                how = (f"--concurrency={self._concurrency}", f"--hostname={name}@arena")
                return ("-m", "celery", "-A", "workbench.config", "worker", *_WORKER, *how)
            case _:
                return ("manage.py", kind)

    def _keep(self, name: str, *python: str) -> None:
        listener = [self._listener.fileno()] if name.startswith("web-") else []
        self.supervisor.start(
            Program(
                name=name,
                command=[sys.executable, *python],
                pass_fds=listener,
                patience=5.0,
                when_orphaned=Signals.SIGKILL,
            )
        )

    def add(self, kind: str, name: str) -> None:
        """Start one more process of a kind (`worker`, `sweep`, `relay`) under a name of its own."""
        self._keep(name, *self._command(kind, name))

    def wait_until_ready(self) -> None:
        """Return when the workers hear the bell and the web answers. Raises `CannotStart`."""
        for name in self.supervisor.names():
            if name.startswith("worker-") and name in self._pids():
                _wait_for(name, partial(self._has_pool, name))
        if self.web_url:
            _wait_for("the web server", self.answers)

    def _has_pool(self, name: str) -> bool:
        return len(self.children_of(name)) >= self._concurrency

    def answers(self) -> bool:
        """Whether a page is served."""
        try:
            with _DIRECTLY.open(f"{self.web_url}livez", timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, TimeoutError, ConnectionError):
            return False

    def names(self, kind: str = "") -> list[str]:
        """Everything that can be ended: servers, world, processes; of one kind alone (`worker`) if it is given."""
        every = [*_SERVERS, *self.supervisor.names()]
        return [name for name in every if name.partition("-")[0] == kind] if kind else every

    def pid(self, name: str) -> int:
        """The process that runs under this name. Raises `KeyError` when none does."""
        return self._pids()[name]

    def runs(self, name: str) -> bool:
        """Whether there is a process under this name."""
        return name in self._pids()

    def children_of(self, name: str) -> list[int]:
        """The processes that a program has forked; a worker's pool, gunicorn's workers."""
        pid = self._pids().get(name, 0)
        with contextlib.suppress(FileNotFoundError):
            listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            return [int(child) for child in listed.split()]
        return []

    def log(self, name: str) -> str:
        """What a process has said so far."""
        path = self.folder / f"{_SERVERS[name]}.log" if name in _SERVERS else self.supervisor.log(name)
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def connection_url_owner(self) -> str:
        """Address of the database as its owner."""
        return self.servers.environment["DATABASE_OWNER_URL"]

    @cached_property
    def clock(self) -> Clock:
        """The clock of the database; it can be put forward."""
        clock = Clock(self.connection_url_owner)
        clock.install(APPLICATION)
        return clock

    def _pids(self) -> dict[str, int]:
        servers = self.servers.pids()
        return {
            name: servers[own] for name, own in _SERVERS.items() if own in servers
        } | self.supervisor.pids()

    # --- Faults

    def kill(self, name: str, number: Signals = Signals.SIGKILL, *, group: bool = False) -> None:
        """End a process (`group`: its children too) and return when it is gone; `tend` starts a program again."""
        if name in _SERVERS:
            self.wake(name)
            self.servers.kill(_SERVERS[name], number)
            return
        pid = self._pids().get(name)
        if pid is None:
            return
        self.supervisor.signal(name, number, group=group)
        self._stopped.discard(name)
        _wait_for(f"the end of {name}", lambda: self._pids().get(name) != pid)

    def kill_child(self, pid: int) -> None:
        """End one of `children_of`. Raises `ProcessLookupError` when it has ended by itself."""
        os.kill(pid, Signals.SIGKILL)

    def pause(self, name: str) -> None:
        """Stop a process and its children in the middle of whatever they do (SIGSTOP)."""
        self._stopped.add(name)
        self._signal_all(name, Signals.SIGSTOP)

    def wake(self, name: str) -> None:
        """Let a paused process go on."""
        if name in self._stopped:
            self._signal_all(name, Signals.SIGCONT)
            self._stopped.discard(name)

    def stop(self, name: str) -> None:
        """Stop a program politely; it stays down until `start`."""
        self.wake(name)
        self.supervisor.end(name)

    def start(self, name: str) -> None:
        """Start a program that is down, at once; a server likewise."""
        if name in _SERVERS:
            self.servers.revive(_SERVERS[name])
        else:
            self.supervisor.begin(name)

    def kill_database(self) -> None:
        """End PostgreSQL at once, as a crash would; it stays down until `start_database`."""
        self.kill(DATABASE, Signals.SIGQUIT)

    def start_database(self) -> None:
        """Start PostgreSQL again and return when it answers. Raises `CannotStart`."""
        self.start(DATABASE)

    def kill_broker(self) -> None:
        """End the broker; it stays down until `start_broker`."""
        self.kill(BROKER)

    def start_broker(self) -> None:
        """Start the broker again, empty."""
        self.start(BROKER)

    def empty_broker(self) -> None:
        """Take everything away that the broker holds, while it runs."""
        url = self.servers.environment["REDIS_URL"]
        with contextlib.closing(Redis.from_url(url, socket_timeout=5.0)) as client:
            client.flushall()

    def tend(self) -> list[str]:
        """Start every program again that has ended and was not stopped here; returns what was noticed."""
        return self.supervisor.tend()

    def _wake_all(self) -> None:
        for name in list(self._stopped):
            self.wake(name)

    def _signal_all(self, name: str, number: Signals) -> None:
        pid = self._pids().get(name)
        for one in [] if pid is None else [pid, *family_of(pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)


def _wait_for(what: str, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            raise CannotStart(f"{what} did not come within {PATIENCE_S:.0f} s.")
        time.sleep(0.03)
