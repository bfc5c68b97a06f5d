"""`make demo`: the whole product on this machine, until Ctrl-C. `--check` proves it and ends.

Owns the order in which things start and stop. Django's settings are read only after the servers' addresses
are in the environment, hence no management command.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from workbench.config.env import DEMO_KEY
from workbench.labs import embedded
from workbench.labs.datafolder import SOCKETS, CannotStart, publish
from workbench.labs.supervisor import Program, Supervisor

WEB = ("--preload", "--no-control-socket", "--worker-class=gthread", "--threads=8", "--log-level=warning")
WORKER = ("--concurrency=2", "--loglevel=info", "--without-mingle", "--without-gossip", "--without-heartbeat")
PATIENCE = 180.0  # seconds for a process to become ready
TEND_EVERY = 0.5  # seconds
DIRECTLY = build_opener(ProxyHandler({}))  # this machine is never reached through a proxy


class Stop(BaseException):
    """SIGINT or SIGTERM arrived."""


class Demo:
    """What `make demo` starts; leaving the block stops it all, the last first."""

    def __init__(self, data: Path, *, port: int = 0) -> None:
        self._data, self._stack = data, ExitStack()
        self._servers = embedded.Servers(data, embedded.Profile.DEMO)
        # One dictionary for all programs; addresses are added to it as they become known.
        self._environment: dict[str, str] = {}
        self._listener = listen(port)
        self.web_url = "http://{}:{}/".format(*self._listener.getsockname())
        self.admin_url = ""
        self.supervisor = Supervisor(logs=data / "logs", environment=self._environment, cwd=embedded.CLONE)

    def __enter__(self) -> "Demo":
        self._stack.callback(self._listener.close)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # one is enough: the rest takes a moment
        self._stack.close()

    def _start(self) -> None:
        say("Starting PostgreSQL and Valkey")
        self._stack.callback(self._servers.stop)
        self._servers.start()
        self._stack.callback(self.supervisor.stop)
        own = self._servers.environment | self._identity()
        self._environment |= os.environ | own
        own |= self._world()
        os.environ |= own
        publish(self._data, own | {SOCKETS: str(self._servers.sockets)})
        self._environment |= own
        self._environment.pop("DATABASE_OWNER_URL", None)  # only what migrates may change the schema

        bind = f"--bind=fd://{self._listener.fileno()}"
        self._run("web", "-m", "gunicorn", "workbench.config.wsgi", *WEB, bind)
        say("Migrating the database as its owner")
        migrate()

    def wait_until_ready(self) -> None:
        """Return when pages are served."""
        wait_for("the web server", lambda: answers(f"{self.web_url}livez"), self.tend)

    def start_working(self) -> None:
        """Start what works in the background; a person may look around in the meantime."""
        self._run("worker", "-m", "celery", "-A", "workbench.config", "worker", *WORKER)
        self._run("sweep", "manage.py", "sweep")
        self._run("relay", "manage.py", "relay")

    def _run(self, name: str, *python: str | Path) -> None:
        listener = [self._listener.fileno()] if name == "web" else []
        self.supervisor.start(Program(name=name, command=[sys.executable, *python], pass_fds=listener))

    def tend(self) -> None:
        """Bring back what has ended, servers and programs."""
        for name in self._servers.revive():
            say(f"{name} ended and was started again")
        for notice in self.supervisor.tend():
            say(notice)

    def verdict(self) -> list[str]:
        """Whether every process is still the one that was started: the sweep alone would hide a dead worker."""
        ended = [*self._servers.revive(), *self.supervisor.tend()]
        return [f"NOT {notice}" for notice in ended] or ["ok  no process ended"]

    def _identity(self) -> dict[str, str]:
        """Kept beside the data, so that a login survives a restart."""
        key = self._data / "secret_key"
        if not key.exists():
            with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                # Marked as a demo's, so that production refuses it wherever it was copied to.
                file.write(DEMO_KEY + secrets.token_urlsafe(50))
        return {
            "AMENDS_ENV": "demo",
            "DJANGO_SECRET_KEY": key.read_text(),
            "DJANGO_SETTINGS_MODULE": "workbench.config.settings",
        }

    def _world(self) -> dict[str, str]:
        """Start the simulated world; its ports stay the same if it has to be started again."""
        announcement = self._data / "world.json"
        announcement.unlink(missing_ok=True)
        tools, admin = free_ports(2)
        ports = [f"--port={tools}", f"--admin-port={admin}"]
        store = [f"--store={self._data / 'world'}", f"--announce={announcement}"]
        self._run("world", "-m", "tools.simulator", *ports, *store)
        wait_for("the simulated world", announcement.exists, self.tend)
        announced = json.loads(announcement.read_text())
        self.admin_url = announced["admin_url"]
        return {
            "AMENDS_SYSTEMS": json.dumps(announced["systems"]),
            "AMENDS_CALLBACK_URL": f"{self.web_url}api/v1/callbacks",
            "AMENDS_CALLBACK_SECRETS": json.dumps({"jobs": announced["callback_secret"]}),
            "SIMULATOR_ADMIN_URL": self.admin_url,
        }


def migrate() -> None:
    """In this process: an interpreter less to start."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def show(port: int) -> int:
    """Run the demo on the clone's data until told to stop."""
    began = time.monotonic()
    with Demo(embedded.demo_data(), port=port) as demo:
        from workbench.labs import cast, story

        cast.load()
        demo.wait_until_ready()
        say(f"\nAmends is ready after {time.monotonic() - began:.1f} s:  {demo.web_url}\n")
        for member in cast.CAST:
            say(f"  {member.username:<8} {member.password:<14} {member.display_name}, {member.title}")
        say("\nStop with Ctrl-C. The demo story follows.\n")
        demo.start_working()

        def progress(line: str) -> None:
            say(f"  {line}")
            demo.tend()

        story.load(progress)
        say("\nThe story is told; the queue is yours.")
        while True:
            time.sleep(TEND_EVERY)
            demo.tend()


