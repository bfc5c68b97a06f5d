"""HTTP on loopback: the tool port, a port for each system, and how an answer leaves (or does not).

Threads per connection, so a call that hangs holds nobody else up.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tools.simulator.behaviour import Reply
from tools.simulator.routes import SYSTEMS
from tools.simulator.wire import Call, Json
from tools.simulator.world import Outgoing, World

HOST = "127.0.0.1"
BODY_LIMIT = 4_000_000
DRIP_EVERY_S = 0.2
EVERYTHING = "*"


class Unreadable(Exception):
    """A request that cannot be read; the text says why."""


class Listener(ThreadingHTTPServer):
    """A listening socket whose open connections can be dropped with it."""

    daemon_threads = True
    request_queue_size = 256
    block_on_close = False

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__((HOST, port), handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept, and remember the connection."""
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection, and close it."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is everyday life here."""

    def start(self) -> None:
        """Serve on a thread."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.25}, daemon=True).start()

    def stop(self) -> None:
        """Refuse new connections and cut the open ones."""
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            _reset(connection)


def _reset(connection: socket.socket) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    except OSError:
        pass


class JsonHandler(BaseHTTPRequestHandler):
    """Reads JSON, writes JSON. Answers leave in one piece."""

    protocol_version = "HTTP/1.1"
    server_version = "world"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = 120

    def log_message(self, format: str, *args: object) -> None:
        """The ledger is the log."""

    def read_body(self) -> Json:
        """The JSON body, None when there is none. Raises Unreadable."""
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError as error:
            raise Unreadable("Content-Length is no number") from error
        if length > BODY_LIMIT or length < 0:
            self.close_connection = True
            raise Unreadable("the body is too large")
        raw = self.rfile.read(length) if length else b""
        if not raw:
            return None
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise Unreadable("the body is no JSON") from error

    def payload(self, status: int, body: bytes, headers: dict[str, str]) -> bytes:
        """Status line, headers and body as they go over the wire."""
        lines = [f"HTTP/1.1 {status} {self.responses.get(status, ('',))[0]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    def send_json(self, status: int, value: Json) -> None:
        """One JSON answer."""
        body = json.dumps(value, ensure_ascii=False).encode()
        self.wfile.write(self.payload(status, body, {"Content-Type": "application/json"}))


def tool_handler(
    world: World, is_down: Callable[[str], bool], system: str = ""
) -> type[BaseHTTPRequestHandler]:
    """A handler class for the tool port, or for the port of one system."""

    class ToolHandler(JsonHandler):
        def answer(self) -> None:
            name, path, query = self.addressed()
            if is_down(name):
                self.close_connection = True
                _reset(self.connection)
                return
            try:
                body = self.read_body()
            except Unreadable as problem:
                self.send_json(400, {"error": "unreadable", "message": str(problem)})
                return
            found = world.find(name, self.command, path)
            if found is None:
                self.send_json(404, {"error": "no_such_address", "message": f"{self.command} {self.path}"})
                return
            call = Call(
                method=self.command,
                target=f"/{name}{path}" + (f"?{query}" if query else ""),
                params=dict(found[1]),
                query=dict(parse_qsl(query)),
                body=body,
                key=self.headers.get("Idempotency-Key", ""),
                if_match=self.headers.get("If-Match", ""),
                callback_url=self.headers.get("Callback-Url", ""),
            )
            self.leave(world.handle(found[0], call))

        def addressed(self) -> tuple[str, str, str]:
            """System, path below it, query. A system's own port takes the path with and without its name."""
            parts = urlsplit(self.path)
            name, _, rest = parts.path.lstrip("/").partition("/")
            if system and name != system:
                return system, parts.path, parts.query
            return name, "/" + rest, parts.query

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def leave(self, out: Outgoing) -> None:
            text = out.text if out.text is not None else json.dumps(out.body, ensure_ascii=False)
            headers = {"Content-Type": "application/json", **out.headers}
            whole = self.payload(out.status, text.encode(), headers)
            if out.reply is Reply.RESET:
                self.close_connection = True
                _reset(self.connection)
            elif out.reply is Reply.HOLD:
                self.close_connection = True
                self.gone_within(out.delay_ms / 1000)
            elif out.reply is Reply.CUT:
                self.close_connection = True
                self.wfile.write(whole[: -max(1, len(text) // 2)])
            elif out.reply is Reply.DRIP:
                self.close_connection = True
                self.drip(whole, out.delay_ms / 1000)
            elif not (out.delay_ms and self.gone_within(out.delay_ms / 1000)):
                self.wfile.write(whole)

        def gone_within(self, seconds: float) -> bool:
            """Wait; True as soon as the client has hung up."""
            ready, _, _ = select.select([self.connection], [], [], seconds)
            if not ready:
                return False
            self.close_connection = True
            return True

        def drip(self, whole: bytes, seconds: float) -> None:
            """One byte at a time, never the last one."""
            end = time.monotonic() + seconds
            for position in range(len(whole) - 1):
                self.wfile.write(whole[position : position + 1])
                if time.monotonic() > end or self.gone_within(DRIP_EVERY_S):
                    return

    return ToolHandler


class Gateway:
    """The listening side: one port for all systems, and one for each that can be closed alone."""

    def __init__(self, world: World, *, port: int, before: Mapping[str, int] | None = None) -> None:
        """Open the ports: `port` (0 = any), and where they are free those of an earlier start (`before`)."""
        self._world = world
        self._down: set[str] = set()
        self._lock = threading.Lock()
        self._listeners: dict[str, Listener] = {}
        self.ports: dict[str, int] = {}
        wanted = before or {}
        self._open(EVERYTHING, port or wanted.get(EVERYTHING, 0), strict=bool(port))
        for system in SYSTEMS:
            self._open(system, wanted.get(system, 0))

    def _open(self, name: str, port: int, *, strict: bool = False) -> None:
        handler = tool_handler(self._world, self.is_down, "" if name == EVERYTHING else name)
        try:
            listener = Listener(port, handler)
        except OSError:
            if strict or not port:
                raise
            listener = Listener(0, handler)
        self._listeners[name] = listener
        self.ports[name] = int(listener.server_address[1])
        listener.start()

    def is_down(self, system: str) -> bool:
        """Whether a system was taken down."""
        return system in self._down

    @property
    def down(self) -> list[str]:
        """The systems that are down."""
        return sorted(self._down)

    def set_down(self, system: str, down: bool) -> None:
        """Take a system down or bring it back. Its own port refuses connections; the common one cuts them."""
        with self._lock:
            if down and system not in self._down:
                self._down.add(system)
                self._listeners.pop(system).stop()
            elif not down and system in self._down:
                self._open(system, self.ports[system], strict=True)
                self._down.discard(system)
