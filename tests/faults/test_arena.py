"""The arena, in a process of its own: what is ended can be started again, and nothing of it stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import django, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
django.setup()
from django.db import connection
from workbench.labs.arena import Arena

def clock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), extract(epoch FROM now_() - clock_timestamp()) FROM sagas_run")
        return cursor.fetchone()

with Arena(workers=0, sweeps=1, relays=0) as arena:
    print(arena.folder, flush=True)
    first = {name: arena.pid(name) for name in arena.names()}
    assert sorted(first) == ["broker", "database", "sweep-1", "world"], first
    assert clock()[0] == 0
    arena.kill_database()
    connection.close()
    arena.start_database()
    arena.clock.put_forward(60)
    assert 59 < clock()[1] < 61, clock()
    arena.kill_broker()
    arena.start_broker()
    arena.empty_broker()
    arena.pause("sweep-1")
    arena.kill("sweep-1")
    time.sleep(0.6)
    assert any("sweep-1" in line for line in arena.tend())
    assert arena.outside.net(business="A-1") == {}
    arena.stop("sweep-1")
    assert arena.tend() == []
    arena.start("sweep-1")
    second = {name: arena.pid(name) for name in arena.names()}
    assert {name for name in first if first[name] != second[name]} == {"broker", "database", "sweep-1"}, second
    arena.pause("sweep-1")
    print("ready", flush=True)
    time.sleep(60)
"""


def running(folder: str) -> list[str]:
    """Processes that carry the arena's mark."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"AMENDS_ARENA={folder}".encode() in environ.read_bytes():
                found.append(environ.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_of_an_arena_stays_behind(how: signal.Signals) -> None:
    arena = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "workbench.config.settings"},
    )
    assert arena.stdout is not None
    with arena, arena.stdout as lines:
        folder = lines.readline().strip()
        assert lines.readline() == "ready\n"
        assert running(folder)
        arena.send_signal(how)
        assert arena.wait(120) == -how
    deadline = time.monotonic() + 120
    while Path(folder).exists() or running(folder):
        assert time.monotonic() < deadline, (Path(folder).exists(), running(folder))
        time.sleep(0.1)
