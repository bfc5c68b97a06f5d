"""Who calls: a token or a person's session, as one value. Decides nothing; asks `workbench.policies`."""

from __future__ import annotations

from dataclasses import dataclass

from rest_framework import exceptions
from rest_framework.request import Request

from sagas import api
from sagas.errors import NotFound
from sagas.facts import Actor, RunFacts
from workbench import policies
from workbench.api.tokens import TokenUser
from workbench.errors import Refusal, Refused
from workbench.policies import Permission
from workbench.queries.people import Person, actor_of
from workbench.roles import Role, Scope


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The actor, and the account behind it if it is a person."""

    actor: Actor
    person: Person | None
    roles: frozenset[Role]
    scopes: frozenset[str]

    def require(self, *, scope: Scope, permission: Permission) -> None:
        """Raises Refused, with an entry, unless the token has the scope or the person the permission."""
        if self.person is None:
            refusal = policies.why_not_scope(scopes=self.scopes, scope=scope)
        else:
            refusal = policies.why_not_permitted(actor=self.actor, roles=self.roles, permission=permission)
        if refusal is not None:
            refuse(self.actor, refusal, what=str(scope))

    def require_permission(self, permission: Permission) -> None:
        """Raises Refused, with an entry, unless a person with the permission calls."""
        refusal = policies.why_not_permitted(actor=self.actor, roles=self.roles, permission=permission)
        if refusal is not None:
            refuse(self.actor, refusal, what=str(permission))

    def run(self, ref: str) -> RunFacts:
        """The run, if it exists for this caller. Raises NotFound either way it does not."""
        named(ref)
        own = self.own_runs_only
        # The search finds business references too, which callers choose: only the run's own name counts here.
        if own and ref not in {row.ref for row in api.runs(search=ref, started_by=own, limit=200).rows}:
            raise NotFound("run", ref)
        return api.run_facts(ref)

    @property
    def own_runs_only(self) -> str:
        """The starter that lists are narrowed to; "" for those who may see all."""
        return "" if policies.sees_all_runs(actor=self.actor, roles=self.roles) else self.actor.id


def named(ref: str) -> str:
    """A reference that could be one; what the database cannot even look for does not exist. Raises NotFound."""
    if not ref.isascii() or not ref.isprintable():
        raise NotFound("reference", "that is none")
    return ref


def caller_of(request: Request) -> Caller:
    """The caller of an authenticated request."""
    user = request.user
    if isinstance(user, TokenUser):
        return Caller(actor=user.actor, person=None, roles=frozenset(), scopes=user.caller.scopes)
    if isinstance(user, Person):
        return Caller(actor=actor_of(user), person=user, roles=user.current_roles(), scopes=frozenset())
    raise exceptions.NotAuthenticated


def refuse(actor: Actor, refusal: Refusal, *, what: str) -> None:
    """Leave the refusal's entry and raise it."""
    after = {"asked": what, "code": refusal.code, "sentence": refusal.sentence.plain(), "door": "api"}
    with api.transaction():
        api.log(name="request.refused", actor=actor, after=after)
    raise Refused(refusal)
