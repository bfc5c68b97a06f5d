"""Actions (one tool call to be made once, a row per generation) and attempts (one try over the wire)."""

from django.db import models

from sagas.models.clock import DatabaseNow
from sagas.states import ActionState


class Action(models.Model):
    """One action of a run. An item of a batch is an action with a `parent`.

    `attempts_used` counts only the tries that used up budget; `refusals` the calls that never left: a person's order
    begins both anew. `calls` counts every call of this generation, for good: it numbers the attempts.
    `repeat_ordered`: a person had an unknown call made again under its honoured key. `in_doubt`: an earlier try
    of this generation is still unknown, so that a refusal of the repeat proves nothing.
    """

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="actions", db_index=False)
    parent = models.ForeignKey("sagas.Action", null=True, on_delete=models.PROTECT, related_name="items")
    contract = models.ForeignKey("sagas.ContractVersion", on_delete=models.PROTECT, db_index=False)
    step = models.TextField()
    position = models.PositiveIntegerField()
    item = models.TextField(default="")
    generation = models.PositiveIntegerField(default=1)
    tool = models.TextField()
    state = models.TextField(default=ActionState.NOT_STARTED)
    version = models.PositiveIntegerField(default=1)
    key = models.TextField(unique=True)
    args = models.JSONField(null=True)
    why = models.TextField(default="")
    evidence_note = models.TextField(default="")
    attempts_used = models.PositiveIntegerField(default=0)
    refusals = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    queries = models.PositiveIntegerField(default=0)
    repeat_ordered = models.BooleanField(default=False)
    in_doubt = models.BooleanField(default=False)
    due_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    answer_due_at = models.DateTimeField(null=True)
    unknown_since = models.DateTimeField(null=True)
    not_found_counts_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_by = models.TextField(default="")
    confirm_seq = models.PositiveIntegerField(null=True)
    result = models.JSONField(null=True)
    result_sha256 = models.TextField(default="")
    provider_ref = models.TextField(default="")
    prior_state = models.JSONField(null=True)
    prior_version = models.TextField(default="")
    prior_read_at = models.DateTimeField(null=True)
    error_class = models.TextField(default="")
    error_detail = models.TextField(default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "step", "item", "generation"], name="action_generation_once"
            )
        ]
        indexes = [
            models.Index(fields=["provider_ref"], name="action_ref", condition=~models.Q(provider_ref="")),
            # The calls of a tool, newest first; and what is unknown just now, the oldest first.
            models.Index(fields=["contract", "id"], name="action_of_contract"),
            models.Index(
                fields=["unknown_since"],
                name="action_unknown",
                condition=models.Q(unknown_since__isnull=False),
            ),
            # What a step of a large run reads instead of all of its rows (sagas.ledger.window).
            models.Index(
                fields=["run"],
                name="action_open",
                condition=models.Q(state__in=["prepared", "sent", "unknown", "partial", "rejected"]),
            ),
            models.Index(
                fields=["run"],
                name="action_disputed",
                condition=models.Q(state="confirmed", due_at__isnull=False),
            ),
            models.Index(
                fields=["run", "position"], name="action_next", condition=models.Q(state="not_started")
            ),
            models.Index(
                fields=["run", "confirm_seq"], name="action_standing", condition=models.Q(state="confirmed")
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Attempt(models.Model):
    """One try over the wire, written before the first byte leaves; its end is filled in once.

    Belongs to an action, and to that action's compensation when it is the compensating call. `items` names the
    items that a call over many carried.
    """

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="attempts")
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT, related_name="attempts")
    compensation = models.ForeignKey(
        "sagas.Compensation", null=True, on_delete=models.PROTECT, related_name="attempts"
    )
    number = models.PositiveIntegerField()
    items = models.JSONField(default=list)
    owner = models.TextField()
    fence = models.PositiveBigIntegerField()
    sent_at = models.DateTimeField(db_default=DatabaseNow())
    finished_at = models.DateTimeField(null=True)
    answer = models.TextField(default="")
    error_class = models.TextField(default="")
    detail = models.TextField(default="")
    status = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["action", "compensation", "number"], name="attempt_number_once", nulls_distinct=False
            )
        ]
        indexes = [
            models.Index(fields=["run", "id"], name="attempt_run"),
            # The calls under way, for gates that bound how many there may be.
            models.Index(
                fields=["action"], name="attempt_open", condition=models.Q(finished_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.action_id}"
