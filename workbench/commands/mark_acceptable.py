"""Mark acceptable: close the case in an end state that the definition declares and reads have just proved.

Starts nothing and compensates nothing: steps that have not run never will, effects stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import Command
from workbench.commands._evidence import why_not_acceptable
from workbench.errors import Refusal
from workbench.roles import Role


@dataclass(frozen=True, kw_only=True)
class AcceptArguments(ReasonArguments):
    """`end_state` is the id of one of the definition's acceptable end states."""

    end_state: str = argument(Kind.END_STATE, _("Acceptable end state"))


class MarkAcceptable(Command[AcceptArguments]):
    """Every condition of the end state must hold, read after the click."""

    verb: ClassVar[str] = "mark_acceptable"
    label: ClassVar[Any] = _("Accept and close")
    key: ClassVar[str] = "a"
    arguments: ClassVar[type[Arguments]] = AcceptArguments
    needs_preview: ClassVar[bool] = True
    claims: ClassVar[bool] = True
    looks: ClassVar[bool] = True
    looks_for_preview: ClassVar[bool] = True

    @classmethod
    def refusal(
        cls, *, facts: RunFacts, roles: frozenset[Role], arguments: AcceptArguments, looked: Looked | None
    ) -> Refusal | None:
        return why_not_acceptable(looked, arguments.end_state)

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: AcceptArguments, looked: Looked | None) -> None:
        desk.mark_acceptable(end_state=arguments.end_state, looked=looked)
