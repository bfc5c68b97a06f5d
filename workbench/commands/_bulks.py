"""The rows of bulks, under lock: who may move one on, and how it moves. The only writer of their states.

What a bulk does with its cases is `workbench.bulks`' work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor, ActorKind
from workbench.errors import Answer, Moment, Refusal, Sentence
from workbench.models import Bulk, BulkMember
from workbench.models.bulk import ENDED, BulkState, MemberState

BULKS = Actor(kind=ActorKind.SYSTEM, id="bulk", name="Bulk", role="executor")


def locked_bulk(ref: str) -> Bulk | None:
    """The row, nobody else's until the transaction ends."""
    return Bulk.objects.select_for_update().filter(ref=ref).first() if ref.isascii() else None


def store_bulk(row: Bulk, members: Sequence[BulkMember]) -> None:
    """Keep a list that was just made, in this order."""
    with api.transaction():
        row.save(force_insert=True)
        for position, member in enumerate(members, start=1):
            member.bulk, member.position = row, position
        BulkMember.objects.bulk_create(members, batch_size=200)


def release_bulk(ref: str) -> None:
    """Let the rest go: the first cases are proved. Once, however often it is asked for."""
    with api.transaction():
        row = locked_bulk(ref)
        if row is None or row.released_at is not None or row.state != BulkState.RUNNING:
            return
        row.released_at = row.next_at = api.now()
        row.save(update_fields=["released_at", "next_at"])
        after = {"bulk": ref, "verb": row.verb, "verified": row.canary}
        api.log(name="bulk.released", actor=BULKS, after=after)


def dismiss_bulk(ref: str, *, actor: Actor) -> None:
    """Take the line of an ended bulk off its author's queue; the bulk itself stays."""
    with api.transaction():
        row = locked_bulk(ref)
        if row is not None and row.actor_id == actor.id and row.state in ENDED:
            row.dismissed_at = api.now()
            row.save(update_fields=["dismissed_at"])


def missing() -> Refusal:
    """The answer where there is no such bulk."""
    return Refusal(
        answer=Answer.NOT_FOUND, code="no_such_bulk", sentence=Sentence(_("There is no such list of cases."))
    )


def why_not_going(row: Bulk) -> Refusal | None:
    """Why it can neither be paused nor stopped nor continued: it has not begun, or is at its end."""
    if row.state == BulkState.FROZEN:
        return _conflict("not_started", _("This list was not started. Nothing was sent."))
    if row.state in ENDED:
        at = Moment(row.ended_at or row.frozen_at, api.now(), seconds=True)
        return _conflict("ended", _("It ended at %(at)s. Nothing can be changed."), {"at": at})
    return None


def why_already(row: Bulk, state: BulkState) -> Refusal | None:
    """Why it is not put into a state that it is in."""
    if row.state != state:
        return None
    text = _("It is paused already.") if state is BulkState.PAUSED else _("It goes on already.")
    return _conflict("already", text)


def move_bulk(
    row: Bulk,
    state: BulkState,
    *,
    actor: Actor,
    reason: str = "",
    reason_code: str = "",
    command_id: str = "",
    **changes: Any,
) -> None:
    """Put a locked row into a state, with its entry."""
    before, now = row.state, api.now()
    row.state = state
    for name, value in changes.items():
        setattr(row, name, value)
    if state in ENDED:
        row.ended_at = now
    row.save(update_fields=["state", "ended_at", *changes])
    if state is BulkState.STOPPED:
        # What was not sent stays as it was; what was sent is still watched to its end by whoever looks at the case.
        row.members.filter(state=MemberState.WAITING).update(state=MemberState.UNTOUCHED, settled_at=now)
    name = "continued" if (before, state) == (BulkState.PAUSED, BulkState.RUNNING) else _NAMES[state]
    after = {"bulk": row.ref, "verb": row.verb, **tally(row)}
    api.log(
        name=f"bulk.{name}",
        actor=actor,
        reason=reason,
        reason_code=reason_code,
        after=after,
        command_id=command_id,
    )


_NAMES = {
    BulkState.RUNNING: "started",
    BulkState.PAUSED: "paused",
    BulkState.STOPPED: "stopped",
    BulkState.FINISHED: "finished",
}


def tally(row: Bulk) -> dict[str, int]:
    """How many cases of it have which state, the same words every time."""
    states = list(BulkMember.objects.filter(bulk=row).values_list("state", flat=True))
    return {str(state): states.count(str(state)) for state in MemberState}


def _conflict(code: str, text: object, parts: Mapping[str, object] | None = None) -> Refusal:
    return Refusal(answer=Answer.CONFLICT, code=code, sentence=Sentence(text, parts or {}))
