"""Assign: hand a case over to another named person, with the reason. They hold it from then on, for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked, RunFacts
from workbench import policies
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import Command
from workbench.errors import Answer, Refusal, Sentence
from workbench.policies import HOLDERS, Permission
from workbench.queries.people import Person, person_named
from workbench.roles import Role

MINUTES = 60
"""Longer than a claim of one's own: whoever gets a case has not looked at it yet."""


@dataclass(frozen=True, kw_only=True)
class AssignArguments(ReasonArguments):
    """`person` is a user name."""

    person: str = argument(Kind.CHOICE, _("Person"))


class Assign(Command[AssignArguments]):
    """Whoever holds the case hands it over; a lead may do so with any."""

    verb: ClassVar[str] = "assign"
    label: ClassVar[Any] = _("Hand over")
    key: ClassVar[str] = "h"
    arguments: ClassVar[type[Arguments]] = AssignArguments
    needs_preview: ClassVar[bool] = True

    @classmethod
    def refusal(
        cls, *, facts: RunFacts, roles: frozenset[Role], arguments: AssignArguments, looked: Looked | None
    ) -> Refusal | None:
        if _able(arguments.person) is None:
            return _wrong(_("Nobody of this name can settle cases."))
        held = policies.holder(facts)
        if held is not None and held.claimed_by == arguments.person:
            return _wrong(_("They hold this case already."))
        return None

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: AssignArguments, looked: Looked | None) -> None:
        person = _able(arguments.person)
        if person is not None:
            desk.assign(to=person.username, name=person.display_name, minutes=MINUTES)


def _able(name: str) -> Person | None:
    person = person_named(name)
    if person is None or not person.is_active or not person.current_roles() & HOLDERS[Permission.SETTLE]:
        return None
    return person


def _wrong(text: object) -> Refusal:
    sentence = Sentence(text)
    return Refusal(
        answer=Answer.INVALID, code="no_such_person", sentence=sentence, fields={"person": sentence}
    )
