"""The simulated world's admin port, as the demo and its check use it: plan misbehaviour, read the ledger.

The judge is the ledger in the simulator's own process, never our tables.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen


class Outside:
    """The world behind one admin address."""

    def __init__(self, admin_url: str) -> None:
        self._url = admin_url

    def plan(self, *rules: dict[str, Any]) -> None:
        """Have tools misbehave, or behave again with mode "ok"; later rules go first."""
        self._ask("/plan", {"rules": list(rules)})

    def heal(self, *tools: str, match: str) -> None:
        """Let these tools behave again for whatever carries `match`."""
        self.plan(*({"tool": tool, "match": match, "mode": "ok"} for tool in tools))

    def third_party(self, **change: Any) -> None:
        """Somebody else changes something out there: `what` and its arguments."""
        self._ask("/third-party", change)

    def effects(self, *, business: str, tool: str = "") -> list[str]:
        """The tools that took effect for one business reference, in order."""
        query = {"business": business, "kind": "effect", **({"tool": tool} if tool else {})}
        answer = self._ask(f"/ledger?{urlencode(query)}")
        return [record["tool"] for record in answer["records"]]

    def times(self, key: str) -> int:
        """How often a call with this very key took effect."""
        answer = self._ask(f"/ledger?{urlencode({'key': key, 'kind': 'effect'})}")
        return sum(record["key"] == key for record in answer["records"])

    def net(self, *, business: str) -> dict[str, int]:
        """How often each tool's effect stands for one business reference: done minus compensated."""
        answer = self._ask(f"/effects?{urlencode({'business': business})}")
        return {tool: counted["net"] for tool, counted in answer["effects"].items()}

    def arrivals(self, *, business: str, tool: str) -> int:
        """How many calls of a tool arrived for one business reference, whatever became of them."""
        query = {"business": business, "kind": "arrived", "tool": tool}
        return len(self._ask(f"/ledger?{urlencode(query)}")["records"])

    def ledger(self, **filters: str) -> list[dict[str, Any]]:
        """Every arrival, effect and reply, the oldest first; filters are tool, kind, key, business, direction."""
        found: list[dict[str, Any]] = []
        last = 0
        while page := self._ask(f"/ledger?{urlencode({**filters, 'since': last})}")["records"]:
            found += page
            last = page[-1]["seq"]
        return found

    def complaints(self) -> tuple[str, ...]:
        """What is wrong with the world's books; nothing when they balance."""
        return tuple(self._ask("/books")["complaints"])

    def reset(self) -> None:
        """Forget everything that has happened out there, plans included."""
        self._ask("/reset", {})

    def behave(self) -> None:
        """Forget every plan: from now on all tools do what they are asked."""
        request = Request(f"{self._url}/plan", method="DELETE")  # noqa: S310  our own loopback
        with urlopen(request, timeout=60):  # noqa: S310
            pass

    def gates(self) -> dict[str, list[int]]:
        """The gates at which calls wait, with the numbers of their arrivals."""
        waiting: dict[str, list[int]] = self._ask("/gates")["waiting"]
        return waiting

    def open_gate(self, name: str) -> None:
        """Let whoever waits there pass."""
        self._ask("/gates", {"open": name})

    def teach(self, *tools: dict[str, Any]) -> None:
        """Make tools known to the generic system."""
        self._ask("/generic/tools", {"tools": list(tools)})

    def settle(self, about: str, state: str) -> None:
        """Have work of the generic system end, or a thing change by somebody else's hand."""
        self._ask("/generic/settle", {"about": about, "state": state})

    def take_down(self, system: str = "*") -> None:
        """Refuse every connection to a system."""
        self._ask("/down", {"system": system})

    def bring_up(self, system: str = "*") -> None:
        """Take connections again."""
        self._ask("/up", {"system": system})

    def _ask(self, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self._url + path, content, headers)  # noqa: S310  our own loopback
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read() or "null")
