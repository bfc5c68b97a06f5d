"""Accept items: leave refused items of a call over many as they are, one by one, with a reason.

Sends nothing and takes nothing back; what was accepted never goes out with a later retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class AcceptItemsArguments(StepReasonArguments):
    """`items` are named one by one: nothing is accepted that nobody has looked at."""

    items: tuple[str, ...] = argument(
        Kind.ITEMS, _("Items"), help=_("Only items that were refused can be accepted as they are.")
    )


class AcceptItems(Command[AcceptItemsArguments]):
    """Once no item is open any more the run goes on, and can only close as accepted."""

    verb: ClassVar[str] = "accept_items"
    label: ClassVar[Any] = _("Accept items of %(tool)s as they are")
    label_alone: ClassVar[Any] = _("Accept items as they are")
    arguments: ClassVar[type[Arguments]] = AcceptItemsArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return bool(api.targets(facts, cls.verb))

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: AcceptItemsArguments, looked: Looked | None) -> None:
        desk.accept_items(arguments.step, items=arguments.items)
