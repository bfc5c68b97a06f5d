"""Makes one HTTP call and says what was seen. Judges nothing, retries nothing, raises nothing.

No redirect is followed, no proxy, cookie or credential is taken from the environment, no connection is used
twice (a stale one would look like a lost answer), and no compressed body is unpacked.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlencode

import httpcore2
import httpx2

from tools.adapters.deadline import Clock, DeadlineBackend, TooLate, running
from tools.bindings import Unbindable, bind
from tools.contract import Contract, HttpCall, Json, KeySupport
from tools.outcome import Observation, Seen
from tools.payload import Unreadable, as_text, parse, whole_members
from tools.pointers import MISSING
from tools.url_templates import PLACEHOLDER

_HEADERS_KEPT = ("retry-after", "date", "etag", "content-type", "location", "idempotency-replayed")
_HEADER_LONGEST = 500
_SIZE_LONGEST = 15
_HIGHEST_PORT = 65_535
_ALWAYS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "amends",
}


class Unsound(Exception):
    """The call cannot be written down: an argument is missing or does not fit into the place it goes to."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A call as it will go over the wire; `path` starts with a slash and holds the query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def write_down(contract: Contract, *, args: Json, key: str, headers: Mapping[str, str]) -> Written:
    """The call as text. Raises `Unsound`."""
    call = contract.call
    if not isinstance(call, HttpCall):
        raise Unsound("the contract declares no HTTP call")
    scope = {"args": args, "key": key}
    try:
        query = bind(call.query, scope)
        body = bind(call.body, scope)
        own = bind(call.headers, scope)
    except Unbindable as error:
        raise Unsound(str(error)) from None
    lines = dict(_ALWAYS)
    lines |= {name: _scalar(value, f"header {name}") for name, value in own.items() if value is not None}
    if key and contract.idempotency.support is not KeySupport.NONE:
        lines[contract.idempotency.header] = key
    lines |= headers
    content = None if call.body is None else _json(body)
    if content is not None:
        lines["Content-Type"] = "application/json"
    for name, value in lines.items():
        if not value.isascii() or not value.isprintable():
            raise Unsound(f"the header {name} holds characters that a header cannot carry")
    return Written(
        method=call.method.upper(), path=_path(call.path, args) + _query(query), headers=lines, body=content
    )


def body_of(call: HttpCall, *, args: Json, key: str) -> Json:
    """The body as a JSON value, for people. Raises `Unsound`."""
    try:
        return bind(call.body, {"args": args, "key": key})
    except Unbindable as error:
        raise Unsound(str(error)) from None


def _path(template: str, args: Json) -> str:
    def value_of(match: re.Match[str]) -> str:
        found = args.get(match[1], MISSING) if isinstance(args, dict) else MISSING
        text = _scalar(found, f"path segment {match[1]}")
        if text in {"", ".", ".."}:
            raise Unsound(f"the path segment {match[1]} would be {text!r}")
        return _quoted(text)

    return PLACEHOLDER.sub(value_of, template)


def _query(query: Mapping[str, Json]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                pairs.append((name, _scalar(one, f"query parameter {name}")))
    try:
        return "?" + urlencode(pairs, quote_via=quote, safe="") if pairs else ""
    except UnicodeEncodeError:
        raise Unsound("a query parameter holds a lone surrogate") from None


def _quoted(text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise Unsound("a path segment holds a lone surrogate") from None


def _scalar(value: Json, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Unsound(f"the {what} is missing or no single value")


def _json(body: Json) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise Unsound(f"the body cannot be written as JSON: {error}") from None


class HttpAdapter:
    """Makes calls; one for all threads. `close` ends it.

    Without `tls` no authority is loaded (which takes a while), so no TLS connection can come about.
    """

    def __init__(self, *, tls: bool = True) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl.create_default_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            max_connections=None,
            max_keepalive_connections=0,
            retries=0,
            network_backend=DeadlineBackend(),
        )

    def close(self) -> None:
        """Drop the connections that are still open."""
        self._pool.close()

    def call(
        self,
        contract: Contract,
        written: Written,
        *,
        base_url: str,
        total_s: float,
        may_send: Callable[[], bool] = lambda: True,
        asked: Callable[[], None] = lambda: None,
    ) -> Observation:
        """What was seen. Ends within `total_s` seconds whatever the other side does."""
        start = time.monotonic()
        clock = Clock(
            connect_until=start + min(contract.limits.connect_s, total_s),
            until=start + total_s,
            may_send=may_send,
            asked=asked,
        )
        with running(clock):
            seen = self._seen(contract, written, base_url, clock)
        return _timed(seen, start)

    def _seen(self, contract: Contract, written: Written, base_url: str, clock: Clock) -> Observation:
        try:
            request = httpx2.Request(
                written.method,
                base_url.rstrip("/") + written.path,
                headers=dict(written.headers),
                content=written.body,
            )
            sent = _core_request(request)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            return _not_sent(error)
        answer = _Answer(limit=contract.limits.body_bytes)
        try:
            response = self._pool.handle_request(sent)
            try:
                answer.status = response.status
                answer.headers = _kept(response.headers)
                answer.encoded = _encoding(response.headers)
                answer.declared = _declared(response.headers)
                answer.read(response.iter_stream())
            finally:
                response.close()
        except TooLate:
            return Observation(seen=Seen.NOT_SENT, detail="the window for sending had closed")
        except Exception as error:  # noqa: BLE001 - whatever it was: only "did a byte leave?" counts here
            return answer.broken_off(error) if clock.sent else _not_sent(error)
        return answer.observation()


def _core_request(request: httpx2.Request) -> httpcore2.Request:
    if request.url.port is not None and request.url.port > _HIGHEST_PORT:
        # The system would take it modulo 65536 and knock at somebody else's door.
        raise ValueError(f"there is no port {request.url.port}")
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        ),
        headers=request.headers.raw,
        content=request.read(),
    )


