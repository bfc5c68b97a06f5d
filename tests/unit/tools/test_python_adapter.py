"""Python tools: in a child process that is killed at its limit, or trusted in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.tools.samples import ARGS, contract
from tools.contract import Contract
from tools.outcome import Observation, OutcomeKind, Seen, classify
from tools.world import World, boot_time

MODULE = "tests.unit.tools.python_tools"


def made_by(name: str, *, trusted: bool = False, module: str = MODULE) -> Contract:
    return contract(
        call={"adapter": "python", "target": f"{module}:{name}", "trusted_fast": trusted},
        limits={"total_s": 60.0, "body_bytes": 65536},
    )


def call(of: Contract, **more: object) -> Observation:
    return World({}).call(of, **{"args": ARGS, "key": "K-1", **more})  # type: ignore[arg-type]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("name", "seen", "kind"),
    [
        ("book", Seen.ANSWER, OutcomeKind.CONFIRMED),
        ("refuse", Seen.ANSWER, OutcomeKind.REJECTED),
        ("fail", Seen.RAISED, OutcomeKind.UNKNOWN),
        ("leave", Seen.RAISED, OutcomeKind.UNKNOWN),
        ("no_json", Seen.BAD_BODY, OutcomeKind.UNKNOWN),
        ("not_a_number", Seen.BAD_BODY, OutcomeKind.UNKNOWN),
        ("large", Seen.TOO_LARGE, OutcomeKind.UNKNOWN),
        ("unmarked", Seen.NOT_SENT, OutcomeKind.NOT_SENT),
        ("nothing", Seen.NOT_SENT, OutcomeKind.NOT_SENT),
    ],
)
def test_a_function_answers_by_the_same_table(
    name: str, seen: Seen, kind: OutcomeKind, trusted: bool
) -> None:
    of = made_by(name, trusted=trusted)

    observation = call(of)

    assert observation.seen is seen
    assert classify(of, observation).kind is kind
    assert "hunter2" not in observation.detail


def test_the_function_gets_arguments_and_key_and_cannot_change_our_record() -> None:
    args = dict(ARGS)

    observation = call(made_by("book", trusted=True), args=args)

    assert observation.body == {"booking": "B-1", "key": "K-1"}
    assert args == ARGS


def test_only_marked_functions_can_be_named() -> None:
    assert call(made_by("system", module="os")).seen is Seen.NOT_SENT
    assert call(made_by("system", module="no_such_module")).seen is Seen.NOT_SENT


def test_a_child_that_ends_without_a_word_leaves_the_outcome_unknown() -> None:
    assert call(made_by("vanish")).seen is Seen.NO_ANSWER


def test_a_child_and_what_it_started_are_killed_at_the_limit(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    for limit_s in (1.5, 6.0, 24.0):  # until the machine is fast enough for the child to have begun
        observation = call(made_by("hang"), args=ARGS | {"night": str(note)}, time_limit_s=limit_s)
        assert observation.seen is Seen.NO_ANSWER
        if note.exists():
            break

    # By themselves they would go on for a minute.
    assert all(gone_within(int(pid), 30) for pid in note.read_text().split())


def test_a_window_for_sending_that_has_closed_keeps_the_function_from_being_called(tmp_path: Path) -> None:
    note = tmp_path / "pids"

    observation = call(made_by("hang"), args=ARGS | {"night": str(note)}, send_before=boot_time() - 1)

    assert observation.seen is Seen.NOT_SENT
    assert not note.exists()


def test_a_child_sees_nothing_of_our_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", "postgres://owner:secret@db/app")

    observation = call(made_by("environment"))

    assert "DATABASE_OWNER_URL" not in observation.body["names"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_child_ends_with_the_process_that_made_the_call(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    script = (
        "from tests.unit.tools.test_python_adapter import ARGS, call, made_by\n"
        f"call(made_by('hang'), args=ARGS | {{'night': {str(note)!r}}})\n"
    )
    root = Path(__file__).resolve().parents[3]
    caller = subprocess.Popen([sys.executable, "-c", script], cwd=root)
    try:
        until = time.monotonic() + 60
        while not (note.exists() and " " in note.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        child = int(note.read_text().split()[0])
        assert is_running(child)
        os.kill(caller.pid, signal.SIGKILL)
        caller.wait(60)

        assert gone_within(child, 60)
    finally:
        if caller.poll() is None:
            caller.kill()
            caller.wait(60)
        for pid in note.read_text().split()[1:] if note.exists() else []:
            os.kill(int(pid), signal.SIGKILL)
