"""The people of the demo and the drills: invented, with published passwords, and never for production."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from sagas.facts import Actor, ActorKind
from workbench.commands import people
from workbench.models import User
from workbench.roles import Role

SYSTEM = Actor(kind=ActorKind.SYSTEM, id="demo", name="Demo", role="system")


class NotForProduction(RuntimeError):
    """The demo's people have published passwords; AMENDS_ENV=production refuses them."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True, kw_only=True)
class Member:
    """One invented person with the password that the demo prints."""

    username: str
    display_name: str
    password: str
    roles: frozenset[Role]
    language: str = "en"
    time_zone: str = "Europe/Berlin"

    @property
    def title(self) -> str:
        """The roles in words, for the list of logins."""
        return ", ".join(sorted(self.roles))


MAYA = Member(
    username="maya", display_name="Maya Okafor", password="demo-maya", roles=frozenset({Role.OPERATOR})
)
JONAS = Member(
    username="jonas", display_name="Jonas Brandt", password="demo-jonas", roles=frozenset({Role.OPERATOR})
)
LIN = Member(
    username="lin",
    display_name="Lin Qing",
    password="demo-lin",
    roles=frozenset({Role.LEAD}),
    language="zh-hans",
    time_zone="Asia/Shanghai",
)
PRIYA = Member(
    username="priya", display_name="Priya Nair", password="demo-priya", roles=frozenset({Role.APPROVER})
)
OSKAR = Member(
    username="oskar", display_name="Oskar Lind", password="demo-oskar", roles=frozenset({Role.AUDITOR})
)
ADA = Member(username="ada", display_name="Ada Moreau", password="demo-ada", roles=frozenset({Role.ADMIN}))
CAST = (MAYA, JONAS, LIN, PRIYA, OSKAR, ADA)


def load() -> tuple[User, ...]:
    """Store the cast with its roles; who is there already is left as they are. Raises NotForProduction."""
    if settings.AMENDS_ENV == "production":
        raise NotForProduction
    return tuple(_stored(member) for member in CAST)


def _stored(member: Member) -> User:
    person = User.objects.filter(username=member.username).first() or people.add_person(
        actor=SYSTEM,
        username=member.username,
        display_name=member.display_name,
        password=member.password,
        language=member.language,
        time_zone=member.time_zone,
        check_password=False,
    )
    people.give_roles(actor=SYSTEM, person=person, roles=member.roles, reason="The cast of the demo")
    return person
