"""Child processes that end when we end, even when we are killed with SIGKILL.

Must be used from the main thread: Linux ties the promise to the life of the thread that starts the child.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

Child = subprocess.Popen[bytes]

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def start(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | int | None = None,
    cwd: Path | str | None = None,
    user: int | None = None,
    group: int | None = None,
    pass_fds: Sequence[int] = (),
    when_orphaned: signal.Signals = signal.SIGTERM,
) -> Child:
    """Start `command` in a session of its own (a Ctrl-C at the terminal is ours alone to pass on)."""
    launcher = os.getpid()

    def follow_launcher() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, int(when_orphaned))
            if os.getppid() != launcher:  # it died before the line above
                os._exit(1)

    return subprocess.Popen(
        [str(part) for part in command],
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        cwd=cwd,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
        pass_fds=pass_fds,
        start_new_session=True,
        preexec_fn=follow_launcher,
    )


def stop(child: Child, *signals: signal.Signals, patience: float = 10.0) -> int:
    """Send each signal in turn, waiting `patience` seconds after each, then SIGKILL; return the exit code."""
    for number in (*signals, signal.SIGKILL):
        if child.poll() is None:
            child.send_signal(number)
        try:
            return child.wait(None if number is signal.SIGKILL else patience)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("SIGKILL cannot be outlived")
