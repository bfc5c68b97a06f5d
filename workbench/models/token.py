"""API tokens of agents and integrations. Only the digest is kept; the secret is shown once."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now

from workbench.models.user import User
from workbench.roles import TokenKind

LONGEST_LIFE = timedelta(days=90)


class ApiToken(models.Model):
    """A token acts as `kind:owner/name`; several tokens of one name overlap while they are exchanged."""

    ref = models.CharField(max_length=20, unique=True)
    kind = models.CharField(max_length=20, choices=[(str(kind), str(kind)) for kind in TokenKind])
    name = models.CharField(max_length=40)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_by = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_by = models.CharField(max_length=120, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="token_kind_is_known", condition=models.Q(kind__in=[str(kind) for kind in TokenKind])
            ),
            models.CheckConstraint(
                name="token_life_is_bounded",
                condition=models.Q(expires_at__lte=models.F("created_at") + LONGEST_LIFE),
            ),
            models.CheckConstraint(
                name="token_revoked_who_and_when",
                condition=models.Q(revoked_at=None, revoked_by="")
                | (models.Q(revoked_at__isnull=False) & ~models.Q(revoked_by="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind}:{self.owner_id}/{self.name} ({self.ref})"
