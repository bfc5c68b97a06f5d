"""The log of the driver (H1), and how it asks until it gets a definite answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from workbench.labs.checker.histories import Said

PATIENCE_S = 60.0
PAUSE_S = 0.25

LOST = (OSError, HTTPException, DatabaseError, InterfaceError)


class Log:
    """H1, written by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: list[Said] = []

    def say(self, **what: Any) -> None:
        with self._lock:
            self._said.append(Said(**what))

    def all(self) -> tuple[Said, ...]:
        """What was said so far."""
        with self._lock:
            return tuple(self._said)


def insist(ask: Callable[[], tuple[int, Any]], over: Callable[[], bool]) -> tuple[str, int, Any, int]:
    """Ask until there is a definite answer: outcome, status, document, tries. The key makes repeats harmless."""
    began, tries, status, document = time.monotonic(), 0, 0, None
    while time.monotonic() - began < PATIENCE_S and not (tries and over()):
        tries += 1
        try:
            status, document = ask()
        except LOST:
            forget_connection()
            status = 0
        code = (document or {}).get("code", "") if isinstance(document, dict) else ""
        if status and status < 500 and status != 429 and code != "busy":
            return ("ok" if status < 300 else "refused"), status, document, tries
        time.sleep(PAUSE_S)
    return "info", status, document, tries


def forget_connection() -> None:
    """Let go of this thread's connection, which may be dead; the next query makes another."""
    connection.close()
    close_old_connections()


def said(document: Any) -> str:
    """What an answer says of a refusal: its code and its sentence."""
    if not isinstance(document, dict):
        return str(document)[:200]
    return f"{document.get('code', '')}: {document.get('detail', '')}"[:200]
