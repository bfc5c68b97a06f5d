"""The compensation of an action, on record before the action's first byte leaves (S4-8)."""

from django.db import models

from sagas.models.clock import DatabaseNow
from sagas.states import CompensationState


class Compensation(models.Model):
    """One registered compensation. `ordered_by` names the person who set it going; "" = the system did.

    `calls` counts its calls for good and numbers the attempts.
    """

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="compensations")
    action = models.OneToOneField("sagas.Action", on_delete=models.PROTECT, related_name="compensation")
    contract = models.ForeignKey("sagas.ContractVersion", on_delete=models.PROTECT, db_index=False)
    tool = models.TextField()
    kind = models.TextField()
    who = models.TextField()
    state = models.TextField(default=CompensationState.REGISTERED)
    version = models.PositiveIntegerField(default=1)
    key = models.TextField(unique=True)
    args = models.JSONField(null=True)
    ordered_by = models.TextField(default="")
    attempts_used = models.PositiveIntegerField(default=0)
    refusals = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    queries = models.PositiveIntegerField(default=0)
    in_doubt = models.BooleanField(default=False)
    registered_at = models.DateTimeField(db_default=DatabaseNow())
    due_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    unknown_since = models.DateTimeField(null=True)
    not_found_counts_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_by = models.TextField(default="")
    result = models.JSONField(null=True)
    provider_ref = models.TextField(default="")
    error_class = models.TextField(default="")
    error_detail = models.TextField(default="")

    class Meta:
        indexes = [
            # The outstanding compensations that reconciliation looks for (S2-7).
            models.Index(
                fields=["registered_at"],
                name="compensation_outstanding",
                condition=models.Q(state__in=["due", "awaiting_approval", "sent", "unknown", "failed"]),
            ),
            models.Index(fields=["contract", "id"], name="compensation_of_contract"),
            models.Index(
                fields=["run"],
                name="compensation_open",
                condition=models.Q(state__in=["due", "awaiting_approval", "sent", "unknown", "failed"]),
            ),
        ]

    def __str__(self) -> str:
        return self.key