@dataclass(kw_only=True)
class _Answer:
    """An answer while it arrives: at most `limit` bytes of body are kept."""

    limit: int
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    encoded: str = ""
    declared: int | None = None
    body: bytearray = field(default_factory=bytearray)
    too_large: bool = False

    def read(self, chunks: Iterator[bytes]) -> None:
        for chunk in chunks:
            self.body += chunk[: self.limit + 1 - len(self.body)]
            if len(self.body) > self.limit:
                self.too_large = True
                return

    def broken_off(self, error: Exception) -> Observation:
        """The request left, the answer is not whole. Bytes that are no HTTP are an answer, a bad one."""
        garbled = isinstance(error, httpcore2.RemoteProtocolError) and not self._is_disconnect(error)
        return self._with(Seen.BAD_BODY if garbled and self.status is None else Seen.NO_ANSWER, _cause(error))

    @staticmethod
    def _is_disconnect(error: Exception) -> bool:
        return "disconnected" in str(error) or "closed" in str(error)

    def observation(self) -> Observation:
        if self.encoded:
            return self._with(Seen.BAD_BODY, f"the body is encoded as {self.encoded}")
        if self.too_large:
            return self._cut_off()
        try:
            parsed = parse(bytes(self.body))
        except Unreadable as error:
            return self._with(Seen.BAD_BODY, f"the body is {error}")
        return Observation(
            seen=Seen.ANSWER,
            status=self.status,
            headers=self.headers,
            body=parsed,
            body_bytes=len(self.body),
            body_sha256=hashlib.sha256(self.body).hexdigest(),
        )

    def _cut_off(self) -> Observation:
        """What was whole before the answer grew too large; the rest was never read."""
        try:
            members = whole_members(bytes(self.body))
        except Unreadable:
            members = None
        seen = self._with(Seen.TOO_LARGE, f"the body is larger than {self.limit} bytes")
        return replace(seen, body=members, body_declared=self.declared)

    def _with(self, seen: Seen, detail: str) -> Observation:
        raw = bytes(self.body)
        return Observation(
            seen=seen,
            status=self.status,
            headers=self.headers,
            body_text=as_text(raw),
            body_bytes=len(raw),
            body_sha256=hashlib.sha256(raw).hexdigest() if raw else "",
            detail=detail,
        )


def _kept(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        if name in _HEADERS_KEPT:
            found.setdefault(name, as_text(raw_value[:_HEADER_LONGEST]))
    return found


def _encoding(headers: list[tuple[bytes, bytes]]) -> str:
    values = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-encoding"]
    return ", ".join(value for value in values if value.strip().lower() not in {"", "identity"})[:80]


def _declared(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The size that the answer announces of itself; None when it does not, or not as a number."""
    for name, value in headers:
        if name.lower() == b"content-length" and value.isdigit() and len(value) <= _SIZE_LONGEST:
            return int(value)
    return None


def _not_sent(error: Exception) -> Observation:
    return Observation(seen=Seen.NOT_SENT, detail=_cause(error))


def _cause(error: Exception) -> str:
    told = str(error).strip()[:200]
    match error:
        case httpcore2.ConnectTimeout():
            return "no connection within the limit"
        case httpcore2.TimeoutException():
            return "no answer within the limit"
        case httpcore2.ConnectError():
            return f"no connection: {told or 'refused'}"
    return told or type(error).__name__


def _timed(seen: Observation, start: float) -> Observation:
    return replace(seen, duration_ms=round((time.monotonic() - start) * 1000))
