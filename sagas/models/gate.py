"""The gate of a tool and the turns at it: when it may be called again, and who waits."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Gate(models.Model):
    """One tool's gate, handed out in short transactions of its own. A tool that nobody had to wait for has none.

    `not_before`: closed until then. `next_at` is when the turn after those handed out may be. `pace` was learned
    from a refusal for speed, and grows back from `not_before` on. `paused_at`: closed until a person opens it.
    `flows`, `served` and `handed` are the shares of those who wait (`sagas.pacing.Shares`).
    """

    tool = models.TextField(unique=True)
    not_before = models.DateTimeField(null=True)
    next_at = models.DateTimeField(null=True)
    per_second = models.FloatField(null=True)
    burst = models.PositiveIntegerField(default=1)
    at_once = models.PositiveIntegerField(null=True)
    pace = models.FloatField(null=True)
    strikes = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    flows = models.JSONField(default=dict)
    served = models.FloatField(default=0)
    handed = models.PositiveBigIntegerField(default=0)
    paused_at = models.DateTimeField(null=True)
    paused_why = models.TextField(default="")

    def __str__(self) -> str:
        return self.tool


class Turn(models.Model):
    """A call that waits, or waited, for its turn at a gate; one row for each action and tool.

    `go_at` is its turn once it has one, `used_at` when the call went out. `waiting_since` counts over refusals for
    speed; null once a person was asked. `asked_at` is its place in the queue: who was sent away asks anew, at the end.
    `sent_away`: it has been out and was refused for speed: another refusal says less about the tool than about it.
    """

    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="turns")
    action = models.ForeignKey("sagas.Action", on_delete=models.PROTECT, related_name="turns")
    tool = models.TextField()
    flow = models.TextField()
    reserved = models.BooleanField(default=False)
    waiting_since = models.DateTimeField(null=True, db_default=DatabaseNow())
    asked_at = models.DateTimeField(db_default=DatabaseNow())
    sent_away = models.BooleanField(default=False, db_default=False)
    go_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "tool"], name="turn_once")]
        indexes = [
            models.Index(
                fields=["tool", "reserved", "flow", "asked_at"],
                name="turn_waiting",
                condition=models.Q(go_at__isnull=True, used_at__isnull=True),
            ),
            models.Index(
                fields=["tool", "go_at"],
                name="turn_handed_out",
                condition=models.Q(go_at__isnull=False, used_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} for {self.action_id}"
