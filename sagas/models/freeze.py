"""A freeze: the infrastructure's own "stop", checked under its lock by every commit that sends (S4-1)."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Freeze(models.Model):
    """One freeze. scope: forward, writes or everything; applies_to: all, tool:x, workflow:x or team:x.

    Two people lift it: one asks, another one does. Until then it is in force.
    """

    scope = models.TextField(default="forward")
    applies_to = models.TextField(default="all")
    reason = models.TextField()
    frozen_by = models.TextField()
    frozen_by_name = models.TextField()
    frozen_at = models.DateTimeField(db_default=DatabaseNow())
    lift_asked_by = models.TextField(default="")
    lift_asked_by_name = models.TextField(default="")
    lift_asked_at = models.DateTimeField(null=True)
    lift_reason = models.TextField(default="")
    lifted_by = models.TextField(default="")
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="freeze_in_force", condition=models.Q(lifted_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.scope} on {self.applies_to}"
