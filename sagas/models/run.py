"""A run of a definition: the row whose lock orders every decision about it."""

from django.db import models

from sagas.lanes import Lane
from sagas.models.clock import DatabaseNow
from sagas.states import Direction, RunState


class Run(models.Model):
    """One run.

    `version` rises by one with every change that people can see, `fence` with every claim; `seq` numbers the
    entries and `confirmations` the confirmed actions, both under the row's lock. `due_at` is null while a worker
    owns the run, while a freeze holds it (`held`, the first of them `held_by`) and when nothing is due. `breaks` and
    `deaths` count at the place `stuck_at`; a run with `quarantined_at` gets no more deliveries. With `paused_at` no
    further compensation of it begins.
    """

    ref = models.TextField(unique=True)
    definition = models.ForeignKey(
        "sagas.DefinitionVersion", on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    parent = models.ForeignKey("sagas.Run", null=True, on_delete=models.PROTECT, related_name="remedies")
    state = models.TextField(default=RunState.RUNNING)
    direction = models.TextField(default=Direction.FORWARD)
    version = models.PositiveIntegerField(default=1)
    fence = models.PositiveBigIntegerField(default=0)
    owner = models.TextField(default="")
    due_at = models.DateTimeField(null=True)
    held = models.BooleanField(default=False)
    held_by = models.BigIntegerField(null=True)
    lane = models.PositiveSmallIntegerField(default=Lane.NEW)
    stuck_at = models.TextField(default="")
    breaks = models.PositiveIntegerField(default=0)
    deaths = models.PositiveIntegerField(default=0)
    quarantined_at = models.DateTimeField(null=True)
    deliveries = models.PositiveIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0)
    confirmations = models.PositiveIntegerField(default=0)
    evidence_seen = models.BigIntegerField(default=0)
    evidence_waiting = models.BooleanField(default=False)
    compensate_down_to = models.PositiveIntegerField(default=0)
    turned_back_by = models.TextField(default="")
    turned_back_at = models.DateTimeField(null=True)
    paused_by = models.TextField(default="")
    paused_at = models.DateTimeField(null=True)
    effects_left = models.JSONField(default=list)
    input = models.JSONField()
    intent = models.TextField(default="")
    title = models.TextField(default="")
    business_ref = models.TextField(default="")
    customer = models.TextField(default="")
    amount = models.TextField(default="")
    currency = models.TextField(default="")
    team = models.TextField(default="")
    start_key = models.TextField()
    start_digest = models.TextField()
    started_by = models.TextField()
    started_by_name = models.TextField()
    started_at = models.DateTimeField(db_default=DatabaseNow())
    changed_at = models.DateTimeField(db_default=DatabaseNow())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["started_by", "start_key"], name="run_start_once")]
        indexes = [
            models.Index(fields=["due_at"], name="run_due", condition=models.Q(due_at__isnull=False)),
            # Each lane by itself is looked into in the order of its due times (`sagas.lanes`).
            models.Index(
                fields=["lane", "due_at"], name="run_due_lane", condition=models.Q(due_at__isnull=False)
            ),
            models.Index(
                fields=["quarantined_at"],
                name="run_quarantined",
                condition=models.Q(quarantined_at__isnull=False),
            ),
            models.Index(fields=["owner"], name="run_owned", condition=~models.Q(owner="")),
            models.Index(fields=["id"], name="run_held", condition=models.Q(held=True)),
            models.Index(fields=["business_ref"], name="run_business_ref"),
            # The runs of a version, newest first, and those of it that have not ended.
            models.Index(fields=["definition", "started_at", "id"], name="run_of_definition"),
            models.Index(
                fields=["definition"], name="run_live", condition=models.Q(finished_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.ref
