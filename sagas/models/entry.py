"""The trail: one row per change or refusal, event and audit record in one. Append-only, no foreign keys."""

from django.db import models

from sagas.models.clock import DatabaseNow


class Entry(models.Model):
    """One entry. `seq` orders the entries of a run; the actor is a value that outlives the account.

    `at` and `xid` are filled by the database and cannot be written by the application role.
    """

    run_id = models.BigIntegerField(null=True)
    run_ref = models.TextField(default="")
    seq = models.BigIntegerField(null=True)
    name = models.TextField()
    machine = models.TextField(default="")
    object_id = models.BigIntegerField(null=True)
    object_version = models.IntegerField(null=True)
    step = models.TextField(default="")
    source = models.TextField(default="")
    target = models.TextField(default="")
    actor_kind = models.TextField()
    actor_id = models.TextField()
    actor_name = models.TextField()
    role = models.TextField()
    reason = models.TextField(default="")
    reason_code = models.TextField(default="", db_default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    command_id = models.TextField(default="")
    saw_version = models.IntegerField(null=True)
    at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run_id", "seq"], name="entry_seq_once")]
        indexes = [models.Index(fields=["name", "id"], name="entry_name")]

    def __str__(self) -> str:
        return f"{self.run_ref}#{self.seq} {self.name}"
