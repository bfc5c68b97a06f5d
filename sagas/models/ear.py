"""Ears: which workers heard the bell and when, so that one that is connected and takes no work is found."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Ear(models.Model):
    """One worker process, which has `heard_at`, or the sweep that rings, which has `rung_at`."""

    place = models.TextField(primary_key=True)
    since = models.DateTimeField(db_default=DatabaseNow())
    rung_at = models.DateTimeField(null=True)
    heard_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.place
