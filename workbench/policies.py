"""Who may do what, when: the only permission code of the product (security.md 3.3).

`why_not` answers for the switched-off button, for the form and for the API alike; its sentence is what each
of them shows. It decides on values only and writes nothing. What is possible at all is the engine's knowledge
(`sagas.api.obstacle`); this module adds who may, who works on it, what is frozen and how much is at stake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from sagas import api
from sagas.facts import (
    ActionFacts,
    Actor,
    ActorKind,
    FreezeFacts,
    HandoffFacts,
    RunFacts,
    SignoffFacts,
    SignoffRow,
)
from sagas.states import FINAL_RUN_STATES, ActionState, Direction, HandoffState, PermitState
from tools.contract import Level
from workbench.errors import Answer, Moment, Refusal, Sentence, in_words
from workbench.roles import Role, Scope, TokenKind

LEVELS = tuple(Level)
# From this risk on a signature comes with a note.
NOTE_FROM = Level.HIGH
# How long a login or a password stands for the person at the screen, where a signature is asked for.
CONFIRMED_FOR = timedelta(minutes=15)
# Figures in the run's own currency: at or above which amount a case counts as how much.
AMOUNT_BANDS = (
    (Decimal(100_000), Level.CRITICAL),
    (Decimal(10_000), Level.HIGH),
    (Decimal(1_000), Level.MEDIUM),
)


class Permission(StrEnum):
    """What a role may be allowed to do; each command names one."""

    READ = "read"
    START = "start"
    SETTLE = "settle"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    SIGN = "sign"
    WAIVE = "waive"
    STOP = "stop"
    BULK = "bulk"
    SHARE_VIEWS = "share_views"


SETTLERS = frozenset({Role.OPERATOR, Role.LEAD, Role.APPROVER})
HOLDERS: Mapping[Permission, frozenset[Role]] = {
    Permission.READ: SETTLERS | {Role.AUDITOR, Role.OWNER},
    Permission.START: frozenset({Role.OPERATOR, Role.LEAD, Role.OWNER}),
    Permission.SETTLE: SETTLERS,
    Permission.FREEZE: SETTLERS | {Role.ADMIN},
    Permission.UNFREEZE: frozenset({Role.LEAD, Role.ADMIN}),
    Permission.SIGN: frozenset({Role.APPROVER}),
    Permission.STOP: SETTLERS | {Role.ADMIN},
    Permission.WAIVE: frozenset({Role.APPROVER, Role.LEAD}),
    Permission.BULK: frozenset({Role.LEAD}),
    Permission.SHARE_VIEWS: frozenset({Role.LEAD, Role.ADMIN}),
}
# Verbs that take another right than that to settle cases.
PERMISSIONS: Mapping[str, Permission] = {
    "skip_compensation": Permission.WAIVE,
    "stop_and_compensate": Permission.STOP,
    "pause_compensation": Permission.STOP,
}
RISK_LIMIT: Mapping[Role, Level] = {
    Role.OPERATOR: Level.MEDIUM,
    Role.APPROVER: Level.MEDIUM,
    Role.LEAD: Level.HIGH,
}
# What decides over effects that stay or are made up for; the other verbs repeat or record what was decided. A stop only
# begins what a refusal would begin: what needs a signature or a person still does.
RISKY = frozenset({"compensate", "mark_acceptable", "accept_items", "skip_compensation"})
# The only way is back: nothing new goes out, and what needs a signature or a person still does.
FOR_AGENTS = frozenset({"stop_and_compensate"})
# Verbs on a run, whether a person is asked about it or not.
ANYTIME = frozenset(
    {"stop_and_compensate", "pause_compensation", "continue_compensation", "withdraw_signoff"}
)
# Remarks merge and a second person acts beside the first, so no claim stands in the way; a lead may take one over.
CLAIM_FREE = frozenset({"comment", "ask_for_case", "confirm_verdict", "decline_verdict"})

# What may be ordered for many cases at once, reads first. What makes up for effects, and what states a fact that nobody
# has read, is decided case by case.
IN_BULK = ("query_status", "retry", "mark_acceptable", "assign", "escalate")

ROLE_WORDS: Mapping[Role, object] = {
    Role.OPERATOR: pgettext_lazy("role", "operator"),
    Role.LEAD: pgettext_lazy("role", "lead"),
    Role.APPROVER: pgettext_lazy("role", "approver"),
    Role.AUDITOR: pgettext_lazy("role", "auditor"),
    Role.OWNER: pgettext_lazy("role", "owner"),
    Role.ADMIN: pgettext_lazy("role", "admin"),
}
LEVEL_WORDS: Mapping[Level, object] = {
    Level.LOW: pgettext_lazy("risk", "low"),
    Level.MEDIUM: pgettext_lazy("risk", "medium"),
    Level.HIGH: pgettext_lazy("risk", "high"),
    Level.CRITICAL: pgettext_lazy("risk", "critical"),
}


def why_not(
    *, actor: Actor, roles: frozenset[Role], facts: RunFacts, verb: str, step: str = ""
) -> Refusal | None:
    """The first reason why `actor` cannot do `verb` to the case in `facts` now; None when they can.

    Order: who they are, whether the case is open, who works on it, freezes, the engine's own obstacle, risk.
    """
    return (
        why_not_entitled(actor=actor, roles=roles, facts=facts, verb=verb)
        or _why_not_open(facts, verb)
        or _why_not_claimed(actor, roles, facts, verb)
        or _why_not_frozen(facts, verb, step)
        or _why_not_possible(facts, verb, step)
        or _why_not_second(actor, facts, verb)
        or _why_not_within_limit(actor, roles, facts, verb, step)
    )


def why_not_in_bulk(verb: str) -> Refusal | None:
    """Why a verb is not for many cases at once; None where it is."""
    if verb in IN_BULK:
        return None
    if verb in ("compensate", "skip_compensation", "stop_and_compensate", "redo"):
        text = _("Compensations go case by case: each has a plan and a signature of its own.")
    else:
        text = _("This is decided case by case.")
    return Refusal(answer=Answer.INVALID, code="not_in_bulk", sentence=Sentence(text))


def count_is_typed(facts: RunFacts, verb: str, step: str) -> bool:
    """Whether a bulk with this case asks its author to type the number of cases: customers or money are touched."""
    if verb not in ("retry", "mark_acceptable"):
        return False
    touched = bool(facts.customer or facts.amount) and any(_matters(action) for action in facts.actions)
    return touched or bool(api.preview(facts, verb, step=step).irreversible)


def permission_of(verb: str) -> Permission:
    """What somebody needs to be allowed for a verb on a case."""
    return PERMISSIONS.get(verb, Permission.SETTLE)


def why_not_entitled(*, actor: Actor, roles: frozenset[Role], facts: RunFacts, verb: str) -> Refusal | None:
    """Whether somebody may do this to this run at all: by their roles, or, to stop it, by having started it (S4-21).

    Once people are asked about a run it is for them to stop it.
    """
    if may_be_ordered_by_token(actor, verb) and facts.starter == actor.id and (open_handoff(facts) is None):
        return None
    return why_not_permitted(actor=actor, roles=roles, permission=permission_of(verb))


def may_be_ordered_by_token(actor: Actor, verb: str) -> bool:
    """Whether a verb is one that an agent may order of its own runs; whether it has the scope, its door asks."""
    return actor.kind is ActorKind.AGENT and verb in FOR_AGENTS


def why_not_permitted(*, actor: Actor, roles: frozenset[Role], permission: Permission) -> Refusal | None:
    """Whether somebody of these roles may at all, whatever the case. Tokens never hold a permission (E-3)."""
    if actor.kind is not ActorKind.HUMAN:
        text = _("Agents and integrations cannot decide. They may read next_allowed and ask a person.")
        return _forbidden("people_only", text)
    return _why_not_held(roles, permission)


def why_not_waive(roles: frozenset[Role]) -> Refusal | None:
    """Whether somebody of these roles may let an effect stand that could be made up for."""
    return _why_not_held(roles, Permission.WAIVE)


def _why_not_held(roles: frozenset[Role], permission: Permission) -> Refusal | None:
    if roles & HOLDERS[permission]:
        return None
    parts = {"roles": _words(roles), "holders": _words(HOLDERS[permission])}
    if not roles:
        return _forbidden(
            "no_role", _("Your account holds no role. These roles can do this: %(holders)s."), parts
        )
    text = _("Your role (%(roles)s) does not include this. These roles can do it: %(holders)s.")
    return _forbidden("role", text, parts)


def why_not_signoff(
    *, actor: Actor, roles: frozenset[Role], signoff: SignoffFacts, verb: str
) -> Refusal | None:
    """The first reason why `actor` cannot `sign` or `reject` this request now; None when they can.

    Whoever asked for it or worked on it may still say no, never yes: roles do not count there, persons do (E-1, E-2).
    """
    refusal = why_not_permitted(actor=actor, roles=roles, permission=Permission.SIGN)
    if refusal is None and verb == "sign":
        refusal = why_not_independent(actor_id=actor.id, signoff=signoff)
    refusal = refusal or _why_not_undecided(signoff)
    if refusal is not None or verb != "sign":
        return refusal
    if not signoff.unchanged:
        text = _("What would run has changed since it was asked. No signature was taken.")
        return _conflict("call_changed", text)
    return _why_not_frozen(signoff.run, "retry" if signoff.forward else "compensate", signoff.action.step)


def why_not_independent(*, actor_id: str, signoff: SignoffFacts | SignoffRow) -> Refusal | None:
    """Whether this person had a hand in what is to be signed, themselves or through a token they answer for."""
    requesters = signoff.permit.requesters if isinstance(signoff, SignoffFacts) else signoff.requesters
    if signoff.asked_by and accountable(signoff.asked_by) == actor_id:
        return _forbidden("own_request", _("You asked for it, someone else must sign."))
    for one, name in requesters:
        if one == actor_id:
            return _forbidden("own_request", _("You worked on it, someone else must sign."))
        if accountable(one) == actor_id:
            text = _("%(agent)s acts for you and worked on it, someone else must sign.")
            return _forbidden("own_request", text, {"agent": name})
    return None


def is_fresh(*, confirmed_at: datetime | None, now: datetime) -> bool:
    """Whether somebody has shown lately enough who they are to sign."""
    return confirmed_at is not None and now - confirmed_at <= CONFIRMED_FOR


def unconfirmed() -> Refusal:
    """Why a signature is not taken from a session that is not fresh."""
    text = _("Confirm it is you: your last login was more than %(minutes)s minutes ago.")
    parts = {"minutes": int(CONFIRMED_FOR.total_seconds() // 60)}
    return Refusal(answer=Answer.UNCONFIRMED, code="unconfirmed", sentence=Sentence(text, parts))


def accountable(actor_id: str) -> str:
    """The person behind an actor: a token answers to its owner (`kind:owner/name`), a person to themselves."""
    kind, colon, rest = actor_id.partition(":")
    owner, slash, __ = rest.partition("/")
    return owner if colon and slash and kind in tuple(TokenKind) else actor_id


def signoff_risk(level: Level, amount: str) -> Level:
    """How much is at stake in a signature: the contracts' level or the amount's, whichever is higher."""
    return _highest([level, amount_level(amount)])


def note_needed(risk: Level) -> bool:
    """Whether a signature at this risk says why."""
    return LEVELS.index(risk) >= LEVELS.index(NOTE_FROM)


def why_not_scope(*, scopes: frozenset[str], scope: Scope) -> Refusal | None:
    """Whether a token may ask for this at all. No scope decides anything (E-3)."""
    if scope in scopes:
        return None
    return _forbidden("scope", _("This token does not have the scope %(scope)s."), {"scope": scope})


def sees_all_runs(*, actor: Actor, roles: frozenset[Role]) -> bool:
    """Whether every run exists for this reader; for a token only those do that it started itself."""
    return actor.kind is ActorKind.HUMAN and bool(roles & HOLDERS[Permission.READ])


def risk(facts: RunFacts, verb: str = "", step: str = "") -> Level:
    """How much is at stake: the highest of contract levels, amount band, irreversible effect in the plan."""
    at_stake = [action.contract.level for action in facts.actions if _matters(action)]
    planned = bool(verb) and bool(api.preview(facts, verb, step=step).irreversible)
    return _highest([*at_stake, amount_level(facts.amount), Level.HIGH if planned else Level.LOW])


def amount_level(amount: str) -> Level:
    """The band of an amount; no amount, or one that is no number, says nothing."""
    try:
        figure = abs(Decimal(amount)) if amount else Decimal(0)
    except InvalidOperation:
        return Level.LOW
    return next((level for least, level in AMOUNT_BANDS if figure >= least), Level.LOW)


def limit(roles: frozenset[Role]) -> Level | None:
    """Up to which risk somebody of these roles decides alone."""
    limits = [RISK_LIMIT[role] for role in roles if role in RISK_LIMIT]
    return _highest(limits) if limits else None


def holder(facts: RunFacts) -> HandoffFacts | None:
    """The handoff if somebody's claim on it is in force at the facts' own time."""
    handoff = facts.handoff
    if handoff is None or handoff.state is not HandoffState.CLAIMED or not handoff.claimed_by:
        return None
    in_force = handoff.claim_until is not None and handoff.claim_until > facts.now
    return handoff if in_force else None


def why_not_lift(*, actor: Actor, freeze: FreezeFacts) -> Refusal | None:
    """Why this person may not be the second of the two who lift a freeze; None where nobody has asked yet."""
    if freeze.lift_asked_at is None or freeze.lift_asked_by != actor.id:
        return None
    text = _("You asked to lift this freeze. It takes a second person; until then it stays in force.")
    return Refusal(answer=Answer.FORBIDDEN, code="own_word", sentence=Sentence(text))


def freeze_on(facts: RunFacts, verb: str, step: str = "") -> FreezeFacts | None:
    """The freeze that stops `verb` on this case, if any: status queries and remarks always go on (law 12)."""
    stopped_by = _scopes_that_stop(verb, facts.direction)
    covers = {"all", f"workflow:{facts.definition.name}", f"team:{facts.team}"} | {
        f"tool:{tool}" for tool in _tools(facts, step)
    }
    return next((f for f in facts.freezes if f.scope in stopped_by and f.applies_to in covers), None)


def _why_not_undecided(signoff: SignoffFacts) -> Refusal | None:
    permit, now = signoff.permit, signoff.run.now
    if permit.state is PermitState.WITHDRAWN:
        text = _("This request is void: what it was asked for has changed. No signature was taken.")
        return _conflict("void", text)
    if permit.state in (PermitState.GRANTED, PermitState.CONSUMED, PermitState.REJECTED):
        signed = permit.state is not PermitState.REJECTED
        text = (
            _("%(who)s signed this at %(at)s. No second signature was taken.")
            if signed
            else _("%(who)s rejected this at %(at)s. No signature was taken.")
        )
        at = Moment(permit.decided_at or now, now, seconds=True)
        return _conflict("decided", text, {"who": permit.decided_by_name, "at": at})
    if permit.state is PermitState.EXPIRED or permit.expires_at <= now:
        at = Moment(permit.expires_at, now, seconds=True)
        sentence = Sentence(_("Expired %(at)s. Nothing ran."), {"at": at})
        return Refusal(answer=Answer.EXPIRED, code="request_expired", sentence=sentence)
    return None


def open_handoff(facts: RunFacts) -> HandoffFacts | None:
    """The handoff that is not settled yet, if a person is asked about the run."""
    handoff = facts.handoff
    return None if handoff is None or handoff.state is HandoffState.RESOLVED else handoff


def _why_not_open(facts: RunFacts, verb: str) -> Refusal | None:
    handoff = facts.handoff
    if verb in ANYTIME and facts.state not in FINAL_RUN_STATES:
        return None
    if handoff is None:
        return _conflict("no_handoff", _("This run does not wait for a person."))
    # A remark may still be added to a closed case, and it may be reopened as a new one; nothing else may.
    if (
        verb not in ("comment", "reopen")
        and handoff.state is HandoffState.RESOLVED
        and handoff.resolved_at is not None
    ):
        text = _("This case was closed at %(at)s. Nothing can be changed.")
        return _conflict("closed", text, {"at": Moment(handoff.resolved_at, facts.now)})
    return None


def _why_not_claimed(actor: Actor, roles: frozenset[Role], facts: RunFacts, verb: str) -> Refusal | None:
    held = holder(facts)
    if verb == "release" and (held is None or held.claimed_by != actor.id):
        return _conflict("not_yours", _("You do not hold this case, so there is nothing to release."))
    if verb == "ask_for_case" and held is None:
        return _conflict("not_held", _("Nobody works on this case. You can claim it."))
    if verb == "ask_for_case" and held is not None and held.claimed_by == actor.id:
        return _conflict("yours", _("You hold this case yourself."))
    if held is None or held.claimed_by == actor.id or verb in CLAIM_FREE:
        return None
    if verb in ("claim", "assign") and Role.LEAD in roles:
        return None
    parts = {"who": held.claimed_by_name, "since": Moment(held.claimed_at or facts.now, facts.now)}
    return _conflict("held", _("%(who)s works on this since %(since)s."), parts)


def _why_not_frozen(facts: RunFacts, verb: str, step: str) -> Refusal | None:
    freeze = freeze_on(facts, verb, step)
    if freeze is None:
        return None
    parts = {"who": freeze.by, "since": Moment(freeze.at, facts.now), "why": freeze.reason}
    text = _("Frozen since %(since)s by %(who)s: %(why)s. It can run after the freeze is lifted.")
    return Refusal(answer=Answer.FROZEN, code="frozen", sentence=Sentence(text, parts))


def _why_not_possible(facts: RunFacts, verb: str, step: str) -> Refusal | None:
    obstacle = api.obstacle(facts, verb, step=step)
    if obstacle is None:
        return None
    return Refusal(answer=Answer.CONFLICT, code=obstacle.code, sentence=in_words(obstacle))


def _why_not_second(actor: Actor, facts: RunFacts, verb: str) -> Refusal | None:
    """Whether this person, or somebody who acts for them, stated what is to be confirmed or worked on it (E-1, E-2).

    They may decline it (E-16).
    """
    waits = facts.proposal
    if verb != "confirm_verdict" or waits is None:
        return None
    if accountable(waits.proposed_by) == actor.id:
        return _forbidden("own_proposal", _("You stated it, somebody else must confirm it."))
    for one, name in waits.shapers:
        if one == actor.id:
            return _forbidden("own_proposal", _("You worked on it, somebody else must confirm it."))
        if accountable(one) == actor.id:
            text = _("%(agent)s acts for you and worked on it, somebody else must confirm it.")
            return _forbidden("own_proposal", text, {"agent": name})
    return None


def _why_not_within_limit(
    actor: Actor, roles: frozenset[Role], facts: RunFacts, verb: str, step: str
) -> Refusal | None:
    if actor.kind is not ActorKind.HUMAN:
        return None  # what it may order at all, it may order of its own runs
    if verb == "confirm_verdict" and facts.proposal is not None:
        verb = facts.proposal.verb
    if verb not in RISKY:
        return None
    at_stake, allowed = risk(facts, verb, step), limit(roles)
    if allowed is not None and LEVELS.index(at_stake) <= LEVELS.index(allowed):
        return None
    able = [role for role, upto in RISK_LIMIT.items() if LEVELS.index(at_stake) <= LEVELS.index(upto)]
    parts = {
        "risk": LEVEL_WORDS[at_stake],
        "limit": LEVEL_WORDS[allowed or Level.LOW],
        "holders": _words(able),
    }
    if able:
        text = _("The risk is %(risk)s and your role decides up to %(limit)s. These roles can: %(holders)s.")
    else:
        text = _("The risk is %(risk)s and your role decides up to %(limit)s. No role decides this alone.")
    return _forbidden("risk_limit", text, parts)


def _scopes_that_stop(verb: str, direction: Direction) -> frozenset[str]:
    if verb in ("compensate", "continue_compensation") or (verb == "resume" and direction is Direction.UNDO):
        return frozenset({"writes", "everything"})
    if verb in {"retry", "edit_and_retry", "redo", "resume"}:
        return frozenset({"forward", "writes", "everything"})
    if verb in {
        "resolve_happened",
        "resolve_not_happened",
        "mark_acceptable",
        "accept_items",
        "skip_compensation",
        "confirm_verdict",
    }:
        return frozenset({"everything"})
    # To stop is never held up: nothing new goes out, and what would make up for it waits for the end of the freeze.
    return frozenset()


def _tools(facts: RunFacts, step: str) -> Iterable[str]:
    for action in facts.actions:
        if not step or action.step == step:
            yield action.tool
            if action.compensation is not None:
                yield action.compensation.tool


def _matters(action: ActionFacts) -> bool:
    idle = {ActionState.NOT_STARTED, ActionState.SKIPPED, ActionState.SUPERSEDED, ActionState.COMPENSATED}
    return action.contract.has_effect and action.state not in idle


def _highest(levels: Iterable[Level]) -> Level:
    return max(levels, key=LEVELS.index, default=Level.LOW)


def _words(roles: Iterable[Role]) -> _RoleList:
    return _RoleList(tuple(role for role in Role if role in set(roles)))


class _RoleList(tuple[Role, ...]):
    """Role names in the reader's language, in the order of the vocabulary."""

    def __new__(cls, roles: tuple[Role, ...]) -> _RoleList:
        return super().__new__(cls, roles)

    def __str__(self) -> str:
        return str(_(", ")).join(str(ROLE_WORDS[role]) for role in self)


def _forbidden(code: str, text: object, parts: Mapping[str, object] | None = None) -> Refusal:
    return Refusal(answer=Answer.FORBIDDEN, code=code, sentence=Sentence(text, parts or {}))


def _conflict(code: str, text: object, parts: Mapping[str, object] | None = None) -> Refusal:
    return Refusal(answer=Answer.CONFLICT, code=code, sentence=Sentence(text, parts or {}))
