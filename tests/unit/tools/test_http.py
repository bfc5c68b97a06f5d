"""One HTTP call against real sockets: what is seen, and that it always ends in time."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from typing import Any

import pytest

from tests.unit.tools.samples import ARGS, DOCUMENT, contract
from tests.unit.tools.wires import Behaviour, raw, reply, wire
from tools.contract import Contract
from tools.outcome import Observation, OutcomeKind, Seen, classify
from tools.payload import TEXT_KEPT
from tools.world import World, boot_time

GOOD = b'{"booking": "B-1"}'


def call(url: str, of: Contract | None = None, **more: Any) -> Observation:
    world = World({"rooms": url})
    try:
        return world.call(of or contract(), **{"args": ARGS, "key": "K-1", **more})
    finally:
        world.close()


def seen_of(behave: Behaviour, of: Contract | None = None, **more: Any) -> Observation:
    with wire(behave) as served:
        return call(served.url, of, **more)


def test_a_sound_answer_is_seen_with_status_body_and_key() -> None:
    seen = seen_of(reply(GOOD, status="201 Created", headers="Retry-After: 3\r\nX-Other: 1\r\n"))

    assert (seen.seen, seen.status, seen.body, seen.key) == (Seen.ANSWER, 201, {"booking": "B-1"}, "K-1")
    assert seen.headers == {"retry-after": "3"}
    assert (seen.body_bytes, seen.schema_fault) == (len(GOOD), "")
    assert len(seen.body_sha256) == 64


@pytest.mark.requirement("S4-24", "S0-28")
def test_the_request_carries_the_key_and_nothing_from_the_surroundings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with wire(reply(GOOD)) as served:
        assert call(served.url, headers={"Amends-Fence": "7"}).seen is Seen.ANSWER
        head, _, body = served.requests[0].partition(b"\r\n\r\n")

    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/rooms/12/bookings HTTP/1.1"
    assert {"Idempotency-Key: K-1", "Amends-Fence: 7", "Accept-Encoding: identity"} <= set(lines)
    assert not [line for line in lines if line.lower().startswith(("cookie", "authorization", "proxy"))]
    assert json.loads(body) == {"night": "2031-05-01"}


def test_a_tool_without_keys_gets_none() -> None:
    with wire(reply(GOOD)) as served:
        call(served.url, contract(idempotency={"support": "none"}))
        assert b"dempotency" not in served.requests[0]


@pytest.mark.parametrize(
    ("room", "path"),
    [
        ("a/b ?#%", b"/rooms/a%2Fb%20%3F%23%25/"),
        ("zimmer-ü", b"/rooms/zimmer-%C3%BC/"),
        ("..a", b"/rooms/..a/"),
    ],
)
def test_an_argument_cannot_leave_its_place_in_the_path(room: str, path: bytes) -> None:
    with wire(reply(GOOD)) as served:
        call(served.url, args=ARGS | {"room": room})
        assert path in served.requests[0].split(b"\r\n")[0]


@pytest.mark.parametrize("room", ["", ".", "..", "\ud800"])
def test_an_argument_that_fits_no_path_refuses_the_call_before_anything_leaves(room: str) -> None:
    with wire(reply(GOOD)) as served:
        assert call(served.url, args=ARGS | {"room": room}).seen is Seen.REFUSED_HERE
        assert served.requests == []


@pytest.mark.parametrize("args", [{}, {"room": "1"}, {"room": 1, "night": "x"}, ARGS | {"more": 1}, None])
def test_arguments_that_break_the_contract_refuse_the_call(args: object) -> None:
    with wire(reply(GOOD)) as served:
        seen = call(served.url, args=args)
        assert served.requests == []

    assert seen.seen is Seen.REFUSED_HERE
    assert classify(contract(), seen).kind is OutcomeKind.REJECTED


@pytest.mark.requirement("S3-6", "S1-18")
class TestNothingLeft:
    def test_a_refused_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]

        seen = call(f"http://127.0.0.1:{port}")

        assert seen.seen is Seen.NOT_SENT
        assert classify(contract(), seen).kind is OutcomeKind.NOT_SENT

    def test_an_unknown_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: object, **__: object) -> object:
            raise socket.gaierror(-2, "unknown")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)

        assert call("http://rooms.example").seen is Seen.NOT_SENT

    def test_a_resolver_that_never_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answered = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [answered.wait(300)][1:])

        seen = call("http://rooms.example")

        assert seen.seen is Seen.NOT_SENT
        assert not answered.is_set()
        answered.set()

    def test_a_server_that_does_not_accept(self) -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            port = full.getsockname()[1]
            waiting = [socket.socket() for _ in range(4)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            seen = call(f"http://127.0.0.1:{port}")

            assert seen.seen is Seen.NOT_SENT
            assert seen.duration_ms < 9_000  # the limit for connecting counts, not the one for all of it
            for one in waiting:
                one.close()

    def test_a_server_that_speaks_no_tls(self) -> None:
        with wire(reply(GOOD)) as served:
            assert call(served.url.replace("http:", "https:")).seen is Seen.NOT_SENT
            assert served.requests == []

    def test_a_system_without_an_address(self) -> None:
        assert World({}).call(contract(), args=ARGS, key="K-1").seen is Seen.NOT_SENT

    @pytest.mark.parametrize("base", ["", "rooms", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://["])
    def test_an_address_that_is_none(self, base: str) -> None:
        assert call(base).seen is Seen.NOT_SENT

    def test_a_window_for_sending_that_has_closed(self) -> None:
        with wire(reply(GOOD)) as served:
            assert call(served.url, send_before=boot_time() - 0.001).seen is Seen.NOT_SENT
            assert call(served.url, send_before=boot_time() + 5).seen is Seen.ANSWER
            assert len(served.requests) == 1


@pytest.mark.requirement("S3-6", "S1-17", "S1-18")
class TestNoAnswer:
    @pytest.mark.parametrize(
        "behave",
        [
            raw(b""),
            raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
            raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"),
        ],
        ids=["closed", "half a header", "half a body", "half a chunk"],
    )
    def test_a_connection_that_breaks_off(self, behave: Behaviour) -> None:
        seen = seen_of(behave)

        assert seen.seen is Seen.NO_ANSWER
        assert classify(contract(), seen).kind is OutcomeKind.UNKNOWN

    def test_a_connection_that_is_reset(self) -> None:
        def reset(connection: socket.socket, _: bytes) -> None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            connection.close()

        assert seen_of(reset).seen is Seen.NO_ANSWER

    @pytest.mark.parametrize(
        "opening",
        [
            b"",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
        ],
        ids=["silent", "in the headers", "in the body", "after an interim answer"],
    )
    @pytest.mark.parametrize("drip", [b"", b"a"], ids=["hanging", "dripping"])
    def test_a_server_that_hangs_or_drips_is_left_at_the_limit(self, opening: bytes, drip: bytes) -> None:
        def behave(connection: socket.socket, _: bytes) -> None:
            connection.sendall(opening)
            if not drip:
                connection.recv(1)  # until the other side has had enough
                return
            for _round in range(600):
                time.sleep(0.1)
                connection.sendall(drip)

        seen = seen_of(behave, time_limit_s=0.5)

        assert seen.seen in {Seen.NO_ANSWER, Seen.BAD_BODY}
        assert classify(contract(), seen).kind is OutcomeKind.UNKNOWN
        assert 400 <= seen.duration_ms <= 30_000  # by itself it would go on for a minute

    def test_a_server_that_never_reads_a_large_request(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            big = contract(call=DOCUMENT["call"] | {"body": {"from": "args", "pointer": "/night"}})
            seen = call(
                f"http://127.0.0.1:{deaf.getsockname()[1]}",
                big,
                args=ARGS | {"night": "x" * 20_000_000},
                time_limit_s=1.0,
            )

        assert seen.seen is Seen.NO_ANSWER  # by itself it would never end


@pytest.mark.requirement("S1-17", "S3-4")
@pytest.mark.parametrize(
    "behave",
    [
        reply(b"<html>please log in</html>"),
        reply(b'{"booking": "B-1"'),
        reply(b'{"booking": NaN}'),
        reply(b'{"booking": "B-1", "booking": "B-2"}'),
        reply(b"[" * 50_000),
        reply(b"\xff\xfe\x00"),
        reply(gzip.compress(GOOD), headers="Content-Encoding: gzip\r\n"),
        raw(b"SSH-2.0-OpenSSH_9\r\n\r\n"),
        raw(b"HTTP/1.1 2OO OK\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{}"),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 500_000 + b"\r\n\r\n"),
    ],
    ids=[
        "html",
        "cut",
        "nan",
        "twice",
        "deep",
        "binary",
        "gzip",
        "no http",
        "status",
        "lengths",
        "long header",
    ],
)
def test_an_answer_that_cannot_be_read_is_seen_as_such(behave: Behaviour) -> None:
    seen = seen_of(behave)

    assert seen.seen is Seen.BAD_BODY
    assert seen.body is None
    assert classify(contract(), seen).kind is OutcomeKind.UNKNOWN


def test_a_compressed_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)

    seen = seen_of(reply(bomb, headers="Content-Encoding: gzip\r\n"))

    assert seen.seen is Seen.BAD_BODY
    assert seen.body_bytes == len(bomb)


def test_reading_stops_at_the_body_limit() -> None:
    sent = 0

    def endless(connection: socket.socket, _: bytes) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent < 50_000_000:
            sent += connection.send(b"x" * 65_536)

    seen = seen_of(endless)

    assert seen.seen is Seen.TOO_LARGE
    assert seen.body_bytes == 65_537
    assert len(seen.body_text) == TEXT_KEPT
    assert sent < 50_000_000


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
)
def test_a_redirect_is_not_followed(status: str) -> None:
    with wire(reply(GOOD)) as elsewhere:
        seen = seen_of(reply(b"", status=status, headers=f"Location: {elsewhere.url}\r\n"))
        assert elsewhere.requests == []

    assert seen.status == int(status[:3])
    assert classify(contract(), seen).kind is OutcomeKind.UNKNOWN


def test_an_answer_is_made_storable() -> None:
    seen = seen_of(reply(b'{"booking": "B\\u0000", "note": "\\ud800"}'))

    assert seen.body == {"booking": "B\ufffd", "note": "\ufffd"}
    assert classify(contract(), seen).kind is OutcomeKind.UNKNOWN


def test_secrets_in_an_unreadable_answer_are_masked_before_anybody_sees_them() -> None:
    seen = seen_of(reply(b"error: password=hunter2hunter2 Bearer abcdefghijklmnop"))

    assert "hunter2" not in seen.body_text
    assert "abcdefghijklmnop" not in seen.body_text


def test_an_answer_that_breaks_its_schema_is_noted_for_queries() -> None:
    assert "booking" in (seen_of(reply(b'{"unexpected": true}')).schema_fault or "")


def test_calls_from_many_threads_do_not_touch_each_other() -> None:
    def echo(connection: socket.socket, request: bytes) -> None:
        night = json.loads(request.partition(b"\r\n\r\n")[2])["night"]
        time.sleep(0.05 if night.endswith("0") else 0)
        reply(json.dumps({"booking": night}).encode())(connection, request)

    answers: dict[int, Observation] = {}
    with wire(echo) as served:
        world = World({"rooms": served.url})

        def one(number: int) -> None:
            args = ARGS | {"night": f"n{number}"}
            answers[number] = world.call(contract(), args=args, key=f"K-{number}")

        threads = [threading.Thread(target=one, args=(number,)) for number in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        world.close()

    assert {number: seen.body for number, seen in answers.items()} == {
        number: {"booking": f"n{number}"} for number in range(24)
    }


def test_a_preview_shows_the_call_without_secrets_and_sends_nothing() -> None:
    secret = contract(secret_fields=["/args/night"])
    with wire(reply(GOOD)) as served:
        world = World({"rooms": served.url})
        text = world.describe(secret, args=ARGS, key="K-1")
        world.close()
        assert served.requests == []

    assert (text.method, text.url_path) == ("POST", "rooms:/rooms/12/bookings")
    assert text.body == {"night": "[masked]"}
    assert text.summary == "Room booked"


def test_a_call_that_cannot_be_written_down_can_still_be_previewed() -> None:
    text = World({}).describe(contract(), args={}, key="K-1")

    assert "cannot be written down" in str(text.body)
