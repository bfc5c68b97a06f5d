"""A loopback server that answers one call in a way no sound server would, byte by byte if need be."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

type Behaviour = Callable[[socket.socket, bytes], None]


class Wire:
    """A listening socket and what arrived on it."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.requests: list[bytes] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/base"
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = b""
            while not _is_whole(request):
                chunk = connection.recv(65_536)
                if not chunk:
                    return
                request += chunk
            self.requests.append(request)
            self._behave(connection, request)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join(60)
        for thread in self._threads:
            thread.join(60)


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(value)
    return True


@contextlib.contextmanager
def wire(behave: Behaviour) -> Iterator[Wire]:
    """A server that behaves so, for one block."""
    served = Wire(behave)
    try:
        yield served
    finally:
        served.close()


def reply(body: bytes, *, status: str = "200 OK", headers: str = "") -> Behaviour:
    """Answers with this body."""

    def behave(connection: socket.socket, _: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        connection.sendall(head.encode("latin-1") + body)

    return behave


def raw(data: bytes) -> Behaviour:
    """Sends exactly these bytes and closes."""
    return lambda connection, _: connection.sendall(data)
