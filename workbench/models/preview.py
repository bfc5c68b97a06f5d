"""What a person was shown before a command: the exact calls, the checks, the state they were made from."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Preview(models.Model):
    """Bound to a person, a verb, a step and a version of the run; never changed.

    `content` is the preview as shown, `seen` the facts that a later conflict is compared with.
    """

    ref = models.CharField(max_length=40, unique=True)
    actor_id = models.CharField(max_length=120)
    verb = models.CharField(max_length=40)
    step = models.CharField(max_length=80, blank=True)
    handoff_ref = models.CharField(max_length=80)
    run_ref = models.CharField(max_length=80)
    run_version = models.BigIntegerField()
    content = models.JSONField()
    seen = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="preview_lives_a_while", condition=models.Q(expires_at__gt=models.F("created_at"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.ref}: {self.verb} {self.handoff_ref} v{self.run_version}"
