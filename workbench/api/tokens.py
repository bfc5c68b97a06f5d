"""Authentication by token: `Authorization: Bearer wb_agent_...`. Knows nothing of what the caller may do."""

from __future__ import annotations

from django.utils.functional import cached_property
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.request import Request

from sagas.facts import Actor
from workbench.commands.tokens import note_use
from workbench.queries.tokens import Bearer, bearer
from workbench.roles import Scope


class TokenUser:
    """Stands where DRF expects a user. It is nobody's account: no session, no role, no password."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    pk = None

    def __init__(self, caller: Bearer) -> None:
        self.caller = caller

    @cached_property
    def actor(self) -> Actor:
        return self.caller.actor

    def may(self, scope: Scope) -> bool:
        return self.caller.may(scope)

    def __str__(self) -> str:
        return self.caller.actor.id


class TokenAuthentication(BaseAuthentication):
    """One answer for every bad token: what is wrong with it is nobody's business."""

    def authenticate(self, request: Request) -> tuple[TokenUser, Bearer] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        caller = bearer(words[1].decode("ascii", "replace")) if len(words) == 2 else None
        if caller is None:
            raise exceptions.AuthenticationFailed("This token is not valid.", code="invalid_token")
        note_use(caller.token_ref)
        return TokenUser(caller), caller

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="amends"'
