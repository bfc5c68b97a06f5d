"""Bulks as they are read: how far each is, what became of every case, and how its cases stand now. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from sagas import api
from sagas.errors import NotFound
from sagas.facts import CaseStanding
from sagas.states import FINAL_RUN_STATES, RunState
from workbench.errors import Sentence, told
from workbench.models import Bulk, BulkMember
from workbench.models.bulk import ENDED, UNDER_WAY, BulkState, MemberState

__all__ = ["ENDED", "UNDER_WAY", "BulkFacts", "BulkState", "MemberFacts", "MemberState"]

RECENT = 20
MOST_LINES = 3
_MEMBER = re.compile(r"(BK-[0-9a-f]{8})\.[0-9]+")
CHUNK = 200


@dataclass(frozen=True, kw_only=True)
class BulkFacts:
    """One bulk. `counts` has every state of a member; `arrived` are similar cases that came later and are not in it."""

    ref: str
    verb: str
    state: BulkState
    actor_id: str
    actor_name: str
    reason: str
    arguments: Mapping[str, str]
    canary: int
    typed: int | None
    per_second: float
    digest: str
    frozen_at: datetime
    expires_at: datetime
    started_at: datetime | None
    released_at: datetime | None
    paused_at: datetime | None
    ended_at: datetime | None
    stands_by: str
    why: Sentence
    counts: Mapping[MemberState, int]
    possible: Mapping[str, int]
    arrived: int
    now: datetime

    @property
    def included(self) -> int:
        """How many cases the verb goes to."""
        return sum(self.counts.values()) - self.counts[MemberState.LEFT_OUT]

    @property
    def under_way(self) -> int:
        """How many are not at their end."""
        return sum(self.counts[state] for state in UNDER_WAY)


@dataclass(frozen=True, kw_only=True)
class MemberFacts:
    """One case of a list and its result. `disposition`: settled, waived or open, as the case stands now."""

    position: int
    handoff_ref: str
    run_ref: str
    version: int
    step: str
    tool: str
    title: str
    business_ref: str
    state: MemberState
    first: bool
    code: str
    said: Sentence
    sent_at: datetime | None
    settled_at: datetime | None
    calls: Sequence[Mapping[str, Any]] = field(default=())
    stays: Sequence[str] = ()
    disposition: str = ""
    run_state: str = ""


def behind(command_id: str) -> str:
    """The bulk that a command came from, by its id; "" for every other command."""
    found = _MEMBER.fullmatch(command_id)
    return "" if found is None else found[1]


def bulk(ref: str) -> BulkFacts:
    """One bulk with its counts. Raises NotFound."""
    row = Bulk.objects.filter(ref=ref).first() if ref.isascii() and ref.isprintable() else None
    if row is None:
        raise NotFound("bulk", ref)
    states = BulkMember.objects.filter(bulk=row).values_list("state").annotate(n=Count("id"))
    return _facts(row, dict(states), arrived=_arrived(row))


def recent(*, limit: int = RECENT) -> tuple[BulkFacts, ...]:
    """What was started, newest first; those that go on are among them."""
    return _counted(list(Bulk.objects.filter(started_at__isnull=False).order_by("-id")[:limit]))


def on_the_queue(actor_id: str) -> tuple[BulkFacts, ...]:
    """What goes on, whoever started it, and of one's own what ended and was not dismissed; newest first."""
    going = Q(state__in=[str(BulkState.RUNNING), str(BulkState.PAUSED)])
    own = Q(actor_id=actor_id, started_at__isnull=False, dismissed_at=None)
    return _counted(list(Bulk.objects.filter(going | own).order_by("-id")[:MOST_LINES]))


def _counted(rows: Sequence[Bulk]) -> tuple[BulkFacts, ...]:
    if not rows:
        return ()
    counted: dict[int, dict[str, int]] = {row.pk: {} for row in rows}
    found = BulkMember.objects.filter(bulk__in=rows).values_list("bulk", "state").annotate(n=Count("id"))
    for pk, state, number in found:
        counted[pk][state] = number
    return tuple(_facts(row, counted[row.pk]) for row in rows)


def members(
    ref: str, *, states: Sequence[str] = (), after: int = 0, limit: int = CHUNK
) -> tuple[MemberFacts, ...]:
    """A page of the list, in its order, each with how the case stands now."""
    rows = BulkMember.objects.filter(bulk__ref=ref, position__gt=after).order_by("position")
    if states:
        rows = rows.filter(state__in=list(states))
    found = list(rows[:limit])
    standings = api.standings([row.handoff_ref for row in found])
    return tuple(_member(row, standings.get(row.handoff_ref)) for row in found)


def every_member(ref: str) -> Iterator[MemberFacts]:
    """The whole list, page by page."""
    after = 0
    while page := members(ref, after=after):
        yield from page
        after = page[-1].position


def _arrived(row: Bulk) -> int:
    if not row.likenesses:
        return 0
    own = list(row.members.values_list("handoff_ref", flat=True))
    return api.arrived(row.likenesses, since=row.frozen_at, besides=own)


def _facts(row: Bulk, counts: Mapping[str, int], *, arrived: int = 0) -> BulkFacts:
    return BulkFacts(
        ref=row.ref,
        verb=row.verb,
        state=BulkState(row.state),
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        reason=row.reason,
        arguments=row.arguments,
        canary=row.canary,
        typed=row.typed,
        per_second=row.per_second,
        digest=row.digest,
        frozen_at=row.frozen_at,
        expires_at=row.expires_at,
        started_at=row.started_at,
        released_at=row.released_at,
        paused_at=row.paused_at,
        ended_at=row.ended_at,
        stands_by=row.stands_by,
        why=told(row.why),
        counts={state: counts.get(str(state), 0) for state in MemberState},
        possible=row.possible,
        arrived=arrived,
        now=api.now(),
    )


def _member(row: BulkMember, standing: CaseStanding | None) -> MemberFacts:
    return MemberFacts(
        position=row.position,
        handoff_ref=row.handoff_ref,
        run_ref=row.run_ref,
        version=row.version,
        step=row.step,
        tool=row.tool,
        title=row.title,
        business_ref=row.business_ref,
        state=MemberState(row.state),
        first=row.first,
        code=row.code,
        said=told(row.said),
        sent_at=row.sent_at,
        settled_at=row.settled_at,
        calls=row.calls,
        stays=row.stays,
        disposition=_disposition(standing),
        run_state="" if standing is None else str(standing.state),
    )


def _disposition(standing: CaseStanding | None) -> str:
    """What a closure report says of a case: settled, waived, or still open."""
    if standing is None:
        return "unknown"
    if standing.with_person or standing.state not in FINAL_RUN_STATES:
        return "open"
    return "waived" if standing.state is RunState.CLOSED_ACCEPTED else "settled"
