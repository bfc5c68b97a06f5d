"""Who people are to the engine: the actor of a person, and persons for lists. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from sagas.facts import Actor, ActorKind
from workbench.models import User
from workbench.policies import HOLDERS, Permission
from workbench.roles import Role, acting_role

# Doors know persons by this name; the table behind it is none of their business.
Person = User

COMMAND_LINE = Actor(kind=ActorKind.SYSTEM, id="command-line", name="Command line", role="system")


def actor_of(person: User) -> Actor:
    """The person as the trail names them. One query for the roles."""
    return Actor(
        kind=ActorKind.HUMAN,
        id=person.username,
        name=person.display_name,
        role=acting_role(person.current_roles()),
    )


def people() -> Iterable[tuple[User, tuple[Role, ...]]]:
    """Everybody with the roles they hold, by name; two queries."""
    held: dict[int, list[Role]] = {}
    everybody = list(User.objects.order_by("username").prefetch_related("assignments"))
    for person in everybody:
        held[person.pk] = [Role(grant.role) for grant in person.assignments.all() if grant.ended_at is None]
    return [(person, tuple(sorted(held[person.pk]))) for person in everybody]


def settlers() -> tuple[tuple[str, str], ...]:
    """User name and name of everybody who can be given a case, by name."""
    able = HOLDERS[Permission.SETTLE]
    return tuple(
        (person.username, person.display_name)
        for person, roles in people()
        if person.is_active and able & set(roles)
    )


def person_named(username: str) -> User | None:
    """The person of this user name, active or not."""
    return User.objects.filter(username=username).first()
