"""A real worker that is answered with fifty megabytes, or with a bomb, keeps its memory and its place in the queue."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from sagas.relay import ring
from sagas.states import RunState
from tests.faults.conftest import QUIET, WORKER, Processes, at_rest, wait_until
from tests.integration.sagas.stage import Stage

pytestmark = [pytest.mark.timeout(600), pytest.mark.requirement("S3-4")]

GOOD = {"reservation": "R-1", "state": "held"}
MEGABYTE = b"x" * 1_048_576
MOST_GROWTH_KB = 32 * 1024


class Handler(http.server.BaseHTTPRequestHandler):
    """Reserves stock and answers at length; `mode` says how."""

    mode = "plain"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.mode == "bomb":
            self._send([gzip.compress(MEGABYTE * 10)] * 5, encoding="gzip")
        elif self.mode == "large":
            self._send([json.dumps(GOOD).encode()[:-1], b',"echo":"', *[MEGABYTE] * 50, b'"}'])
        else:
            self._send([json.dumps(GOOD).encode()])

    def do_GET(self) -> None:
        self._send([json.dumps(GOOD).encode()])

    def _send(self, chunks: list[bytes], encoding: str = "") -> None:
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(sum(map(len, chunks))))
        self.end_headers()
        try:
            for chunk in chunks:
                self.wfile.write(chunk)
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def peak_kb(parent: int) -> int:
    """The most memory that a worker's pool child has used since it was asked last."""
    (child,) = [
        int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _parent_of(stat) == parent
    ]
    status = Path(f"/proc/{child}/status").read_text()
    (peak,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
    return peak


def _parent_of(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_fifty_megabytes_and_a_bomb_cost_a_worker_little_memory(
    stage: Stage, processes: Processes, url: str
) -> None:
    systems = json.dumps({**settings.TOOL_SYSTEMS, "stock": url})
    worker = processes.start(
        "large", *WORKER, *QUIET, "--hostname=large@here", env={"AMENDS_SYSTEMS": systems}
    )
    wait_until(lambda: " ready." in processes.log("large"), "the worker is ready")

    def through(mode: str, *numbers: int) -> list[RunState]:
        Handler.mode = mode
        refs = [stage.start("order_fulfilment", number) for number in numbers]
        ring()
        wait_until(lambda: at_rest(refs), f"{mode} has come to rest", meanwhile=processes.all_well)
        return [stage.facts(number).state for number in numbers]

    assert through("plain", *range(8_100_001, 8_100_009)) == [RunState.COMPLETED] * 8
    before = peak_kb(worker.pid)

    assert through("large", *range(8_100_011, 8_100_019)) == [RunState.COMPLETED] * 8
    assert through("bomb", *range(8_100_021, 8_100_025)) == [RunState.COMPLETED] * 4

    growth = peak_kb(worker.pid) - before
    print(f"peak memory grew by {growth} kB from {before} kB")  # noqa: T201
    assert growth <= MOST_GROWTH_KB
