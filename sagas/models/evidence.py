"""Evidence: what the world said about a call, whoever asked. Append-only; only the ledger applies it."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Evidence(models.Model):
    """One piece of evidence. `rank`: found 3 > denied 2 > absent 1 > no answer 0; unmatched rows have no run."""

    run_id = models.BigIntegerField(null=True)
    action_id = models.BigIntegerField(null=True)
    compensation_id = models.BigIntegerField(null=True)
    attempt_id = models.BigIntegerField(null=True)
    key = models.TextField(default="")
    source = models.TextField()
    verdict = models.TextField()
    rank = models.SmallIntegerField()
    reference = models.TextField(default="")
    detail = models.TextField(default="")
    body = models.JSONField(null=True)
    sender_at = models.DateTimeField(null=True)
    sender_version = models.TextField(default="")
    by = models.TextField(default="")
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = [
            models.Index(fields=["run_id", "id"], name="evidence_run"),
            # What came before its call was known: looked up when a reference becomes known.
            models.Index(
                fields=["reference"],
                name="evidence_unmatched",
                condition=models.Q(run_id__isnull=True) & ~models.Q(reference=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.verdict}"
