"""Jobs are accepted at once and done later; the caller is told by a signed callback, or amiss when that is planned."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.unit.simulator.conftest import Outside
from tests.unit.simulator.wire import Heard, OwnProcess, ask, wait_until

ORDER = {"customer": "C-1", "product": "voice", "delay_ms": 60}


class Receiver:
    """Who is called back: takes (`status` 200) or refuses, and keeps what came with its signature."""

    def __init__(self) -> None:
        self.came: list[tuple[float, str, bytes]] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.came.append((time.monotonic(), self.headers["Webhook-Signature"], raw))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/callbacks/jobs"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def said(self) -> list[Any]:
        return [json.loads(raw) for _, _, raw in self.came]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who waits to be called back."""
    one = Receiver()
    yield one
    one.close()


def genuine(secret: str, signature: str, raw: bytes) -> bool:
    at, _, digest = signature.partition(",")
    message = at.removeprefix("t=").encode() + b"." + raw
    wanted = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    return digest == f"v1={wanted}"


def order(outside: Outside, receiver: Receiver, key: str = "k", **more: Any) -> Heard:
    return outside.call("jobs", "POST", "/jobs", {**ORDER, "callback_url": receiver.url, **more}, key=key)


def read(outside: Outside, key: str = "k") -> Heard:
    return outside.call("jobs", "GET", f"/jobs?key={key}")


def called_back(outside: Outside, times: int) -> list[dict[str, Any]]:
    assert wait_until(lambda: len(outside.records(kind="called_back")) == times)
    return outside.records(kind="called_back")


def net(outside: Outside) -> int:
    return outside.effects("C-1").get("provision_line", {"net": 0})["net"]


@pytest.mark.requirement("S1-9")
def test_a_job_is_accepted_runs_and_is_told_once_with_a_signature(
    outside: Outside, receiver: Receiver
) -> None:
    # One that takes its time, to be looked at while it runs; one that is soon done.
    running = order(outside, receiver, "slow", delay_ms=60_000)
    assert (running.status, running.json["state"]) == (202, "running")
    assert (read(outside, "slow").status, net(outside)) == (202, 0)
    repeat = order(outside, receiver, "slow", delay_ms=60_000)
    assert (repeat.status, repeat.json) == (202, running.json)
    answer = order(outside, receiver)
    called_back(outside, 1)
    said = receiver.said()[0]
    assert (said["key"], said["reference"], said["state"], said["version"]) == (
        *("k", answer.json["job"]),
        *("done", 2),
    )
    assert said["result"]["line"].startswith("LN-")
    secret = outside.admin("GET", "/callbacks")["secret"]
    assert genuine(secret, receiver.came[0][1], receiver.came[0][2])
    assert (read(outside).status, read(outside).json["state"], net(outside)) == (200, "done", 1)


def test_a_callback_may_come_before_the_answer(outside: Outside, receiver: Receiver) -> None:
    outside.plan({"tool": "provision_line", "mode": "callback_early"})
    answer = order(outside, receiver, delay_ms=60_000)
    answered = time.monotonic()
    assert (answer.status, answer.json["state"]) == (202, "running")
    assert receiver.said()[0]["state"] == "done"
    assert receiver.came[0][0] < answered
    kinds = [record["kind"] for record in outside.records(key="k")]
    assert kinds.index("called_back") < kinds.index("replied")


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("callback_duplicate", [("done", 2), ("done", 2)]),
        ("callback_stale", [("done", 2), ("running", 1)]),
        ("job_fails", [("failed", 2)]),
    ],
)
def test_callbacks_come_twice_out_of_date_or_with_bad_news(
    outside: Outside, receiver: Receiver, mode: str, told: list[tuple[str, int]]
) -> None:
    outside.plan({"tool": "provision_line", "mode": mode})
    order(outside, receiver)
    called_back(outside, len(told))
    assert [(said["state"], said["version"]) for said in receiver.said()] == told
    assert [said["at"] for said in receiver.said()] == sorted(
        (said["at"] for said in receiver.said()), reverse=True
    )
    assert read(outside).json["state"] == told[0][0]
    assert net(outside) == (0 if mode == "job_fails" else 1)


def test_a_callback_may_never_come_although_the_work_is_done(outside: Outside, receiver: Receiver) -> None:
    outside.plan({"tool": "provision_line", "mode": "callback_never", "delay_ms": 20})
    order(outside, receiver)
    assert wait_until(lambda: read(outside).status == 200)
    time.sleep(0.1)
    assert (receiver.came, net(outside)) == ([], 1)


def test_a_forged_callback_does_not_carry_the_signature(outside: Outside, receiver: Receiver) -> None:
    outside.plan({"tool": "provision_line", "mode": "callback_forged"})
    order(outside, receiver)
    assert called_back(outside, 1)[0]["detail"]["forged"] is True
    secret = outside.admin("GET", "/callbacks")["secret"]
    assert not genuine(secret, receiver.came[0][1], receiver.came[0][2])


def test_a_callback_is_repeated_until_it_is_taken(outside: Outside, receiver: Receiver) -> None:
    receiver.statuses = [503]
    order(outside, receiver)
    assert [record["status"] for record in called_back(outside, 2)] == [503, 200]
    assert receiver.said()[0] == receiver.said()[1]


@pytest.mark.requirement("S0-39")
def test_a_job_that_is_withdrawn_while_it_runs_has_no_effect_and_one_that_is_done_is_released(
    outside: Outside, receiver: Receiver
) -> None:
    first = order(outside, receiver, delay_ms=1_500).json
    gone = outside.call("jobs", "POST", f"/jobs/{first['job']}/release", key="k~c")
    assert gone.json["state"] == "withdrawn"
    # The second would be done after the first.
    second = order(outside, receiver, "k2", delay_ms=1_550).json
    called_back(outside, 1)
    assert outside.call("jobs", "POST", f"/jobs/{second['job']}/release", key="k2~c").json["state"] == (
        "released"
    )
    time.sleep(0.15)
    assert [said["key"] for said in receiver.said()] == ["k2"]
    assert outside.effects("C-1")["provision_line"] == {"done": 1, "compensated": 1, "net": 0}


def test_work_that_was_accepted_is_done_and_told_after_a_kill(
    own_process: OwnProcess, receiver: Receiver
) -> None:
    body = {**ORDER, "callback_url": receiver.url, "delay_ms": 300}
    assert ask(own_process.system("jobs"), "POST", "/jobs", body, key="k").status == 202
    secret = own_process.addresses["callback_secret"]
    own_process.kill()
    own_process.start()
    assert wait_until(lambda: bool(receiver.came))
    assert own_process.addresses["callback_secret"] == secret
    assert genuine(secret, receiver.came[0][1], receiver.came[0][2])
