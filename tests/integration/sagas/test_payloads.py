"""Answers that nobody wants to store: the run never breaks on one, never hangs, and never calls twice because of it."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings

from sagas import api, relay
from sagas.errors import InvalidInput
from sagas.facts import RunFacts
from sagas.models import Run
from sagas.states import ActionState, RunState
from tests.integration.sagas.conftest import AGENT, settle
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S3-4", "S3-8")

GOOD = {"reservation": "R-1", "state": "held"}


@dataclass
class Tool:
    """A stock system that answers a reservation with whatever bytes a test gives it, and tells the truth when asked."""

    body: bytes = b""
    status: int = 201
    headers: dict[str, str] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    known: bytes = json.dumps(GOOD).encode()
    url: str = ""


@pytest.fixture(scope="module")
def server(stage: Stage) -> Iterator[Tool]:
    tool = Tool()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.endswith("/release"):
                return self._send(200, json.dumps({**GOOD, "state": "released"}).encode())
            tool.reserved.append(self.headers.get("Idempotency-Key", ""))
            return self._send(tool.status, tool.body, tool.headers)

        def do_GET(self) -> None:
            self._send(200, tool.known)

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the caller has heard enough

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        tool.url = f"http://127.0.0.1:{listening.server_address[1]}"
        yield tool
        listening.shutdown()
        thread.join()


@pytest.fixture
def tool(server: Tool, clear_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setattr(settings, "TOOL_SYSTEMS", {**clear_stage.simulator.systems, "stock": server.url})
    server.body, server.status, server.headers, server.known = b"", 201, {}, json.dumps(GOOD).encode()
    server.reserved.clear()
    return server


def go(stage: Stage, number: int = 8_000_001) -> RunFacts:
    stage.start("order_fulfilment", number)
    return settle(stage.ref(number), stage.clock)


def names(facts: RunFacts) -> list[str]:
    return [entry.name for entry in api.entries(facts.ref) if entry.step == "reserve_stock"]


def deep(levels: int) -> bytes:
    return b'{"reservation":"R-1","state":"held","x":' + b"[" * levels + b"]" * levels + b"}"


STORED = {
    "nul-escaped": b'{"reservation":"R-1","state":"held","note":"a\\u0000b"}',
    "lone-surrogate": b'{"reservation":"R-1","state":"held","note":"a\\ud800b"}',
    "nul-in-a-name": b'{"reservation":"R-1","state":"held","a\\u0000b":1}',
    "integer-beyond-2-53": b'{"reservation":"R-1","state":"held","serial":9007199254740993}',
    "integer-of-400-digits": b'{"reservation":"R-1","state":"held","serial":' + b"9" * 400 + b"}",
    "tiny-number": b'{"reservation":"R-1","state":"held","weight":1e-400}',
    "fifty-levels": deep(50),
    "sixty-kilobytes": json.dumps({**GOOD, "note": "x" * 60_000}).encode(),
}
"""Answers that prove success and can be stored, as they are or with what PostgreSQL refuses replaced."""

USELESS = {
    "nothing": b"",
    "html": b"<html><body>Sign in</body></html>",
    "cut-json": b'{"reservation":"R-1","state":"he',
    "wrong-schema": b'{"unexpected":true}',
    "list": b"[]",
    "nan": b'{"reservation":"R-1","state":"held","weight":NaN}',
    "infinite": b'{"reservation":"R-1","state":"held","weight":1e999}',
    "name-twice": b'{"reservation":"R-1","reservation":"R-2","state":"held"}',
    "not-utf-8": b'{"reservation":"R-\xff","state":"held"}',
    "raw-nul": b'{"reservation":"R-\x001","state":"held"}',
    "nul-in-the-reference": b'{"reservation":"R\\u00001","state":"held"}',
    "a-hundred-thousand-levels": deep(100_000),
    "integer-of-9000-digits": b'{"reservation":"R-1","state":"held","serial":' + b"9" * 9_000 + b"}",
    "two-megabytes": json.dumps({"note": "x" * 2_000_000, **GOOD}).encode(),
    "two-megabytes-of-a-list": json.dumps([GOOD] * 40_000).encode(),
    "two-megabytes-of-a-page": b"<html>" + b"x" * 2_000_000,
}
"""Answers that prove nothing: the outcome is unknown, and the status query decides."""


@pytest.mark.parametrize("body", STORED.values(), ids=STORED)
def test_a_strange_answer_that_proves_success_confirms_at_once(
    clear_stage: Stage, tool: Tool, body: bytes
) -> None:
    tool.body = body

    facts = go(clear_stage)

    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by, action.provider_ref) == (ActionState.CONFIRMED, "answer", "R-1")
    assert facts.state is RunState.COMPLETED
    assert len(tool.reserved) == 1
    assert action.compensation is not None
    assert action.compensation.args == {"reservation": "R-1"}
    assert Run.objects.get(ref=facts.ref).deliveries == 1


@pytest.mark.parametrize("body", USELESS.values(), ids=USELESS)
def test_an_answer_that_proves_nothing_is_unknown_and_the_query_decides(
    clear_stage: Stage, tool: Tool, body: bytes
) -> None:
    tool.body = body

    facts = go(clear_stage)

    assert "tool.execution.unknown" in names(facts)
    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by) == (ActionState.CONFIRMED, "status query")
    assert facts.state is RunState.COMPLETED
    assert len(tool.reserved) == 1
    (attempt,) = action.attempts
    assert (attempt.answer, attempt.error_class) == ("unknown", "garbage")


@pytest.mark.parametrize("name", ["nul-escaped", "integer-beyond-2-53", "fifty-levels"])
def test_a_strange_answer_of_the_status_query_settles_as_well(
    clear_stage: Stage, tool: Tool, name: str
) -> None:
    tool.body, tool.known = b"", STORED[name]

    facts = go(clear_stage)

    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by) == (ActionState.CONFIRMED, "status query")
    assert facts.state is RunState.COMPLETED


@pytest.mark.parametrize(
    "name", ["nothing", "wrong-schema", "list", "a-hundred-thousand-levels", "two-megabytes"]
)
def test_a_status_query_that_proves_nothing_leads_to_a_person_not_to_a_second_call(
    clear_stage: Stage, tool: Tool, name: str
) -> None:
    tool.body, tool.known = b"", USELESS[name]

    facts = go(clear_stage)

    assert facts.action("reserve_stock").state is ActionState.UNKNOWN
    assert facts.state is RunState.HANDOFF
    assert len(tool.reserved) == 1


@pytest.mark.parametrize(
    "detail",
    ["a\x00b", "\ud800", "x" * 50_000, "\x1b[31mred\x1b[0m"],
    ids=["nul", "surrogate", "long", "ansi"],
)
def test_a_refusal_with_a_strange_message_is_a_refusal(clear_stage: Stage, tool: Tool, detail: str) -> None:
    tool.status = 409
    tool.body = json.dumps({"error": "sold_out", "message": detail}).encode()

    facts = go(clear_stage)

    action = facts.action("reserve_stock")
    assert (action.state, facts.state) == (ActionState.REJECTED, RunState.FAILED_CLEAN)
    assert len(action.error_detail) <= 2_000
    assert not {"\x00", "\x1b"} & set(action.error_detail)


def test_an_input_with_a_number_beyond_2_53_starts_a_run_and_starts_it_once(
    clear_stage: Stage, tool: Tool
) -> None:
    tool.body = json.dumps(GOOD).encode()
    given = {**INPUTS["order_fulfilment"](8_000_002), "qty": 2**60}

    first = api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="big")
    again = api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="big")

    assert (first.created, again.created, first.run_ref) == (True, False, again.run_ref)
    assert settle(first.run_ref, clear_stage.clock).state is RunState.COMPLETED


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "surrogate"])
def test_an_input_that_cannot_be_stored_starts_nothing(clear_stage: Stage, text: str) -> None:
    given = {**INPUTS["order_fulfilment"](8_000_003), "address": text}

    with pytest.raises(InvalidInput, match=r"/address: .* cannot be stored"):
        api.start_run(actor=AGENT, definition="order_fulfilment", input=given, start_key="unstorable")

    assert not Run.objects.exists()


LARGE = json.dumps({**GOOD, "echo": "x" * 40_000_000}).encode()


def test_a_success_that_goes_on_for_forty_megabytes_is_a_success_with_its_reference(
    clear_stage: Stage, tool: Tool
) -> None:
    tool.body = LARGE

    facts = go(clear_stage)

    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by, action.provider_ref) == (ActionState.CONFIRMED, "answer", "R-1")
    assert facts.state is RunState.COMPLETED
    assert len(tool.reserved) == 1
    assert action.result == GOOD
    assert action.compensation is not None
    assert action.compensation.args == {"reservation": "R-1"}
    (said,) = [e for e in api.entries(facts.ref) if e.name == "tool.result.truncated"]
    assert said.after == {
        "read": 65_537,
        "declared": len(LARGE),
        "sha256": hashlib.sha256(LARGE[:65_537]).hexdigest(),
        "kept": ["reservation", "state"],
        "provider_ref": "R-1",
    }


def test_a_success_that_ends_before_its_reference_is_asked_for_and_not_repeated(
    clear_stage: Stage, tool: Tool
) -> None:
    tool.body = json.dumps({"echo": "x" * 2_000_000, **GOOD}).encode()

    facts = go(clear_stage)

    action = facts.action("reserve_stock")
    assert (action.state, action.settled_by) == (ActionState.CONFIRMED, "status query")
    assert len(tool.reserved) == 1
    assert "tool.result.truncated" in names(facts)


def test_a_compressed_answer_is_never_unpacked(clear_stage: Stage, tool: Tool) -> None:
    tool.body = gzip.compress(b'{"reservation":"R-1","state":"held","x":"' + b"0" * 10_000_000 + b'"}')
    tool.headers = {"Content-Encoding": "gzip"}

    facts = go(clear_stage)

    assert facts.action("reserve_stock").settled_by == "status query"
    assert len(tool.reserved) == 1


def test_nothing_large_gets_into_an_entry_an_event_or_a_page(clear_stage: Stage, tool: Tool) -> None:
    """60 kB that an answer may have are kept in one place: with the step that they answer."""
    tool.body = json.dumps({**GOOD, "note": "n" * 60_000}).encode()

    facts = go(clear_stage)

    events: list[relay.Event] = []
    while relay.relay_once(events.append):
        pass
    assert events
    assert max(len(event.data) for event in events) < 40_000
    assert not any("n" * 1000 in event.data for event in events)
    assert max(len(json.dumps(e.after)) for e in api.entries(facts.ref)) < 40_000
    assert facts.action("reserve_stock").result == {**GOOD, "note": "n" * 60_000}
