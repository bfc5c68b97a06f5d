"""The frozen list: which cases a verb would go to, with which calls, and who is left out for which reason.

Nothing is sent here, and nothing of a list changes once it is made: a case that turns up later is not in it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.errors import NotFound
from sagas.facts import Actor, RunFacts
from tools.canonical import fingerprint
from workbench import policies
from workbench.commands import COMMANDS, Kind, fields_of, store_bulk
from workbench.errors import Answer, Refusal, Refused, Sentence, kept
from workbench.models import Bulk, BulkMember, User
from workbench.models.bulk import MemberState
from workbench.policies import Permission
from workbench.roles import Role

MOST_CASES = 1000
CANARY = 2
LIFE = timedelta(minutes=15)
AT_ONCE = frozenset({"query_status"})
"""Verbs that go to every step of a case that they are possible on, each with a call of its own."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A case as somebody picked it: its reference and the version that they saw. None: as it is now."""

    handoff_ref: str
    version: int | None


def freeze_list(*, actor: Actor, person: User | None, verb: str, cases: Sequence[Chosen]) -> str:
    """Store the list; returns its reference. Raises Refused, with an entry: no right, verb or number for it."""
    roles = frozenset() if person is None else person.current_roles()
    refusal = policies.why_not_permitted(actor=actor, roles=roles, permission=Permission.BULK)
    refusal = refusal or policies.why_not_in_bulk(verb) or _why_too_many(cases)
    if refusal is not None:
        after = {"asked": f"bulk {verb}"[:80], "code": refusal.code, "sentence": refusal.sentence.plain()}
        with api.transaction():
            api.log(name="request.refused", actor=actor, after=after)
        raise Refused(refusal)
    now = api.now()
    possible = dict.fromkeys(policies.IN_BULK, 0)
    judged = [_judged(verb, one, actor, roles, possible) for one in _once(cases)]
    included = [row for row in judged if row.member.state == MemberState.WAITING]
    row = Bulk(
        ref=f"BK-{secrets.token_hex(4)}",
        verb=verb,
        actor_id=actor.id,
        actor_name=actor.name,
        actor_role=actor.role,
        canary=min(CANARY, len(included)),
        typed=len(included) if any(one.typed for one in included) else None,
        possible=possible,
        likenesses=list(api.likenesses([one.member.handoff_ref for one in judged])),
        frozen_at=now,
        expires_at=now + LIFE,
    )
    members = [one.member for one in _in_order(judged)]
    row.digest = fingerprint([verb, [[m.handoff_ref, m.version, m.step, m.state, m.calls] for m in members]])
    store_bulk(row, members)
    return row.ref


def shown_calls(facts: RunFacts, verb: str, step: str) -> tuple[list[Any], list[str]]:
    """The calls that a verb makes, as they are stored and compared, and what stays."""
    planned = api.preview(facts, verb, step=step)
    calls = [
        {
            "line": call.line,
            "key": call.key,
            "text": call.text,
            "body": call.body,
            "writes": call.changes_state,
        }
        for call in planned.calls
    ]
    return calls, [*planned.irreversible, *planned.stays]


@dataclass(frozen=True, kw_only=True)
class _Judged:
    member: BulkMember
    typed: bool = False


def _why_too_many(cases: Sequence[Chosen]) -> Refusal | None:
    if len(cases) <= MOST_CASES:
        return None
    text = _("At most %(most)s cases go at once. Nothing was sent.")
    return Refusal(answer=Answer.INVALID, code="too_many", sentence=Sentence(text, {"most": MOST_CASES}))


def _once(cases: Iterable[Chosen]) -> Iterator[Chosen]:
    seen: set[str] = set()
    for one in cases:
        if one.handoff_ref not in seen:
            seen.add(one.handoff_ref)
            yield one


def _in_order(judged: Iterable[_Judged]) -> list[_Judged]:
    """Those that go, as they were picked; then those that are left out."""
    return sorted(judged, key=lambda one: one.member.state != MemberState.WAITING)


def _judged(
    verb: str, one: Chosen, actor: Actor, roles: frozenset[Role], possible: dict[str, int]
) -> _Judged:
    try:
        if not one.handoff_ref.isascii() or not one.handoff_ref.isprintable():
            raise NotFound("handoff", "that is none")
        facts = api.handoff_facts(one.handoff_ref)
    except NotFound:
        text = Sentence(_("There is no such case."))
        missing = BulkMember(handoff_ref=one.handoff_ref[:100], version=0)
        return _left_out(
            missing, Refusal(answer=Answer.NOT_FOUND, code="no_such_case", sentence=text), api.now()
        )
    member = BulkMember(
        handoff_ref=one.handoff_ref,
        run_ref=facts.ref,
        version=facts.version if one.version is None else one.version,
        title=facts.title or facts.definition.title,
        business_ref=facts.business_ref,
    )
    if member.version != facts.version:
        text = Sentence(_("This case changed while you were reading. Nothing was sent."))
        return _left_out(member, Refusal(answer=Answer.CONFLICT, code="stale", sentence=text), facts.now)
    for other in possible:
        possible[other] += _step(facts, other, actor, roles)[1] is None
    member.step, refusal = _step(facts, verb, actor, roles)
    if member.step:
        member.tool = facts.action(member.step).tool
    if refusal is not None:
        return _left_out(member, refusal, facts.now)
    member.state = MemberState.WAITING
    member.calls, member.stays = shown_calls(facts, verb, member.step)
    return _Judged(member=member, typed=policies.count_is_typed(facts, verb, member.step))


def _step(facts: RunFacts, verb: str, actor: Actor, roles: frozenset[Role]) -> tuple[str, Refusal | None]:
    """The first step that the verb is possible on, "" where it takes several at once; else the first one with the
    reason why not.
    """
    by_step = any(field.kind is Kind.STEP for field in fields_of(COMMANDS[verb]))
    steps = (api.targets(facts, verb) if by_step else ()) or ("",)
    found = [
        (
            step,
            policies.why_not(actor=actor, roles=roles, facts=facts, verb=verb, step=step)
            or _why_alone(facts, verb, step),
        )
        for step in steps
    ]
    able = [one for one in found if one[1] is None]
    if verb in AT_ONCE and len(able) > 1:
        return "", None
    return able[0] if able else found[0]


def _why_alone(facts: RunFacts, verb: str, step: str) -> Refusal | None:
    """What takes a second person is not settled in passing."""
    planned = api.preview(facts, verb, step=step)
    if not (planned.needs_second or planned.needs_signoff):
        return None
    text = _("This takes a second person. Each such case is decided by itself.")
    return Refusal(answer=Answer.CONFLICT, code="takes_two", sentence=Sentence(text))


def _left_out(member: BulkMember, refusal: Refusal, now: datetime) -> _Judged:
    member.state, member.code, member.said = MemberState.LEFT_OUT, refusal.code, kept(refusal.sentence)
    member.settled_at = now
    return _Judged(member=member)
