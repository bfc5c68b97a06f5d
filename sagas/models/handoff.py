"""A handoff: what a person is asked to settle, with its questions as rows."""

from django.db import models
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from sagas.models.clock import DatabaseNow
from sagas.states import HandoffState


class Handoff(models.Model):
    """One handoff of a run. `context` is the structured picture at its opening (S0-44, S0-47), `summary` the
    lean row that the queue shows, kept up to date by every transaction that changes the run; what the queue is filtered
    and grouped by is generated from it, so that the two cannot differ.

    `schedule` says how `due_at` was computed and when who is told of it (sagas.escalation); `alert_at` is the next of
    those instants, null when there is none. `changed_xid` is the transaction that last changed the handoff: a page asks
    what is not visible in its own snapshot. `wanted_*`: who asked last for the case to be handed over; it was asked of
    whoever held it then, so that it says nothing any more once somebody else holds the case.
    """

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="handoffs")
    ref = models.TextField(unique=True)
    state = models.TextField(default=HandoffState.OPEN)
    version = models.PositiveIntegerField(default=1)
    linked = models.BooleanField(default=False)
    reason = models.TextField()
    params = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    summary = models.JSONField(default=dict)
    search = models.TextField(default="")
    workflow = models.GeneratedField(
        expression=KT("summary__workflow"), output_field=models.TextField(null=True), db_persist=True
    )
    level = models.GeneratedField(
        expression=KT("summary__level"), output_field=models.TextField(null=True), db_persist=True
    )
    similar = models.GeneratedField(
        expression=KT("summary__similar"), output_field=models.TextField(null=True), db_persist=True
    )
    signoff = models.GeneratedField(
        expression=Cast(KT("summary__signoff"), models.BooleanField()),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    touches_money = models.GeneratedField(
        expression=Cast(KT("summary__touches_money"), models.BooleanField()),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    touches_customer = models.GeneratedField(
        expression=Cast(KT("summary__touches_customer"), models.BooleanField()),
        output_field=models.BooleanField(null=True),
        db_persist=True,
    )
    escalation = models.PositiveSmallIntegerField(default=0)
    unknowns = models.PositiveIntegerField(default=0)
    compensation_failed = models.BooleanField(default=False)
    opened_at = models.DateTimeField(db_default=DatabaseNow())
    due_at = models.DateTimeField()
    schedule = models.JSONField(default=dict)
    alert_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    claimed_by = models.TextField(default="")
    claimed_by_name = models.TextField(default="")
    claimed_at = models.DateTimeField(null=True)
    claim_until = models.DateTimeField(null=True)
    wanted_by = models.TextField(default="")
    wanted_by_name = models.TextField(default="")
    wanted_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.TextField(default="")
    changed_xid = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run"],
                name="handoff_one_open_per_run",
                condition=models.Q(linked=False) & ~models.Q(state="resolved"),
            ),
            models.CheckConstraint(
                name="handoff_claim_is_whole",
                condition=(
                    models.Q(claimed_by="", claimed_at__isnull=True, claim_until__isnull=True)
                    | (
                        ~models.Q(claimed_by="")
                        & models.Q(claimed_at__isnull=False, claim_until__isnull=False)
                    )
                ),
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"], name="handoff_queue", condition=~models.Q(state="resolved")
            ),
            models.Index(
                fields=["claimed_by", "due_at", "id"],
                name="handoff_mine",
                condition=~models.Q(state="resolved"),
            ),
            models.Index(
                fields=["due_at", "id"],
                name="handoff_unknown",
                condition=~models.Q(state="resolved") & models.Q(unknowns__gt=0),
            ),
            models.Index(
                fields=["due_at", "id"],
                name="handoff_comp_failed",
                condition=~models.Q(state="resolved") & models.Q(compensation_failed=True),
            ),
            models.Index(
                fields=["-resolved_at", "-id"], name="handoff_closed", condition=models.Q(state="resolved")
            ),
            models.Index(fields=["changed_xid"], name="handoff_changed"),
            models.Index(
                fields=["alert_at"], name="handoff_alert", condition=models.Q(alert_at__isnull=False)
            ),
            models.Index(fields=["run", "id"], name="handoff_run"),
        ]

    def __str__(self) -> str:
        return self.ref

    @property
    def is_wanted(self) -> bool:
        """Whether somebody asked the one who holds it now to hand it over."""
        held_since, asked = self.claimed_at, self.wanted_at
        return held_since is not None and asked is not None and asked >= held_since


class Question(models.Model):
    """One question of a handoff: about an action or its compensation, settled when its cause is."""

    handoff = models.ForeignKey("sagas.Handoff", on_delete=models.PROTECT, related_name="questions")
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT, related_name="questions")
    code = models.TextField()
    params = models.JSONField(default=dict)
    asked_at = models.DateTimeField(db_default=DatabaseNow())
    settled_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.code} of {self.action_id}"
