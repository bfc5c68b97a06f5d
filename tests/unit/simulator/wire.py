"""Plain HTTP to the simulated world, as somebody who knows nothing of the product would speak it."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Heard:
    """An answer: status, headers in lower case, raw body."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def ask(
    base: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    if_match: str = "",
    limit_s: float = 60.0,
) -> Heard:
    """One call on a connection of its own. Raises OSError or HTTPException when no whole answer arrives."""
    address = urlsplit(base)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=limit_s)
    headers = {"Content-Type": "application/json"}
    headers |= {"Idempotency-Key": key} if key else {}
    headers |= {"If-Match": if_match} if if_match else {}
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, address.path + path, content, headers)
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Heard(status=answer.status, headers=named, raw=answer.read())
    finally:
        connection.close()


class OwnProcess:
    """A simulator that a test may kill, on a store that outlives it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.arguments = folder, arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.addresses: dict[str, Any] = {}

    def start(self, stdin: int | None = subprocess.DEVNULL) -> None:
        announced = self.folder / "announced.json"
        announced.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tools.simulator", "--store", str(self.folder / "store")]
        command += ["--announce", str(announced), "--fast", *self.arguments]
        self.process = subprocess.Popen(command, stdin=stdin)
        end = time.monotonic() + 60
        while not announced.exists():
            assert self.process.poll() is None, "the simulator ended"
            assert time.monotonic() < end, "the simulator did not start"
            time.sleep(0.02)
        self.addresses = json.loads(announced.read_text())

    @property
    def admin(self) -> str:
        return str(self.addresses["admin_url"])

    def system(self, name: str) -> str:
        return str(self.addresses["systems"][name])

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
            if self.process.stdin is not None:
                self.process.stdin.close()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(told: Callable[[], object], *, within_s: float = 60.0) -> bool:
    """Whether `told()` becomes true in time."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if told():
            return True
        time.sleep(0.02)
    return bool(told())
