"""The world as the matrix commands it: one connection that stays open, because it is asked a hundred times a second."""

from __future__ import annotations

import http.client
import json
import os
from typing import Any
from urllib.parse import urlsplit

from workbench.labs.chaos.cells import Rule


class Yonder:
    """The simulated world's admin port."""

    def __init__(self, admin_url: str) -> None:
        address = urlsplit(admin_url)
        self._host, self._port = address.hostname or "", address.port
        self._connection: http.client.HTTPConnection | None = None
        self._pid = 0

    def begin(self, rules: list[Rule]) -> int:
        """Have these rules and no others from now on; returns the number of the last record before them."""
        self._ask("POST", "/plan", {"rules": rules, "replace": True})
        return int(self._ask("GET", "/ledger?last=1")["last"])

    def since(self, number: int) -> list[dict[str, Any]]:
        """Every record after this one."""
        records: list[dict[str, Any]] = self._ask("GET", f"/ledger?since={number}")["records"]
        return records

    def put_forward(self, seconds: float) -> list[dict[str, Any]]:
        """Make it later out there; returns what the world wants to tell us by then."""
        held: list[dict[str, Any]] = self._ask("POST", "/clock", {"seconds": seconds})["held"]
        return held

    def change(self, kind: str, id_: str, state: str) -> None:
        """Have somebody else change a thing."""
        self._ask("POST", "/third-party", {"kind": kind, "id": id_, "state": state})

    def fetched(self, number: int, status: int) -> None:
        """Say that one of these was delivered."""
        self._ask("POST", "/callbacks/fetched", {"id": number, "status": status})

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        if self._pid != os.getpid():  # a forked child has a connection of its own
            self._connection, self._pid = (
                http.client.HTTPConnection(self._host, self._port, timeout=10),
                os.getpid(),
            )
        assert self._connection is not None  # noqa: S101  made above
        self._connection.request(method, path, None if body is None else json.dumps(body))
        answer = self._connection.getresponse()
        content = json.loads(answer.read() or "null")
        if answer.status != 200:
            raise RuntimeError(f"{path}: {content}")
        return content
