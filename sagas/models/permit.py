"""A permit: what a sign-off becomes in the engine, bound to the digest of the very call it allows."""

from django.db import models

from sagas.models.clock import DatabaseNow
from sagas.states import PermitState


class Permit(models.Model):
    """One permit for one call, used up by the commit that marks the call as sent (engine.md, section 8).

    `document` is what is signed, word for word; `requesters` are the people who shaped the request, as values.
    """

    ref = models.TextField(unique=True)
    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="permits")
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT, related_name="permits")
    compensation = models.ForeignKey("sagas.Compensation", null=True, on_delete=models.PROTECT)
    state = models.TextField(default=PermitState.REQUESTED)
    version = models.PositiveIntegerField(default=1)
    digest = models.TextField()
    document = models.JSONField()
    requesters = models.JSONField(default=list)
    requested_at = models.DateTimeField(db_default=DatabaseNow())
    expires_at = models.DateTimeField()
    decided_by = models.TextField(default="")
    decided_by_name = models.TextField(default="")
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(default="")
    reason_code = models.TextField(default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="permit_decision_is_whole",
                condition=(
                    models.Q(decided_by="", decided_at__isnull=True)
                    | (~models.Q(decided_by="") & models.Q(decided_at__isnull=False))
                ),
            )
        ]
        indexes = [
            models.Index(
                fields=["expires_at", "id"], name="permit_open", condition=models.Q(state="requested")
            ),
            models.Index(fields=["run", "id"], name="permit_run"),
        ]

    def __str__(self) -> str:
        return f"permit {self.digest[:12]}"
