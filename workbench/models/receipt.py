"""The receipt of a command that took effect: what makes a double click one effect (S1-6)."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Receipt(models.Model):
    """Written in the command's own transaction, never changed. `digest` covers what was asked.

    Refusals leave an entry, but no receipt: only what happened is replayed.
    """

    actor_id = models.CharField(max_length=120)
    command_id = models.CharField(max_length=100)
    verb = models.CharField(max_length=40)
    target = models.CharField(max_length=80, blank=True)
    digest = models.CharField(max_length=64)
    status = models.CharField(max_length=20)
    code = models.CharField(max_length=60)
    scheduled = models.BooleanField(default=False)
    run_version = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["actor_id", "command_id"], name="receipt_once_per_command"),
            models.CheckConstraint(name="receipt_is_final", condition=models.Q(status="accepted")),
            models.CheckConstraint(
                name="receipt_is_signed", condition=~models.Q(actor_id="") & ~models.Q(command_id="")
            ),
        )

    def __str__(self) -> str:
        return f"{self.verb} {self.command_id}"
