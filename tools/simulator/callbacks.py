"""Ends the jobs that are due and calls back: signed, repeated until it is taken, and amiss when that is planned.

Nothing is sent while the store is held. What is still to be sent survives a kill.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from tools.simulator import clock, jobs
from tools.simulator.store import Store, Tables, Thing
from tools.simulator.wire import Json

HEADER = "Webhook-Signature"
PATIENCE_S = 5.0
HELD = "hold:"
"""How the address of a caller begins that fetches its callbacks itself (`GET /callbacks/held`)."""
AGAIN_AFTER_S = (0.5, 1.0, 2.0, 4.0)


def signature(secret: str, at: int, raw: bytes) -> str:
    """The header that proves the sender: HMAC-SHA256 over the time (whole seconds), a dot and the body."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + raw, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Callbacks:
    """What ends jobs and tells their callers."""

    def __init__(self, store: Store, secret: str) -> None:
        self.secret = secret
        self.held: dict[int, dict[str, Json]] = {}
        self._store = store
        self._wake = threading.Event()
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._work, name="callbacks", daemon=True).start()

    def wake(self) -> None:
        """Look at once whether something is due."""
        self._wake.set()

    def run_due(self) -> None:
        """End what is due and send what is due; returns when nothing is."""
        with self._one_at_a_time:
            while self._step():
                pass

    def _work(self) -> None:
        while True:
            self.run_due()
            with self._store.change() as tables:
                due_at = tables.next_callback()
            wait_s = 1.0 if due_at is None else max(0.0, min(1.0, due_at - clock.now()))
            self._wake.wait(timeout=wait_s)
            self._wake.clear()

    def _step(self) -> bool:
        with self._store.change() as tables:
            taken = tables.due_callback()
            if taken is None:
                return False
            id_, spec = taken
            if "body" not in spec:
                _end(tables, spec)
                tables.drop_callback(id_)
                return True
        if str(spec["url"]).startswith(HELD):
            with self._store.change() as tables:
                tables.drop_callback(id_)
            self.held[id_] = spec
            return True
        status = self._send(spec)
        with self._store.change() as tables:
            tables.drop_callback(id_)
            _record(tables, spec, status)
            tries = int(spec["tries"])
            if not (status is not None and 200 <= status <= 299) and tries < len(AGAIN_AFTER_S):
                tables.add_callback(clock.now() + AGAIN_AFTER_S[tries], {**spec, "tries": tries + 1})
        return True

    def fetch(self) -> list[dict[str, Json]]:
        """What waits for callers that fetch it themselves: number, path, header and body of each."""
        waiting = []
        for id_, spec in list(self.held.items()):
            raw, headers = self._written(spec)
            path = str(spec["url"]).removeprefix(HELD)
            waiting.append({"id": id_, "path": path, "signature": headers[HEADER], "body": raw.decode()})
        return waiting

    def fetched(self, id_: int, status: int) -> None:
        """One of them was delivered."""
        spec = self.held.pop(id_)
        with self._store.change() as tables:
            _record(tables, spec, status)

    def _written(self, spec: dict[str, Json]) -> tuple[bytes, dict[str, str]]:
        """Body and headers of a callback. A signature's time is that of the real clock, as its reader's is."""
        raw = json.dumps(spec["body"], ensure_ascii=False).encode()
        secret = secrets.token_hex(16) if spec["forged"] else self.secret
        return raw, {"Content-Type": "application/json", HEADER: signature(secret, int(time.time()), raw)}

    def _send(self, spec: dict[str, Json]) -> int | None:
        raw, headers = self._written(spec)
        try:
            address = urlsplit(spec["url"])
            target = (address.path or "/") + (f"?{address.query}" if address.query else "")
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_S)
        except (ValueError, http.client.HTTPException):
            return None
        try:
            connection.request("POST", target, raw, headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()


def _end(tables: Tables, spec: dict[str, Json]) -> None:
    thing, effect = jobs.ended(tables, spec["job"], fails=bool(spec.get("fails")))
    if effect is not None:
        tables.record(
            kind="effect",
            tool="provision_line",
            system="jobs",
            operation="provision",
            direction="do",
            key=thing.key,
            business=thing.business,
            detail=effect.detail,
        )
    if thing.state == "withdrawn" or not spec["url"]:
        return
    for wait_s, body, forged in _messages(thing, str(spec.get("callback", ""))):
        again = {"body": body, "url": spec["url"], "forged": forged, "tries": 0, "business": thing.business}
        tables.add_callback(clock.now() + wait_s, again)


def _messages(thing: Thing, mode: str) -> Iterator[tuple[float, dict[str, Json], bool]]:
    """(seconds to wait, body, whether the signature is forged) of each message that goes out."""
    if mode == "never":
        return
    now = clock.moment()
    last = jobs.told_of(thing, at=now.isoformat(timespec="milliseconds"))
    yield 0.0, last, mode == "forged"
    if mode == "duplicate":
        yield 0.05, last, False
    if mode == "stale":
        earlier = datetime.fromtimestamp(now.timestamp() - 60, UTC).isoformat(timespec="milliseconds")
        yield 0.05, {**last, "state": jobs.RUNNING, "version": 1, "at": earlier, "result": {}}, False


def _record(tables: Tables, spec: dict[str, Json], status: int | None) -> None:
    body = spec["body"]
    detail = {"reference": body["reference"], "state": body["state"], "version": body["version"]}
    tables.record(
        kind="called_back",
        tool="provision_line",
        system="jobs",
        operation="provision",
        direction="",
        key=body["key"],
        business=spec["business"],
        status=status,
        detail={**detail, **({"forged": True} if spec["forged"] else {})},
    )
