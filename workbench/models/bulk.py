"""A bulk: one verb for a frozen list of cases, and what became of each. The list itself never changes."""

from __future__ import annotations

from enum import StrEnum

from django.db import models


class BulkState(StrEnum):
    """A list that was only looked at, one that goes on by itself, one that waits for somebody, and the two ends."""

    FROZEN = "frozen"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"


class MemberState(StrEnum):
    """What became of a case: accepted is `sent`, and only what was read back is `verified`."""

    WAITING = "waiting"
    SENT = "sent"
    VERIFIED = "verified"
    FAILED = "failed"
    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    LEFT_OUT = "left_out"
    UNTOUCHED = "untouched"


ENDED = (BulkState.STOPPED, BulkState.FINISHED)
UNDER_WAY = (MemberState.WAITING, MemberState.SENT)


def _among(words: type[StrEnum]) -> models.Q:
    return models.Q(state__in=[str(word) for word in words])


class Bulk(models.Model):
    """Who ordered what, when, and how far it is. Times are the database's; the author is kept as a value.

    `canary` is how many go first. `typed` is the number that its author has to type, null where nothing asks for it.
    `possible` says for each verb how many of the cases it could have gone to when the list was made.
    `runner` goes on with it until `runner_until`; `next_at` is when the next case may be sent.
    """

    ref = models.CharField(max_length=40, unique=True)
    verb = models.CharField(max_length=40)
    state = models.CharField(max_length=20, default=BulkState.FROZEN)
    actor_id = models.CharField(max_length=120)
    actor_name = models.CharField(max_length=120)
    actor_role = models.CharField(max_length=40)
    arguments = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    canary = models.PositiveSmallIntegerField()
    typed = models.PositiveIntegerField(null=True)
    per_second = models.FloatField(default=0)
    possible = models.JSONField(default=dict)
    likenesses = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    frozen_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    dismissed_at = models.DateTimeField(null=True)
    stands_by = models.CharField(max_length=120, blank=True)
    why = models.JSONField(default=dict)
    next_at = models.DateTimeField(null=True)
    runner = models.CharField(max_length=40, blank=True)
    runner_until = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="bulk_state_is_known", condition=_among(BulkState)),
            models.CheckConstraint(
                name="bulk_runs_for_a_reason",
                condition=models.Q(state=str(BulkState.FROZEN), started_at=None)
                | (models.Q(started_at__isnull=False) & ~models.Q(reason="")),
            ),
            models.CheckConstraint(
                name="bulk_end_has_a_time",
                condition=models.Q(state__in=[str(state) for state in ENDED], ended_at__isnull=False)
                | (~models.Q(state__in=[str(state) for state in ENDED]) & models.Q(ended_at=None)),
            ),
        )
        indexes = (
            models.Index(
                fields=["id"],
                name="bulk_going_on",
                condition=models.Q(state__in=[str(BulkState.RUNNING), str(BulkState.PAUSED)]),
            ),
            models.Index(
                fields=["actor_id", "-id"],
                name="bulk_not_dismissed",
                condition=models.Q(started_at__isnull=False, dismissed_at=None),
            ),
            models.Index(fields=["-id"], name="bulk_newest", condition=models.Q(started_at__isnull=False)),
        )

    def __str__(self) -> str:
        return f"{self.ref}: {self.verb}"


class BulkMember(models.Model):
    """One case of a list: its version as seen, the calls as shown, and its result.

    `said` is the sentence of a refusal as a template with parts; `first` marks those that go before the rest.
    `asked` counts reads without an answer, `seen_seq` is how far the trail of its run was looked at.
    """

    bulk = models.ForeignKey(Bulk, on_delete=models.PROTECT, related_name="members")
    position = models.PositiveIntegerField()
    handoff_ref = models.CharField(max_length=100)
    run_ref = models.CharField(max_length=100, blank=True)
    version = models.PositiveIntegerField()
    step = models.CharField(max_length=80, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    title = models.TextField(blank=True)
    business_ref = models.TextField(blank=True)
    calls = models.JSONField(default=list)
    stays = models.JSONField(default=list)
    queried = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=20)
    code = models.CharField(max_length=60, blank=True)
    said = models.JSONField(default=dict)
    first = models.BooleanField(default=False)
    sent_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    asked = models.PositiveSmallIntegerField(default=0)
    ask_at = models.DateTimeField(null=True)
    seen_seq = models.BigIntegerField(default=-1)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["bulk", "position"], name="bulk_member_has_a_place"),
            models.UniqueConstraint(fields=["bulk", "handoff_ref"], name="bulk_member_once"),
            models.CheckConstraint(name="bulk_member_state_is_known", condition=_among(MemberState)),
        )
        indexes = (models.Index(fields=["bulk", "state", "position"], name="bulk_member_state"),)

    def __str__(self) -> str:
        return f"{self.bulk_id}.{self.position} {self.handoff_ref}"
