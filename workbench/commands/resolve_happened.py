"""It happened: a person found the effect outside and supplies its reference, which a read then checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command
from workbench.commands._evidence import why_disproved
from workbench.errors import Refusal
from workbench.roles import Role


@dataclass(frozen=True, kw_only=True)
class HappenedArguments(StepReasonArguments):
    """`reference` is what the outside system calls the effect: an id that a later compensation can use."""

    reference: str = argument(
        Kind.LINE, _("Reference at the provider"), help=_("The id under which the provider knows it.")
    )


class ResolveHappened(Command[HappenedArguments]):
    """Evidence by a person: refused when a read disproves it; what no read proves may take a second person."""

    verb: ClassVar[str] = "resolve_happened"
    label: ClassVar[Any] = _("%(tool)s did happen")
    label_alone: ClassVar[Any] = _("It did happen")
    key: ClassVar[str] = "y"
    arguments: ClassVar[type[Arguments]] = HappenedArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    looks: ClassVar[bool] = True

    @classmethod
    def refusal(
        cls, *, facts: RunFacts, roles: frozenset[Role], arguments: HappenedArguments, looked: Looked | None
    ) -> Refusal | None:
        return why_disproved(looked, arguments.reference)

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: HappenedArguments, looked: Looked | None) -> None:
        desk.resolve_happened(arguments.step, reference=arguments.reference, looked=looked)
