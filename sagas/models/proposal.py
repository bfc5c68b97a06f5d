"""A proposal: what one person stated of an unknown, until another person confirms it (engine.md, section 6)."""

from django.db import models

from sagas.models.clock import DatabaseNow
from sagas.states import ProposalState


class Proposal(models.Model):
    """One person's verdict that waits for a second one. At most one is open for a handoff.

    `arguments` are what the verb was given; `basis` stands for the facts that it was given on: when they change it is
    void. `shapers` are the people who worked on the run before, as values: none of them may confirm it.
    """

    ref = models.TextField(unique=True)
    run = models.ForeignKey("sagas.Run", on_delete=models.PROTECT, related_name="proposals")
    handoff = models.ForeignKey("sagas.Handoff", on_delete=models.PROTECT, related_name="proposals")
    state = models.TextField(default=ProposalState.OPEN)
    version = models.PositiveIntegerField(default=1)
    verb = models.TextField()
    step = models.TextField(default="")
    arguments = models.JSONField(default=dict)
    basis = models.TextField()
    shapers = models.JSONField(default=list)
    proposed_by = models.TextField()
    proposed_by_name = models.TextField()
    reason = models.TextField(default="")
    reason_code = models.TextField(default="", db_default="")
    proposed_at = models.DateTimeField(db_default=DatabaseNow())
    expires_at = models.DateTimeField()
    decided_by = models.TextField(default="")
    decided_by_name = models.TextField(default="")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["handoff"], name="proposal_one_open", condition=models.Q(state="open")
            )
        ]
        indexes = [
            models.Index(fields=["run", "id"], name="proposal_run"),
            models.Index(fields=["proposed_by"], name="proposal_open_by", condition=models.Q(state="open")),
        ]

    def __str__(self) -> str:
        return self.ref