def check() -> int:
    """Run the demo on data of its own, settle its story and compare with what happened outside."""
    data = Path(tempfile.mkdtemp(prefix="amends-check-"))
    verdicts: list[str] = []
    # What people settle in a morning is settled here within a minute.
    os.environ.setdefault("AMENDS_COMMANDS_A_MINUTE", "1000")
    try:
        with Demo(data) as demo:
            from workbench.labs import cast, check, story

            cast.load()
            demo.wait_until_ready()
            demo.start_working()
            say(f"Ready: {demo.web_url}")
            story.load(say)
            verdicts = check.run(demo.web_url, demo.admin_url, say)
            verdicts += demo.verdict()
    finally:
        passed = bool(verdicts) and all(verdict.startswith("ok") for verdict in verdicts)
        if not passed:
            say_last_lines(data)
        shutil.rmtree(data, ignore_errors=True)
    # What does not hold is said once more at the end: of a long output the last lines are what people see.
    failed = [verdict for verdict in verdicts if not verdict.startswith("ok")]
    say("\n".join(["", *verdicts, "", *failed, "The demo holds." if passed else "THE DEMO DOES NOT HOLD."]))
    return 0 if passed else 1


def say_last_lines(data: Path) -> None:
    """What the processes logged, before it goes with the data."""
    for log in sorted((*data.glob("*.log"), *data.glob("logs/*.log"))):
        say("\n".join([f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-25:]]))


def say(line: str) -> None:
    """A line for whoever watches, at once."""
    print(line, flush=True)


def wait_for(what: str, ready: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    """Raises CannotStart after PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise CannotStart(f"{what} did not become ready in {PATIENCE:.0f} s.")
        meanwhile()
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Whether the address answers a GET with 200."""
    try:
        with DIRECTLY.open(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (URLError, TimeoutError, ConnectionError):
        return False


def listen(port: int) -> socket.socket:
    """A listening socket on loopback. Raises CannotStart when the port is taken."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise CannotStart(f"Port {port} cannot be had: {error.strerror}.") from error


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(listen(0)) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def stop(number: int, frame: object) -> None:
    """Turn a signal into `Stop`, wherever the program is."""
    raise Stop


def main() -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help="prove the demo's story and end")
    parser.add_argument("--port", type=int, default=0, help="the web port; any free one without it")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        return check() if arguments.check else show(arguments.port)
    except Stop:
        say("Stopped.")
        return 130 if arguments.check else 0
    except CannotStart as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
