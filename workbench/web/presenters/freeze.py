"""The freeze page: what is held back now, who asked to lift it, which tools are paused, and what one may do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import FreezeFacts, FreezeReach, GateFacts
from workbench.web.forms import Field
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.shell import freeze_what
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class InForce:
    """One freeze in force. `asked` says who wants it lifted, "" when nobody does; `why_not_lift` why one may not."""

    id: int
    what: str
    since: str
    reason: str
    asked: str
    asked_reason: str
    lift: str
    why_not_lift: str


@dataclass(frozen=True, kw_only=True)
class Paused:
    """One tool that nobody calls until a person opens it."""

    tool: str
    since: str
    why: str
    waiting: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page. `why_not_*` is the server's reason, "" where it may be done; `stops` what freezing would stop."""

    heading: str
    in_force: tuple[InForce, ...]
    paused: tuple[Paused, ...]
    stops: str
    freeze_fields: tuple[Field, ...]
    lift_fields: tuple[Field, ...]
    why_not_freeze: str
    why_not_open: str
    command_id: str


def scopes() -> list[tuple[str, Words]]:
    """What can be held back, narrowest first."""
    return [
        ("forward", _("Forward calls and repeats; compensations go on")),
        ("writes", _("Every call that changes something, compensations too")),
        ("everything", _("Everything, what people record included")),
    ]


def page(
    freezes: Iterable[FreezeFacts],
    gates: Iterable[GateFacts],
    reach: FreezeReach | None,
    *,
    place: str,
    fields: Mapping[str, tuple[Field, ...]],
    why_not: Mapping[str, str],
    why_not_lift: Mapping[int, str],
    command_id: str,
    clock: Clock,
) -> Page:
    """What is frozen, what is paused, and the forms. `why_not_lift` by the number of the freeze."""
    return Page(
        heading=_("Freeze the whole system") if place == "all" else _("Freeze {where}").format(where=place),
        in_force=tuple(_in_force(freeze, why_not_lift.get(freeze.id, ""), clock) for freeze in freezes),
        paused=tuple(_paused(gate, clock) for gate in gates if gate.paused_at is not None),
        stops=stops(reach),
        freeze_fields=fields["freeze"],
        lift_fields=tuple(field for field in fields["unfreeze"] if field.name != "freeze"),
        why_not_freeze=why_not["freeze"],
        why_not_open=why_not["open_tool"],
        command_id=command_id,
    )


def stops(reach: FreezeReach | None) -> str:
    """How much a freeze stops, and what it cannot stop any more; None: nothing has been found at that place."""
    if reach is None:
        return _("There is no such place: this would stop nothing.")
    runs = ngettext("{count} run stops.", "{count} runs stop.", reach.runs).format(count=reach.runs)
    calls = ngettext(
        "{count} call is in flight and cannot be stopped.",
        "{count} calls are in flight and cannot be stopped.",
        reach.in_flight,
    ).format(count=reach.in_flight)
    return f"{runs} {calls}"


def _in_force(freeze: FreezeFacts, why_not_lift: str, clock: Clock) -> InForce:
    asked = ""
    if freeze.lift_asked_at is not None:
        asked = _("{who} asked at {at} to lift it. It takes a second person.").format(
            who=freeze.lift_asked_by_name, at=clock.time(freeze.lift_asked_at)
        )
    return InForce(
        id=freeze.id,
        what=freeze_what(freeze),
        since=_("since {at} by {who}").format(at=clock.time(freeze.at), who=freeze.by),
        reason=freeze.reason,
        asked=asked,
        asked_reason=freeze.lift_reason,
        lift=_("Lift the freeze as the second person") if asked else _("Ask to lift the freeze"),
        why_not_lift=why_not_lift,
    )


def _paused(gate: GateFacts, clock: Clock) -> Paused:
    at = clock.time(gate.paused_at) if gate.paused_at is not None else ""
    waiting = ngettext("{count} call waits for it.", "{count} calls wait for it.", gate.waiting)
    return Paused(
        tool=gate.tool,
        since=_("paused since {at}").format(at=at),
        why=gate.paused_why,
        waiting=waiting.format(count=gate.waiting),
    )
