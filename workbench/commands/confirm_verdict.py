"""Confirm a verdict: stand, as a second person, to what another one stated. It counts from then on."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench.commands._arguments import Arguments, ReasonArguments
from workbench.commands._command import Command, Target
from workbench.commands._evidence import why_disproved, why_not_acceptable
from workbench.errors import Refusal
from workbench.roles import Role


class ConfirmVerdict(Command[ReasonArguments]):
    """What the first person's verb reads is read again; nobody confirms what they stated or worked on."""

    verb: ClassVar[str] = "confirm_verdict"
    label: ClassVar[Any] = _("Confirm what was stated")
    arguments: ClassVar[type[Arguments]] = ReasonArguments
    needs_preview: ClassVar[bool] = True
    looks: ClassVar[bool] = True
    looks_for_preview: ClassVar[bool] = True
    holds_right: ClassVar[bool] = True

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        return facts.proposal is not None

    @classmethod
    def target(cls, facts: RunFacts, arguments: Arguments | None) -> Target:
        waits = facts.proposal
        if waits is None:
            return Target(verb=cls.verb)
        return Target(verb=waits.verb, step=waits.step, reference=waits.reference)

    @classmethod
    def refusal(
        cls, *, facts: RunFacts, roles: frozenset[Role], arguments: ReasonArguments, looked: Looked | None
    ) -> Refusal | None:
        waits = facts.proposal
        if waits is None:
            return None
        if waits.verb == "mark_acceptable":
            return why_not_acceptable(looked, waits.end_state)
        return why_disproved(looked, waits.reference) if waits.verb == "resolve_happened" else None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: ReasonArguments, looked: Looked | None) -> None:
        desk.confirm_verdict(looked=looked)
