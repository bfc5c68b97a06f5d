"""Retirements: versions that nothing new may use, and contracts that are not even called any more."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Retirement(models.Model):
    """One version out of use. kind: contract or workflow. `withdrawn`: not even runs that pin it may call it."""

    kind = models.TextField()
    name = models.TextField()
    version = models.PositiveIntegerField()
    withdrawn = models.BooleanField(default=False)
    reason = models.TextField()
    retired_by = models.TextField()
    retired_by_name = models.TextField()
    retired_at = models.DateTimeField(db_default=DatabaseNow())
    lifted_by = models.TextField(default="")
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name", "version"],
                name="retirement_in_force_once",
                condition=models.Q(lifted_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} v{self.version}"
