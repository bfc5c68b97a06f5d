"""Processes that nobody waits for: children whose parent was killed, and what is left when we are killed ourselves.

A mark in the environment tells whose they are; it is inherited, whoever the parent was.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = "AMENDS_ARENA"

# Reads until we are gone, then ends what is left of us and takes the folders away.
_JANITOR = """
cat > /dev/null
for found in $(grep -lsF "$1=$2" /proc/[0-9]*/environ); do
    process=${found#/proc/}; kill -9 "${process%/environ}" 2> /dev/null
done
sleep 1
rm -rf "$2" "$3"
"""


@contextmanager
def janitor(*folders: Path) -> Iterator[None]:
    """A shell that does nothing until we are gone, even by SIGKILL; then it ends the processes that carry the first
    folder as their mark, and takes the folders away.
    """
    shell = subprocess.Popen(
        ["/bin/sh", "-c", _JANITOR, "janitor", MARK, *map(str, folders)],
        stdin=subprocess.PIPE,
        env={"PATH": os.defpath},
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        shell.kill()
        shell.communicate()


def end_strays(folder: Path) -> None:
    """End every process that carries this folder as its mark."""
    mark = f"{MARK}={folder}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)


def family_of(pid: int) -> list[int]:
    """The other processes of a session that `pid` leads, and its children in sessions of their own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            if pid in (int(fields[1]), int(fields[3])) and int(stat.parent.name) != pid:
                found.append(int(stat.parent.name))
    return found


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """SIGTERM ends us like Ctrl-C does, in good order, unless somebody has other plans for it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
