"""Reconciliations: what the record says, compared with what the systems say, hour by hour (S2-16)."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Reconciliation(models.Model):
    """One pass. `up_to` is the newest change of a run that it covered; the next pass begins there."""

    started_at = models.DateTimeField(db_default=DatabaseNow())
    finished_at = models.DateTimeField(null=True)
    up_to = models.DateTimeField(null=True)
    looked = models.PositiveIntegerField(default=0)
    confirmed = models.PositiveIntegerField(default=0)
    drift = models.PositiveIntegerField(default=0)
    unread = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["-started_at"], name="reconciliation_newest")]

    def __str__(self) -> str:
        return f"reconciliation {self.pk}"


class Finding(models.Model):
    """One action that drifted, or could not be checked. What is confirmed is only counted."""

    reconciliation = models.ForeignKey(
        "sagas.Reconciliation", on_delete=models.PROTECT, related_name="findings"
    )
    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT)
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT)
    verdict = models.TextField()
    detail = models.TextField(default="")
    at = models.DateTimeField(db_default=DatabaseNow())

    def __str__(self) -> str:
        return f"{self.verdict}: {self.action_id}"
