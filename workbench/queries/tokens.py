"""Finds the token behind a secret. Reads; marking a use is `workbench.commands.tokens`."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from dataclasses import dataclass

from django.db.models.functions import Now

from sagas.facts import Actor, ActorKind
from workbench.models import ApiToken
from workbench.roles import Scope

SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_SIGNS, CHECK_SIGNS = 43, 6  # 62^43 > 2^256


@dataclass(frozen=True, kw_only=True)
class Bearer:
    """Who calls with a token: the actor, what it may ask for, and who answers for it."""

    token_ref: str
    actor: Actor
    scopes: frozenset[str]
    owner: str

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes


def new_secret(kind: str) -> str:
    """A fresh secret: prefix, 256 random bits, checksum. It is shown once and never stored."""
    body = f"wb_{kind}_" + "".join(secrets.choice(SIGNS) for _ in range(RANDOM_SIGNS))
    return body + _checksum(body)


def digest(secret: str) -> str:
    """What is stored instead of the secret. 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def well_formed(secret: str) -> bool:
    """Whether prefix, length and checksum fit: a mistyped or cut token is told apart without the database."""
    body, check = secret[:-CHECK_SIGNS], secret[-CHECK_SIGNS:]
    prefix = next((p for p in ("wb_agent_", "wb_integration_") if body.startswith(p)), None)
    if prefix is None or len(body) != len(prefix) + RANDOM_SIGNS or not body.isascii():
        return False
    return secrets.compare_digest(check.encode("ascii", "replace"), _checksum(body).encode())


def bearer(secret: str) -> Bearer | None:
    """The caller behind a secret; None when malformed, unknown, expired, revoked or its owner is gone."""
    if not well_formed(secret):
        return None
    token = (
        ApiToken.objects.select_related("owner")
        .filter(digest=digest(secret), revoked_at=None, expires_at__gt=Now(), owner__is_active=True)
        .first()
    )
    if token is None:
        return None
    return Bearer(
        token_ref=token.ref,
        actor=Actor(
            kind=ActorKind.AGENT,
            id=f"{token.kind}:{token.owner.username}/{token.name}",
            name=token.name,
            role=token.kind,
        ),
        scopes=frozenset(token.scopes),
        owner=token.owner.username,
    )


def _checksum(body: str) -> str:
    number, signs = zlib.crc32(body.encode()), ""
    while len(signs) < CHECK_SIGNS:
        number, place = divmod(number, len(SIGNS))
        signs = SIGNS[place] + signs
    return signs
