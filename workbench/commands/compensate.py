"""Compensate: make up for the steps that took effect, in strict reverse order, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench import policies
from workbench.commands._arguments import REASON_LENGTH, Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import Command
from workbench.errors import Answer, Refusal, Sentence
from workbench.roles import Role


@dataclass(frozen=True, kw_only=True)
class CompensateArguments(ReasonArguments):
    """Without `steps`: everything that is outstanding but what is left out, for a reason of its own."""

    steps: tuple[str, ...] = argument(
        Kind.STEPS, _("Steps"), default=(), help=_("All of them when none is named."), in_plan=True
    )
    leave_out: tuple[str, ...] = argument(
        Kind.STEPS,
        _("Leave out"),
        default=(),
        help=_("What is left out stays in effect; the run can end as Accepted, never as Compensated."),
        in_plan=True,
    )
    why_left_out: str = argument(
        Kind.TEXT,
        _("Why it is left out"),
        default="",
        min_length=REASON_LENGTH,
        max_length=2000,
        in_plan=True,
    )


class Compensate(Command[CompensateArguments]):
    """Schedules the compensations; each is checked again right before its call."""

    verb: ClassVar[str] = "compensate"
    label: ClassVar[Any] = _("Compensate")
    reach: ClassVar[str] = "writes"
    key: ClassVar[str] = "m"
    arguments: ClassVar[type[Arguments]] = CompensateArguments
    needs_preview: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"leave_out", "why_left_out"})
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def refusal(
        cls,
        *,
        facts: RunFacts,
        roles: frozenset[Role],
        arguments: CompensateArguments,
        looked: Looked | None,
    ) -> Refusal | None:
        return why_not_left_out(facts, roles, arguments.leave_out, arguments.why_left_out)

    @classmethod
    def refusal_of_shape(
        cls, *, facts: RunFacts, roles: frozenset[Role], given: Mapping[str, Any]
    ) -> Refusal | None:
        return why_not_left_out(facts, roles, given.get("leave_out", ()), given.get("why_left_out", ""))

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: CompensateArguments, looked: Looked | None) -> None:
        desk.compensate(steps=arguments.steps, leave_out=arguments.leave_out, why=arguments.why_left_out)


def why_not_left_out(
    facts: RunFacts, roles: frozenset[Role], steps: tuple[str, ...], why: str
) -> Refusal | None:
    """What speaks against leaving steps out of a compensation: rights, a missing reason, nothing that would remain."""
    if not steps:
        return None
    refusal = policies.why_not_waive(roles)
    if refusal is not None:
        return refusal
    able = {unit.step for unit in api.can_be_left_out(facts)}
    if not why:
        text = _("Write at least %(least)s characters as the reason.")
        return _wrong("why_left_out", Sentence(text, {"least": REASON_LENGTH}))
    if not set(steps) <= able:
        return _wrong("leave_out", Sentence(_("Only a step whose compensation is open can be left out.")))
    if set(steps) == able:
        text = _("Nothing would be left to compensate. Mark the state acceptable instead.")
        return _wrong("leave_out", Sentence(text))
    return None


def _wrong(field: str, sentence: Sentence) -> Refusal:
    return Refusal(answer=Answer.INVALID, code="not_in_plan", sentence=sentence, fields={field: sentence})
