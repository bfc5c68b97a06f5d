"""`manage.py gates`: every tool's gate, who waits at it and since when. Changes nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from sagas.facts import GateFacts
from sagas.gates import gates


class Command(BaseCommand):
    """Print one line a gate."""

    help = "The gates of tools: closed, paused, how fast they let through, who waits."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print every gate by name."""
        found = gates()
        for gate in found:
            self.stdout.write(line(gate))
        if not found:
            self.stdout.write("No tool has a gate: nobody had to wait yet.")


def line(gate: GateFacts) -> str:
    """One gate in words."""
    if gate.paused_at is not None:
        state = f"paused since {gate.paused_at:%H:%M:%S}: {gate.paused_why}"
    elif gate.closed_until is not None:
        state = f"closed until {gate.closed_until:%H:%M:%S}"
    else:
        state = "open"
    pace = f"{gate.per_second:.1f} a second" if gate.per_second is not None else "as fast as they come"
    room = f", {gate.at_once} at once" if gate.at_once is not None else ""
    since = f", the first since {gate.waiting_since:%H:%M:%S}" if gate.waiting_since is not None else ""
    return f"{gate.tool}: {state}; {pace}{room}; {gate.waiting} waiting{since}"
