"""Who has a case open just now. A courtesy with a short lease: it stands in nobody's way and is no record."""

from __future__ import annotations

from django.db import models

from workbench.models.user import User

LEASE_S = 30
"""Seconds: how long somebody counts as there after the last sign of life; an open page gives one with every poll."""


class Presence(models.Model):
    """Where one person is: an open page that nobody sees gives no sign of life. `seen_at` is the database's clock."""

    person = models.OneToOneField(User, on_delete=models.PROTECT, related_name="presence")
    handoff_ref = models.CharField(max_length=80, db_index=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.person_id} at {self.handoff_ref}"
