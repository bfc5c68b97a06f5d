"""Teams: versions of their calendars and chains, never changed once stored."""

from django.db import models

from sagas.models.clock import DatabaseNow


class TeamVersion(models.Model):
    """One version of a team as its file says it; the newest counts, older ones tell how a due time came about."""

    name = models.TextField()
    version = models.PositiveIntegerField()
    digest = models.TextField()
    document = models.JSONField()
    stored_at = models.DateTimeField(db_default=DatabaseNow())
    stored_by = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="team_version_once")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"
