"""Issues and revokes API tokens: the only writer of tokens. The secret leaves this module once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.models import ApiToken, User
from workbench.models.token import LONGEST_LIFE
from workbench.queries.tokens import digest, new_secret
from workbench.roles import SCOPES, Scope, TokenKind

USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Issued:
    """A new token with its secret, which is stored nowhere."""

    ref: str
    secret: str
    expires_at: datetime


def issue(
    *,
    actor: Actor,
    owner: User,
    kind: TokenKind,
    name: str,
    scopes: Iterable[Scope],
    life: timedelta = LONGEST_LIFE,
) -> Issued:
    """Make a token that `owner` answers for. Raises ValidationError (name, scopes, life over 90 days)."""
    wanted = frozenset(scopes)
    validate_slug(name)
    if not wanted or not wanted <= SCOPES[kind]:
        allowed = ", ".join(sorted(SCOPES[kind]))
        raise ValidationError(
            _("A token of this kind has some of these scopes: %(scopes)s."), params={"scopes": allowed}
        )
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise ValidationError(_("A token lives for at most 90 days."))
    secret = new_secret(kind)
    with api.transaction():
        token = ApiToken.objects.create(
            ref=f"tk_{secrets.token_hex(6)}",
            kind=kind,
            name=name,
            owner=owner,
            digest=digest(secret),
            scopes=sorted(wanted),
            created_by=actor.id,
            expires_at=Now() + life,
        )
        token.refresh_from_db(fields=["expires_at"])
        after = {
            "ref": token.ref,
            "kind": str(kind),
            "name": name,
            "owner": owner.username,
            "scopes": sorted(wanted),
        }
        api.log(name="token.issued", actor=actor, after=after)
    return Issued(ref=token.ref, secret=secret, expires_at=token.expires_at)


def revoke(*, actor: Actor, ref: str, reason: str = "") -> bool:
    """Take a token out of use at once; False when there is none in use under `ref`."""
    with api.transaction():
        if not ApiToken.objects.filter(ref=ref, revoked_at=None).update(
            revoked_at=Now(), revoked_by=actor.id
        ):
            return False
        api.log(name="token.revoked", actor=actor, reason=reason, after={"ref": ref})
    return True


def note_use(ref: str) -> None:
    """Remember roughly when a token was last used: at most one write a minute."""
    stale = Now() - USE_NOTED_EVERY
    fresh = ApiToken.objects.filter(ref=ref).exclude(last_used_at__gt=stale)
    fresh.update(last_used_at=Now())
