"""Who holds which role, since when, given by whom; ended grants stay as history."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from workbench.models.user import User
from workbench.roles import Role


class Assignment(models.Model):
    """One grant of one role. `granted_by` and `ended_by` are actor ids, kept as values."""

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="assignments")
    role = models.CharField(max_length=20, choices=[(str(role), str(role)) for role in Role])
    granted_by = models.CharField(max_length=120)
    granted_at = models.DateTimeField(db_default=Now())
    ended_by = models.CharField(max_length=120, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["person", "role"], condition=models.Q(ended_at=None), name="assignment_held_once"
            ),
            models.CheckConstraint(
                name="assignment_role_is_known", condition=models.Q(role__in=[str(role) for role in Role])
            ),
            models.CheckConstraint(name="assignment_granted_by_somebody", condition=~models.Q(granted_by="")),
            models.CheckConstraint(
                name="assignment_ended_who_and_when",
                condition=models.Q(ended_at=None, ended_by="")
                | (models.Q(ended_at__isnull=False) & ~models.Q(ended_by="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.person_id} is {self.role}"
