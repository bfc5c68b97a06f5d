"""Gates: calls that are held on their way until somebody lets them pass. They end with the process, like the calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping

LONGEST_S = 600.0


class Gates:
    """Named gates. A gate that was opened stays open."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[str] = set()
        self._waiting: dict[str, list[int]] = {}
        self._cleared = 0

    def pass_through(self, name: str, call: int) -> None:
        """Wait until the gate is open; `call` is the number of the arrival that waits. Gives up after ten minutes."""
        with self._changed:
            self._waiting.setdefault(name, []).append(call)
            before = self._cleared
            self._changed.wait_for(lambda: name in self._open or self._cleared != before, LONGEST_S)
            self._waiting[name].remove(call)

    def open(self, name: str) -> None:
        """Let whoever waits there pass, now and from now on."""
        with self._changed:
            self._open.add(name)
            self._changed.notify_all()

    def clear(self) -> None:
        """Let everybody pass and forget every gate: whoever comes next finds it shut."""
        with self._changed:
            self._open.clear()
            self._cleared += 1
            self._changed.notify_all()

    def waiting(self) -> Mapping[str, list[int]]:
        """The gates at which calls wait, with the numbers of their arrivals."""
        with self._changed:
            return {name: list(calls) for name, calls in self._waiting.items() if calls}
