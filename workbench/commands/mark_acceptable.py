"""Mark acceptable: close the case in an end state that the definition declares and reads have just proved.

Starts nothing and compensates nothing: steps that have not run never will, effects stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import EndStateCheck, Looked, RunFacts
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import Command
from workbench.errors import Answer, Refusal, Sentence
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
        checks = looked.end_states if looked is not None else ()
        chosen = next((check for check in checks if check.id == arguments.end_state), None)
        if chosen is None:
            sentence = Sentence(_("The definition has no such end state."))
            return Refusal(
                answer=Answer.INVALID,
                code="no_such_end_state",
                sentence=sentence,
                fields={"end_state": sentence},
            )
        return None if chosen.met else _unmet(chosen)

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: AcceptArguments, looked: Looked | None) -> None:
        desk.mark_acceptable(end_state=arguments.end_state, looked=looked)


def _unmet(check: EndStateCheck) -> Refusal:
    unread = [condition.text for condition in check.conditions if condition.met is None]
    if unread:
        text, code = _("This could not be read just now: %(conditions)s"), "end_state_unread"
    else:
        text, code = _("This does not hold: %(conditions)s"), "end_state_unmet"
    open_ones = unread or [condition.text for condition in check.conditions if not condition.met]
    sentence = Sentence(text, {"conditions": "; ".join(open_ones)})
    return Refusal(answer=Answer.CONFLICT, code=code, sentence=sentence)
