"""What goes on with bulks by itself: the first cases, their proof, then the rest, case by case and no faster than it may.

All it knows is in the tables, so that it goes on wherever it was cut. Each case runs through the one dispatcher, under
an id made of the bulk and its place in the list: however often it is sent, it has one effect.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from django.db import DatabaseError
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.errors import NotFound
from sagas.facts import Actor, ActorKind
from workbench import policies
from workbench.bulks.lists import shown_calls
from workbench.bulks.proof import asked, prove
from workbench.commands import (
    BULKS,
    COMMANDS,
    Result,
    dispatch,
    fields_of,
    locked_bulk,
    make_preview,
    move_bulk,
    release_bulk,
)
from workbench.errors import Answer, Refused, Sentence, kept
from workbench.models import Bulk, BulkMember, User
from workbench.models.bulk import UNDER_WAY, BulkState, MemberState
from workbench.policies import Permission

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=10)
TURN_S = 2.0
"""Seconds that one bulk keeps the others waiting at most."""
WATCHED = 50
"""Cases that one look at a bulk reads at most; the others come next."""
READ_EVERY = timedelta(seconds=1)
_SELF = f"{os.getpid()}-{secrets.token_hex(4)}"

type Stop = Callable[[], bool]


def go_on(stop: Stop) -> None:
    """One look at every bulk that is not at its end: prove what was sent, send what may go now."""
    with_sent = Q(members__state=MemberState.SENT)
    going = Bulk.objects.filter(Q(state=BulkState.RUNNING) | with_sent).distinct().order_by("id")
    for ref in going.values_list("ref", flat=True):
        if stop():
            return
        if _take(ref):
            try:
                _go_on(ref, stop)
            except DatabaseError:
                raise
            except Exception:
                # Whatever one is like, the others go on; this one waits for somebody.
                log.exception("bulk.broken", bulk=ref)
                _hold(
                    ref, Sentence(_("Something went wrong here. What was sent is on record with its case."))
                )


def running(refs: Sequence[str]) -> bool:
    """Whether any of these goes on by itself; what is paused does not."""
    return Bulk.objects.filter(ref__in=refs, state=BulkState.RUNNING).exists()


def sending(refs: Sequence[str]) -> bool:
    """Whether any of these is about to send something, and does not only wait for what it has sent."""
    rows = Bulk.objects.filter(ref__in=refs, state=BulkState.RUNNING, members__state=MemberState.WAITING)
    return rows.filter(Q(released_at__isnull=False) | ~Q(members__state=MemberState.SENT)).exists()


def _take(ref: str) -> bool:
    """Be the one who goes on with it for a while. Two who do are slower, not wrong."""
    now = api.now()
    free = Q(runner=_SELF) | Q(runner_until=None) | Q(runner_until__lt=now)
    return bool(Bulk.objects.filter(free, ref=ref).update(runner=_SELF, runner_until=now + LEASE))


def _go_on(ref: str, stop: Stop) -> None:
    row = Bulk.objects.get(ref=ref)
    _watch(row)
    row.refresh_from_db()
    if row.state != BulkState.RUNNING or _halted(row):
        return
    if row.released_at is None:
        _first(row)
    else:
        _rest(row, stop)
    if not row.members.filter(state__in=UNDER_WAY).exists():
        _end(ref, BulkState.FINISHED)


def _halted(row: Bulk) -> bool:
    """Whether its author may not order it any more; then it stops, as if they had never been there for the rest."""
    person = User.objects.filter(username=row.actor_id).first()
    roles = frozenset() if person is None else person.current_roles()
    refusal = policies.why_not_permitted(actor=_author(row), roles=roles, permission=Permission.BULK)
    if refusal is None:
        return False
    text = _("%(who)s may not order this any more. Nothing else was sent.")
    _end(row.ref, BulkState.STOPPED, why=Sentence(text, {"who": row.actor_name}))
    return True


# --- Sending ----------------------------------------------------------------------------------------------------------


def _first(row: Bulk) -> None:
    """The first cases: as many as are to be proved before the rest, and no others until they are.

    A case that was refused had nothing sent, so that it says nothing about the others: the next takes its place.
    """
    first = row.members.filter(first=True)
    failed = first.filter(state__in=(MemberState.FAILED, MemberState.NO_ANSWER)).order_by("position").first()
    if failed is not None:
        text = _("%(case)s went first and was not verified. Nothing else was sent.")
        _end(row.ref, BulkState.STOPPED, why=Sentence(text, {"case": failed.handoff_ref}))
        return
    proved = first.filter(state=MemberState.VERIFIED).count()
    under_way = first.filter(state=MemberState.SENT).count()
    waiting = row.members.filter(state=MemberState.WAITING).order_by("position")
    for member in waiting[: max(row.canary - proved - under_way, 0)]:
        if not _send(row, member, first=True):
            return
    if proved >= row.canary:
        release_bulk(row.ref)


def _rest(row: Bulk, stop: Stop) -> None:
    """Everything else, spaced evenly; time that passed unused is not made up for."""
    gap, until = timedelta(seconds=1 / row.per_second), time.monotonic() + TURN_S
    due = row.next_at or api.now()
    while time.monotonic() < until and not stop():
        now = api.now()
        if due > now:
            break
        due = max(due, now - timedelta(seconds=1)) + gap
        member = row.members.filter(state=MemberState.WAITING).order_by("position").first()
        # Asked for each case, so that a pause counts from the very next one on.
        held = Bulk.objects.filter(ref=row.ref, state=BulkState.RUNNING, runner=_SELF)
        if member is None or not held.update(next_at=due, runner_until=now + LEASE):
            break
        if not _send(row, member):
            break


def _send(row: Bulk, member: BulkMember, *, first: bool = False) -> bool:
    """Order it for one case. False: not now, and not for the next one either."""
    actor, person = _author(row), User.objects.filter(username=row.actor_id).first()
    preview_id, queried = _preview(row, member, actor, person)
    result = dispatch(
        actor=actor,
        person=person,
        verb=row.verb,
        handoff_ref=member.handoff_ref,
        command_id=f"{row.ref}.{member.position}",
        saw_version=member.version,
        arguments=_arguments(row, member),
        preview_id=preview_id,
        door="bulk",
        claims=False,
    )
    if result.status is Answer.BUSY:
        return False
    if result.status is Answer.FROZEN:
        _hold(row.ref, result.sentence)
        return False
    _note(member, result, first=first, queried=queried)
    return True


def _preview(row: Bulk, member: BulkMember, actor: Actor, person: User | None) -> tuple[str, int]:
    """A preview of what was shown when the list was frozen, "" where it is another thing by now; and how often the
    step was asked about so far.
    """
    try:
        facts = api.handoff_facts(member.handoff_ref)
        if facts.version != member.version:
            return "", 0
        calls, _stays = shown_calls(facts, row.verb, member.step)
        if calls != member.calls:
            return "", 0
        shown = make_preview(actor=actor, person=person, facts=facts, verb=row.verb, step=member.step)
    except (Refused, NotFound):
        return "", 0
    return shown.id, asked(facts, member.step)


def _arguments(row: Bulk, member: BulkMember) -> Mapping[str, Any]:
    given: dict[str, Any] = {"step": member.step, "reason": row.reason, **row.arguments}
    names = {field.name for field in fields_of(COMMANDS[row.verb])}
    return {name: value for name, value in given.items() if name in names and value}


def _note(member: BulkMember, result: Result, *, first: bool, queried: int) -> None:
    now = api.now()
    waiting = BulkMember.objects.filter(pk=member.pk, state=MemberState.WAITING)
    if result.accepted:
        waiting.update(
            state=MemberState.SENT, first=first, sent_at=result.at or now, queried=queried, code="", said={}
        )
        return
    waiting.update(
        state=MemberState.REFUSED, code=result.code, said=kept(result.sentence), first=False, settled_at=now
    )


# --- Proving ----------------------------------------------------------------------------------------------------------


def _watch(row: Bulk) -> None:
    """Look at what was sent wherever something has happened since."""
    now = api.now()
    sent = list(row.members.filter(state=MemberState.SENT).order_by("position"))
    standings = api.standings([member.handoff_ref for member in sent]) if sent else {}
    changed = [
        (member, standings[member.handoff_ref].seq)
        for member in sent
        if standings[member.handoff_ref].seq != member.seen_seq
        or (member.ask_at is not None and member.ask_at <= now)
    ]
    for member, seq in changed[:WATCHED]:
        _look(row, member, seq)


def _look(row: Bulk, member: BulkMember, seq: int) -> None:
    facts = api.handoff_facts(member.handoff_ref)
    proof = prove(row.verb, member, facts, arguments=row.arguments)
    sent, now = BulkMember.objects.filter(pk=member.pk, state=MemberState.SENT), api.now()
    if proof is None:
        sent.update(seen_seq=seq)
    elif proof.again:
        sent.update(seen_seq=seq, asked=member.asked + 1, ask_at=now + READ_EVERY)
    elif proof.sentence is not None:
        sent.update(
            state=proof.state, code=proof.code, said=kept(proof.sentence), settled_at=now, seen_seq=seq
        )


# --- Ends -------------------------------------------------------------------------------------------------------------


def _end(ref: str, state: BulkState, *, why: Sentence | None = None) -> None:
    with api.transaction():
        row = locked_bulk(ref)
        if row is not None and row.state == BulkState.RUNNING:
            reason = "" if why is None else why.plain()
            move_bulk(row, state, actor=BULKS, reason=reason, why={} if why is None else kept(why))


def _hold(ref: str, why: Sentence) -> None:
    """Wait for somebody: a freeze covers the next case. Nothing is refused for it."""
    with api.transaction():
        row = locked_bulk(ref)
        if row is not None and row.state == BulkState.RUNNING:
            changes: dict[str, Any] = {"paused_at": api.now(), "stands_by": "", "why": kept(why)}
            move_bulk(row, BulkState.PAUSED, actor=BULKS, reason=why.plain(), **changes)


def _author(row: Bulk) -> Actor:
    return Actor(kind=ActorKind.HUMAN, id=row.actor_id, name=row.actor_name, role=row.actor_role)
