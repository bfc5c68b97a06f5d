"""The freeze page: what is held back now, and the two forms with the reason why they are not for everybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from sagas.facts import FreezeFacts
from workbench.web.forms import Field
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.shell import freeze_what
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class InForce:
    """One freeze in force."""

    id: int
    what: str
    since: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page. `why_not_*` is the server's reason, "" where it may be done; `applies_to` what the form would freeze."""

    applies_to: str
    heading: str
    in_force: tuple[InForce, ...]
    freeze_fields: tuple[Field, ...]
    lift_fields: tuple[Field, ...]
    why_not_freeze: str
    why_not_lift: str
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
    *,
    fields: Mapping[str, tuple[Field, ...]],
    why_not: Mapping[str, str],
    command_id: str,
    clock: Clock,
    applies_to: str = "all",
) -> Page:
    """What is frozen and both forms."""
    return Page(
        applies_to=applies_to,
        heading=_("Freeze the whole system")
        if applies_to == "all"
        else _("Freeze {where}").format(where=applies_to),
        in_force=tuple(
            InForce(
                id=freeze.id,
                what=freeze_what(freeze),
                since=_("since {at} by {who}").format(at=clock.time(freeze.at), who=freeze.by),
                reason=freeze.reason,
            )
            for freeze in freezes
        ),
        freeze_fields=tuple(field for field in fields["freeze"] if field.name != "applies_to"),
        lift_fields=tuple(field for field in fields["unfreeze"] if field.name != "freeze"),
        why_not_freeze=why_not["freeze"],
        why_not_lift=why_not["unfreeze"],
        command_id=command_id,
    )
