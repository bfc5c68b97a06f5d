"""The people of a drill: accounts of their own with their roles, and who stands in for those without one."""

from __future__ import annotations

import uuid

from sagas.facts import Actor, ActorKind
from workbench.commands import people
from workbench.labs.drills.cue import Score
from workbench.models import User
from workbench.roles import Role, acting_role

NOBODYS = frozenset({"agent", "api", "callback"})
CASTING = Actor(kind=ActorKind.SYSTEM, id="drill", name="Drill", role="system")


def enlist(score: Score) -> None:
    """Store the people of a drill with their roles."""
    for name, roles in score.drill.actors.items():
        if set(roles) & NOBODYS:
            kind = ActorKind.SYSTEM if "callback" in roles else ActorKind.AGENT
            score.people[name] = Actor(kind=kind, id=f"agent:{name}", name=name, role="agent")
            continue
        username = f"{name}-{score.names.prefix}".lower()
        person = people.add_person(
            actor=CASTING,
            username=username,
            display_name=f"{name} of the drill",
            password=uuid.uuid4().hex,
            check_password=False,
        )
        known = frozenset(Role(role) for role in roles)
        people.give_roles(actor=CASTING, person=person, roles=known, reason="the cast of a drill")
        score.people[name] = Actor(
            kind=ActorKind.HUMAN, id=username, name=person.display_name, role=acting_role(known)
        )


def person_of(score: Score, name: str) -> User | None:
    """The account of an actor; None for agents and providers."""
    actor = score.people[name]
    return User.objects.filter(username=actor.id).first() if actor.kind is ActorKind.HUMAN else None


def publisher(score: Score, name: str) -> Actor:
    """Who publishes: the actor of the drill, or the drill itself."""
    return score.people.get(name, CASTING)
