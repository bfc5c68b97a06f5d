"""What the gate of a tool holds back, in words; "" for one that lets everything through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import GateFacts
from workbench.web.presenters import shares
from workbench.web.presenters.clock import Clock


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """A tool whose gate holds something back."""

    icon: str
    tool: str
    url: str
    said: str


def gate_words(gate: GateFacts, clock: Clock) -> str:
    """Everything that the gate bounds now, and who waits."""
    return _(", ").join(_parts(gate, clock))


def holding(gates: Iterable[GateFacts], clock: Clock) -> tuple[GateRow, ...]:
    """The gates that are paused or closed, or where somebody waits."""
    return tuple(
        GateRow(
            icon="bad" if gate.paused_at else "held",
            tool=gate.tool,
            url=reverse("tool", args=[gate.tool]),
            said=gate_words(gate, clock),
        )
        for gate in gates
        if gate.paused_at or gate.closed_until or gate.waiting
    )


def _parts(gate: GateFacts, clock: Clock) -> Iterator[str]:
    if gate.paused_at is not None:
        yield _("paused since {at}: {why}").format(at=clock.time(gate.paused_at), why=gate.paused_why)
    if gate.closed_until is not None:
        yield _("closed until {at}").format(at=clock.time(gate.closed_until))
    if gate.per_second is not None:
        pace = ngettext(
            "{n} call a second at most", "{n} calls a second at most", 1 if gate.per_second == 1 else 2
        )
        yield pace.format(n=f"{gate.per_second:g}")
    if gate.at_once is not None:
        yield ngettext("{n} call at once at most", "{n} calls at once at most", gate.at_once).format(
            n=gate.at_once
        )
    if gate.waiting:
        yield ngettext("{n} call waits", "{n} calls wait", gate.waiting).format(n=shares.number(gate.waiting))
