"""How often somebody did something lately: one row for each who and what, counted anew after a while."""

from __future__ import annotations

from django.db import models


class Pace(models.Model):
    """`count` times since `since`, by the database's clock; the rest is `workbench.commands.pace`."""

    who = models.CharField(max_length=120)
    what = models.CharField(max_length=20)
    since = models.DateTimeField()
    count = models.PositiveIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["who", "what"], name="pace_once_for_who_and_what"),)

    def __str__(self) -> str:
        return f"{self.who}: {self.count} {self.what} since {self.since}"
