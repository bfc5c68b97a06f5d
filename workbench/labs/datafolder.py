"""The folder of one installation's data: who serves it, how to join in, and the secrets beside it.

Must not start anything. Everything written here is readable by its owner alone.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

SOCKETS = "AMENDS_SOCKETS"


class CannotStart(RuntimeError):
    """A server did not come up; the message says why and is meant for a person."""


class AlreadyRunning(CannotStart):
    """Another process serves this data folder."""


def is_served(data: Path) -> bool:
    """Whether a launcher that is alive holds this data folder."""
    try:
        lock(data).close()
    except AlreadyRunning:
        return True
    except FileNotFoundError:
        pass
    return False


def running_environment(data: Path) -> dict[str, str] | None:
    """The environment of the demo that runs on `data`, or None when none does. Raises AlreadyRunning
    while one is starting: it cannot be joined yet.
    """
    if not is_served(data):
        return None
    environment: dict[str, str] = json.loads((data / "environment.json").read_text())
    if environment.keys() <= {SOCKETS}:
        raise AlreadyRunning(f"A demo is just starting on {data}; try again in a moment.")
    return environment


def publish(data: Path, environment: Mapping[str, str]) -> None:
    """Tell `running_environment` what a command needs to join in."""
    write_private(data / "environment.json", dict(environment))


def forget(data: Path) -> None:
    """Remove what `publish` wrote, and the sockets of a launcher that was killed."""
    path = data / "environment.json"
    with suppress(FileNotFoundError, ValueError):
        if sockets := json.loads(path.read_text()).get(SOCKETS):
            shutil.rmtree(sockets, ignore_errors=True)
    path.unlink(missing_ok=True)


def passwords(data: Path, roles: Sequence[str]) -> dict[str, str]:
    """Made once and kept beside the data, readable by us alone."""
    path = data / "passwords.json"
    if not path.exists():
        write_private(path, {role: secrets.token_hex(16) for role in roles})
    kept: dict[str, str] = json.loads(path.read_text())
    return kept


def lock(data: Path) -> IO[str]:
    """Held while we serve; the kernel lets go of it however we end."""
    file = (data / "lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise AlreadyRunning(
            f"A demo already runs on {data}. Use it, or stop it first (Ctrl-C in its window)."
        ) from None
    return file


def write_private(path: Path, content: Mapping[str, str]) -> None:
    """Replace `path` in one step by a file that only we can read."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(dict(content), file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
