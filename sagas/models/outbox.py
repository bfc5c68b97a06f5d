"""The outbox: one row per run and commit, naming the entries that are to be published (S4-19)."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Outbox(models.Model):
    """Entries `seq_from` to `seq_to` of a run. `parked_at` set = a poison event holds this run's events only."""

    run_id = models.BigIntegerField()
    seq_from = models.BigIntegerField()
    seq_to = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=DatabaseNow())
    published_at = models.DateTimeField(null=True)
    parked_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.TextField(default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["run_id", "id"],
                name="outbox_pending",
                condition=models.Q(published_at__isnull=True, parked_at__isnull=True),
            ),
            models.Index(
                fields=["run_id"], name="outbox_parked", condition=models.Q(parked_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.seq_from}-{self.seq_to}"
