"""Worker incarnations: the lease that claims hang on belongs to one of these, never to a run."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Worker(models.Model):
    """One incarnation of a process that drains work. An expired lease is never renewed, only replaced."""

    id = models.TextField(primary_key=True)
    kind = models.TextField()
    place = models.TextField(default="")
    started_at = models.DateTimeField(db_default=DatabaseNow())
    beat_at = models.DateTimeField(db_default=DatabaseNow())
    beats = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_how = models.TextField(default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["lease_until"], name="worker_alive", condition=models.Q(ended_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.id
