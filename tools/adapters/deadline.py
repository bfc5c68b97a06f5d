"""Sockets under one deadline: connecting, the handshake, every write and every read count against it.

A limit per operation would let a server that sends one byte a second hold a call for ever (faults.md, FT-6).
Also notes the moment at which the first byte of a request is about to leave.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpcore2

# The inner stream gives every partial send the whole limit; small slices keep the sum near the deadline.
_SLICE = 16_384


class TooLate(Exception):
    """The caller's window for letting the first byte leave has closed; nothing was sent."""


@dataclass(kw_only=True)
class Clock:
    """What one call may still take, in seconds of the monotonic clock, and whether a byte has left.

    `may_send` is asked once, as the last act before the first byte; `asked` is told once that the request has left.
    """

    connect_until: float
    until: float
    may_send: Callable[[], bool]
    asked: Callable[[], None] = lambda: None
    sent: bool = False
    waiting: bool = False

    def left(self, until: float) -> float:
        """Seconds until that moment; raises TimeoutError when there are none."""
        seconds = until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def first_byte(self) -> None:
        """Let the request start, or raise `TooLate`."""
        if self.sent:
            return
        if not self.may_send():
            raise TooLate
        self.sent = True

    def first_read(self) -> None:
        """The request has left, its answer is waited for."""
        if self.sent and not self.waiting:
            self.waiting = True
            self.asked()


class _Current(threading.local):
    clock: Clock | None = None


_current = _Current()


def current() -> Clock:
    """The clock of the call that this thread is making."""
    if _current.clock is None:
        raise RuntimeError("no call is being made on this thread")
    return _current.clock


class running:
    """Context in which this thread's sockets obey `clock`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __enter__(self) -> Clock:
        _current.clock = self.clock
        return self.clock

    def __exit__(self, *_: object) -> None:
        _current.clock = None


class DeadlineStream(httpcore2.NetworkStream):
    """A stream whose every operation ends when the call's clock has run out."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        clock = current()
        clock.first_read()
        try:
            seconds = clock.left(clock.until)
        except TimeoutError:
            raise httpcore2.ReadTimeout from None
        return self._inner.read(max_bytes, timeout=seconds)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        clock = current()
        for start in range(0, len(buffer), _SLICE):
            try:
                seconds = clock.left(clock.until)
            except TimeoutError:
                raise httpcore2.WriteTimeout from None
            clock.first_byte()
            self._inner.write(buffer[start : start + _SLICE], timeout=seconds)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        clock = current()
        try:
            seconds = clock.left(clock.connect_until)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        return DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, timeout=seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore2.NetworkBackend):
    """Opens TCP connections within the call's connect limit, name resolution included."""

    def __init__(self) -> None:
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        clock = current()
        problem: Exception = httpcore2.ConnectError(f"{host} has no address")
        try:
            for address in _addresses(host, port, clock):
                try:
                    return DeadlineStream(
                        self._inner.connect_tcp(
                            address, port, clock.left(clock.connect_until), local_address, socket_options
                        )
                    )
                except httpcore2.ConnectError as error:
                    problem = error
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the connect limit has passed") from None
        raise problem


@dataclass(kw_only=True)
class _Resolving:
    addresses: list[str] = field(default_factory=list)
    problem: Exception | None = None


def _addresses(host: str, port: int, clock: Clock) -> list[str]:
    """The host's addresses. The system's resolver knows no limit, so it runs on a thread we may leave."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    found = _Resolving()

    def resolve() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
        except (OSError, UnicodeError) as error:
            found.problem = error

    thread = threading.Thread(target=resolve, name=f"resolve {host}", daemon=True)
    thread.start()
    thread.join(clock.left(clock.connect_until))
    if thread.is_alive():
        raise TimeoutError
    if found.problem is not None:
        raise httpcore2.ConnectError(f"{host} cannot be resolved") from found.problem
    return found.addresses
