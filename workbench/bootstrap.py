"""Makes .venv from a hashed lock, with nothing but the standard library of any Python 3.8+.

Owns: finding an interpreter, creating the environment, installing the lock `run` or `dev` into it.
Must not import anything of the project: it runs before the project can.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
import sys
from typing import IO, Iterator

NEEDED = (3, 12)
PROVEN = ("python3.13", "python3.12", "python3.14", "python3")
ELSEWHERE = (
    "~/.pyenv/versions/3.*/bin/python",
    "~/.local/share/uv/python/cpython-3.*/bin/python3",
    "~/.local/bin/python3.*",
    "/opt/homebrew/bin/python3.*",
    "/usr/local/bin/python3.*",
    "/opt/python*/bin/python3",
)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "installed.txt")
UNMET = """No Python {}.{} or newer with its venv module was found. Three ways to get one:
  - the system's packages, for instance: apt-get install python3.13 python3.13-venv
  - pyenv install 3.13
  - uv python install 3.13
or name one: make demo PYTHON=/path/to/python3.13"""


def main(wanted: str) -> int:
    """Bring .venv up to the lock `wanted` ("run" or "dev"); return an exit code."""
    with _one_at_a_time():
        if not runs_and_is_new_enough(VENV_PYTHON):
            interpreter = find_interpreter()
            if interpreter is None:
                say(UNMET.format(*NEEDED))
                return 1
            say("Making .venv with {}".format(interpreter))
            shutil.rmtree(VENV, ignore_errors=True)
            subprocess.check_call([interpreter, "-m", "venv", VENV])
        if not installed(wanted):
            say("Installing the hashed lock requirements/{}.txt".format(wanted))
            install(wanted)
    return 0


def find_interpreter() -> str | None:
    """The first candidate that actually runs: version-manager shims may be on PATH and still fail."""
    return next((c for c in candidates() if runs_and_is_new_enough(c)), None)


def candidates() -> Iterator[str]:
    """Paths of possible interpreters, the best guess first."""
    if os.environ.get("PYTHON"):
        yield os.environ["PYTHON"]
    for name in PROVEN:
        found = shutil.which(name)
        if found:
            yield found
    pyenv = os.environ.get("PYENV_ROOT")
    patterns = ((os.path.join(pyenv, "versions", "3.*", "bin", "python"),) if pyenv else ()) + ELSEWHERE
    globbed = [path for pattern in patterns for path in glob.glob(os.path.expanduser(pattern))]
    # Proven versions first; "3.9" must not sort after "3.12", hence no plain string order.
    yield from sorted(globbed, key=lambda path: ("3.13" not in path, "3.12" not in path, path))


def runs_and_is_new_enough(python: str) -> bool:
    """Whether the candidate starts at all and is a Python that the product runs on."""
    probe = "import ensurepip, sys, venv; sys.exit(sys.version_info[:2] < {!r})".format(NEEDED)
    try:
        done = subprocess.run(
            [python, "-I", "-c", probe],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def install(wanted: str) -> None:
    """Install with the pinned uv (a quarter of pip's work), or with pip where uv cannot do it."""
    lock = lock_path(wanted)
    pip = [VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    uv = [os.path.join(VENV, "bin", "uv"), "pip", "install", "--quiet", "--python", VENV_PYTHON]
    by_uv = (
        [*pip, "--require-hashes", "-r", lock_path("bootstrap")],
        [*uv, "--require-hashes", "-r", lock],
    )
    if any(subprocess.call(command) for command in by_uv):
        say("uv could not do it; trying pip")
        subprocess.check_call([*pip, "--no-compile", "--require-hashes", "-r", lock])
    with open(STAMP, "w") as stamp:
        # The dev lock holds the run lock whole (same pins), so it satisfies both.
        names = ("run", "dev") if wanted == "dev" else ("run",)
        stamp.writelines("{} {}\n".format(name, digest(name)) for name in names)


def installed(wanted: str) -> bool:
    """Whether .venv was made from this very lock."""
    try:
        with open(STAMP) as stamp:
            return "{} {}\n".format(wanted, digest(wanted)) in stamp.readlines()
    except OSError:
        return False


def digest(name: str) -> str:
    """The lock's content in one word."""
    with open(lock_path(name), "rb") as lock:
        return hashlib.sha256(lock.read()).hexdigest()


def lock_path(name: str) -> str:
    """Where the lock of this name lies."""
    return os.path.join(ROOT, "requirements", name + ".txt")


def say(text: str) -> None:
    """A line for whoever waits, on standard error."""
    print(text, file=sys.stderr, flush=True)


class _one_at_a_time:
    """Two `make` at once in one clone must not both fill .venv."""

    def __enter__(self) -> None:
        self.file: IO[str] = open(os.path.join(ROOT, ".venv.lock"), "w")
        try:
            import fcntl

            fcntl.flock(self.file, fcntl.LOCK_EX)
        except ImportError:  # no fcntl, no lock: Windows runs this under WSL
            pass

    def __exit__(self, *exc: object) -> None:
        self.file.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "run"))
