"""The supervisor on real processes: what ends is started again, what is stopped ends in reverse order."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from workbench.labs.supervisor import Program, Supervisor

STAY = """
import signal, sys, time
from pathlib import Path
name, book = sys.argv[1:]
def end(*_):
    with Path(book).open("a") as file:
        file.write(f"{name} ended\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print(f"{name} is up", flush=True)
while True:
    time.sleep(1)
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    environment = {"PATH": os.defpath, "COLOUR": "green"}
    kept = Supervisor(logs=tmp_path / "logs", environment=environment, cwd=tmp_path)
    yield kept
    kept.stop()


def staying(name: str, book: Path) -> Program:
    return Program(name=name, command=[sys.executable, "-c", STAY, name, book])


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_a_killed_program_is_started_again_and_the_person_is_told(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start(staying("worker", tmp_path / "book"))
    log = tmp_path / "logs" / "worker.log"
    eventually(lambda: log.read_text() == "worker is up\n")
    first = supervisor.pids()["worker"]
    assert supervisor.tend() == []
    os.kill(first, signal.SIGKILL)
    told: list[str] = []

    def told_of_it() -> bool:
        told.extend(supervisor.tend())
        return bool(told)

    eventually(told_of_it)
    assert told == [f"worker ended with -9; started again (see {log})"]
    eventually(lambda: log.read_text() == "worker is up\nworker is up\n")
    assert supervisor.pids()["worker"] != first


def test_a_program_that_cannot_start_is_tried_ever_more_slowly(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    supervisor.start(Program(name="broken", command=[sys.executable, "-c", "raise SystemExit(3)"]))
    restarts = []
    for second in range(60):
        while supervisor.pids():
            time.sleep(0.01)
        clock[0] += 1
        if notices := supervisor.tend():
            assert notices[0].startswith("broken ended with 3; started again")
            restarts.append(second)
    pauses = [later - earlier for earlier, later in pairwise(restarts)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 8


def test_programs_are_stopped_the_last_one_first(supervisor: Supervisor, tmp_path: Path) -> None:
    book = tmp_path / "book"
    for name in ("web", "worker", "sweep"):
        supervisor.start(staying(name, book))
        log = tmp_path / "logs" / f"{name}.log"
        eventually(lambda log=log: log.read_text().endswith("is up\n"))  # type: ignore[misc]
    pids = supervisor.pids()
    supervisor.stop()
    assert book.read_text().split("\n") == ["sweep ended", "worker ended", "web ended", ""]
    assert supervisor.pids() == {}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


def test_a_program_that_does_not_listen_is_ended_all_the_same(supervisor: Supervisor, tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); "
    deaf += "time.sleep(600)"
    supervisor.start(Program(name="deaf", command=[sys.executable, "-c", deaf], patience=0.3))
    pid = supervisor.pids()["deaf"]
    eventually(lambda: (tmp_path / "logs" / "deaf.log").read_text() == "up\n")
    supervisor.stop()
    assert not Path(f"/proc/{pid}").exists()


def test_programs_see_the_given_environment_only(supervisor: Supervisor, tmp_path: Path) -> None:
    tell = "import os; print(os.environ.get('COLOUR'), 'HOME' in os.environ)"
    supervisor.start(Program(name="tell", command=[sys.executable, "-c", tell]))
    eventually(lambda: (tmp_path / "logs" / "tell.log").read_text() == "green False\n")
