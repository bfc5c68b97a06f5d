"""A permit: what a sign-off becomes in the engine, bound to the digest of the very call it allows."""

from django.db import models

from sagas.models.clock import DatabaseNow
from sagas.states import PermitState


class Permit(models.Model):
    """One permit for one call, used up by the commit that marks the call as sent (engine.md, section 8)."""

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="permits")
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT, related_name="permits")
    compensation = models.ForeignKey("sagas.Compensation", null=True, on_delete=models.PROTECT)
    state = models.TextField(default=PermitState.REQUESTED)
    version = models.PositiveIntegerField(default=1)
    digest = models.TextField()
    requested_at = models.DateTimeField(db_default=DatabaseNow())
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"permit {self.digest[:12]}"
