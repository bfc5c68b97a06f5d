"""The one way a command runs, whichever door it comes through.

0. A person who gives more commands than hands can is told to wait.
1. Arguments are read; the receipt of an earlier run answers at once.
2. Evidence phase: a verb that needs a read makes it here, outside any transaction.
3. One durable transaction: the command id is locked and its receipt looked for again, the desk locks the
   run, rights, version, preview and evidence are judged on the facts under lock, the verb runs, the receipt
   is kept.
   A refusal leaves its entry and nothing else.
4. After the commit the bell is rung, best effort. Must not know any verb by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from django.db import OperationalError
from django.utils.translation import gettext_lazy as _

from sagas import api, faultpoints
from sagas.errors import NotAllowed, NotFound
from sagas.facts import Actor, ActorKind, Looked, RunFacts
from workbench import policies
from workbench.commands import _plans, _previews, _receipts, _signoffs, _staleness, claim, pace, people
from workbench.commands._arguments import Arguments, step_of
from workbench.commands._command import Command, SignoffCommand, SystemCommand
from workbench.commands._reading import read, step_in, unknown_step
from workbench.commands._receipts import StillRunning
from workbench.commands._registry import COMMANDS, SIGNOFF_COMMANDS, SYSTEM_COMMANDS
from workbench.commands._result import Change, Order, Result, refused
from workbench.errors import Answer, Moment, Refusal, Refused, Sentence, refusal_of
from workbench.models import Preview as StoredPreview
from workbench.models import User
from workbench.policies import Permission
from workbench.roles import Role

LOCK_TIMEOUT = "55P03"
# Where a person is at the other end; what a bulk does for its author has a pace of its own.
DOORS_OF_HANDS = ("web", "api")
HIGHEST_VERSION = 2_147_483_647
_KNOWN = frozenset({*COMMANDS, *SIGNOFF_COMMANDS, *SYSTEM_COMMANDS})
# What ids and references look like; anything else names nothing and is not stored.
NAME = re.compile(r"[\x21-\x7e]{1,100}")

type _OnRun = type[Command[Any] | SignoffCommand[Any]]


def dispatch(
    *,
    actor: Actor,
    person: User | None,
    verb: str,
    handoff_ref: str = "",
    signoff_ref: str = "",
    run_ref: str = "",
    command_id: str,
    saw_version: int | None = None,
    arguments: Mapping[str, object],
    preview_id: str = "",
    door: str,
    claims: bool = True,
    confirmed: bool = True,
) -> Result:
    """Run `verb` as `actor`; every outcome is a Result, none an exception.

    `claims` False: it takes no claim. `confirmed` False: the session's person has not shown lately who they are.
    """
    order = Order(
        verb=verb if verb in _KNOWN else "",
        handoff_ref=handoff_ref if NAME.fullmatch(handoff_ref) else "",
        signoff_ref=signoff_ref if NAME.fullmatch(signoff_ref) else "",
        run_ref=run_ref if NAME.fullmatch(run_ref) else "",
        command_id=command_id if NAME.fullmatch(command_id) else "",
        # A version that cannot be is one that nobody saw.
        saw_version=saw_version if saw_version is None or 0 <= saw_version <= HIGHEST_VERSION else 0,
        arguments=arguments,
        preview_id=preview_id,
        door=door,
        claims=claims,
        confirmed=confirmed,
    )
    wait = pace.of_commands(actor) if person is not None and door in DOORS_OF_HANDS else None
    if wait is not None:
        return (
            _without_run(actor, order, wait.refusal)
            if wait.first
            else refused(order, wait.refusal, facts=None)
        )
    faultpoints.reach("command.begun")
    try:
        return _answered(actor, person, order)
    except StillRunning:
        text = _("The same request is still running. Nothing was sent a second time.")
        return refused(order, Refusal(answer=Answer.BUSY, code="busy", sentence=Sentence(text)), facts=None)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != LOCK_TIMEOUT:
            raise
        text = _("Others are working on this case right now. Nothing was sent. Try again in a moment.")
        return refused(order, Refusal(answer=Answer.BUSY, code="busy", sentence=Sentence(text)), facts=None)
    except NotFound as error:
        missing = _("There is no such sign-off.") if error.what == "sign-off" else _("There is no such case.")
        return _without_run(actor, order, _not_found("no_such_case", missing))


def _answered(actor: Actor, person: User | None, order: Order) -> Result:
    if order.verb in SYSTEM_COMMANDS:
        command = SYSTEM_COMMANDS[order.verb]
        return api.retrying(lambda: _on_system(command, actor, person, order))
    on_run = COMMANDS.get(order.verb) or SIGNOFF_COMMANDS.get(order.verb)
    if on_run is None or (order.run_ref and not (issubclass(on_run, Command) and on_run.anytime)):
        return _without_run(actor, order, _not_found("no_such_verb", _("There is no such command.")))
    if actor.kind is not ActorKind.HUMAN and not policies.may_be_ordered_by_token(actor, order.verb):
        # Before anything is looked up: a token does not learn from here which cases there are.
        refusal = policies.why_not_permitted(actor=actor, roles=frozenset(), permission=Permission.SETTLE)
        if refusal is not None:
            return _without_run(actor, order, refusal)
    return _on_run(on_run, actor, person, order)


def _on_run(command: _OnRun, actor: Actor, person: User | None, order: Order) -> Result:
    try:
        result = _looked_and_run(command, actor, person, order)
    except NotAllowed as error:
        # The desk has seen more than the policy did. Its transaction is gone; the refusal gets its own.
        refusal = refusal_of(error.obstacle)
        result = api.retrying(lambda: _transact(command, actor, person, order, refusal, None))
    if result.status is Answer.ACCEPTED and result.facts is not None:
        api.ring(result.facts.ref)
    return result


def _looked_and_run(command: _OnRun, actor: Actor, person: User | None, order: Order) -> Result:
    """Steps 2 and 3. Raises NotAllowed."""
    parsed = read(command, order)
    if _plans.is_plan(order.preview_id) and _nothing_against(command, actor, person, order, parsed):
        # A plan rests on what was read for it: that is read once more before it runs.
        parsed = _plans.why_fallen(order, _facts(order)) or parsed
    looked = _look(command, order, parsed) if _worth_a_look(command, actor, person, order, parsed) else None
    try:
        return api.retrying(lambda: _transact(command, actor, person, order, parsed, looked))
    except _LookFirst:
        # It was refusable a moment ago and is not any more: look after all.
        late = _look(command, order, parsed)
        return api.retrying(lambda: _transact(command, actor, person, order, parsed, late))


class _LookFirst(Exception):
    """Nothing speaks against the command, but its evidence is missing."""


def _transact(
    command: _OnRun,
    actor: Actor,
    person: User | None,
    order: Order,
    parsed: Arguments | Refusal,
    looked: Looked | None,
) -> Result:
    """Step 3. Raises StillRunning, _LookFirst, NotAllowed and NotFound; then nothing was written."""
    with api.transaction():
        faultpoints.mark("command")
        _receipts.lock(actor, order.command_id)
        try:
            if (receipt := _receipts.earlier(actor, order)) is not None:
                return _receipts.replay(receipt, order, _facts(order))
        except Refused as error:
            parsed = error.refusal
        with _desk(command, actor, person, order, parsed) as desk:
            roles = _roles(person)
            judged = _judge(command, actor, roles, order, parsed, desk, looked)
            if judged is not None:
                refusal, changed = judged
                desk.refuse(order.verb, refusal.code, refusal.sentence.plain(), step=step_of(parsed))
                reads = policies.sees_all_runs(actor=actor, roles=roles)
                return refused(order, refusal, facts=desk.facts if reads else None, changed=changed)
            _run(command, order, parsed, desk, looked)
        facts = _facts(order)
        receipt = _receipts.keep(actor, order, scheduled=command.schedules, facts=facts)
        said = command.said if issubclass(command, SignoffCommand) else _kept(order, facts)
        return _accepted(order, receipt.at, scheduled=command.schedules, facts=facts, said=said)


def _desk(
    command: _OnRun, actor: Actor, person: User | None, order: Order, parsed: Arguments | Refusal
) -> AbstractContextManager[api.Desk]:
    """The run that the command is about, to be entered under its lock. Raises NotFound."""
    said: dict[str, Any] = {
        "command_id": order.command_id,
        "reason": getattr(parsed, "reason", ""),
        "reason_code": getattr(parsed, "reason_code", ""),
        "saw_version": order.saw_version,
    }
    if issubclass(command, SignoffCommand):
        return api.signoff_desk(order.signoff_ref, actor=_signoffs.signatory(actor, person), **said)
    if person is not None and command.holds_right:
        people.hold(person)
    if order.run_ref:
        return api.run_desk(order.run_ref, actor=actor, **said)
    return api.desk(order.handoff_ref, actor=actor, **said)


def _facts(order: Order) -> RunFacts:
    """The fresh facts of the run that an order is about. Raises NotFound."""
    if order.verb in SIGNOFF_COMMANDS:
        return api.signoff_facts(order.signoff_ref).run
    if order.run_ref:
        return api.run_facts(order.run_ref)
    return api.handoff_facts(order.handoff_ref)


def _run(command: _OnRun, order: Order, parsed: Any, desk: api.Desk, looked: Looked | None) -> None:
    if issubclass(command, SignoffCommand):
        return command.run(desk, ref=order.signoff_ref)
    if command.looks and looked is None:
        raise _LookFirst
    if command.claims and order.claims and policies.open_handoff(desk.facts) is not None:
        desk.claim(minutes=claim.MINUTES)
    return command.run(desk, arguments=parsed, looked=looked)


def _judge(
    command: _OnRun,
    actor: Actor,
    roles: frozenset[Role],
    order: Order,
    parsed: Arguments | Refusal,
    desk: api.Desk,
    looked: Looked | None,
) -> tuple[Refusal, tuple[Change, ...]] | None:
    """The first thing that speaks against the command, and what changed where that explains it."""
    if not issubclass(command, SignoffCommand):
        return _judge_on_handoff(command, actor, roles, order, parsed, desk.facts, looked)
    refusal = _signoffs.judge(command, actor, roles, order, parsed, desk)
    return None if refusal is None else (refusal, ())


def _judge_on_handoff(
    command: type[Command[Any]],
    actor: Actor,
    roles: frozenset[Role],
    order: Order,
    parsed: Arguments | Refusal,
    facts: RunFacts,
    looked: Looked | None,
) -> tuple[Refusal, tuple[Change, ...]] | None:
    """The same for a handoff's verb.

    Rights come first, then what others did meanwhile, then mistakes in the form, then the rules of the case.
    """
    refusal = policies.why_not_entitled(actor=actor, roles=roles, facts=facts, verb=order.verb)
    if refusal is not None:
        return refusal, ()
    step = step_in(parsed, facts)
    preview = _previews.stored(order.preview_id, actor)
    refusal = policies.why_not(actor=actor, roles=roles, facts=facts, verb=order.verb, step=step)
    stale = _previews.why_stale(command, order, facts, preview)
    meanwhile = refusal if refusal is not None and refusal.code == "held" else stale
    if meanwhile is not None:
        return meanwhile, _staleness.changes(facts, preview) if stale else ()
    if isinstance(parsed, Refusal):
        return parsed, ()
    refusal = (
        unknown_step(facts, parsed) or refusal or _why_unusable(command, actor, order, facts, preview, parsed)
    )
    if refusal is None and (looked is not None or not command.looks):
        refusal = command.refusal(facts=facts, roles=roles, arguments=parsed, looked=looked)
    return None if refusal is None else (refusal, ())


def _why_unusable(
    command: type[Command[Any]],
    actor: Actor,
    order: Order,
    facts: RunFacts,
    preview: StoredPreview | None,
    parsed: Arguments,
) -> Refusal | None:
    """People order what they were shown; an agent has no page, and may order nothing but a stop."""
    if actor.kind is not ActorKind.HUMAN:
        return None
    return _previews.why_unusable(command, order, facts, preview, parsed)


def _worth_a_look(
    command: _OnRun, actor: Actor, person: User | None, order: Order, parsed: Arguments | Refusal
) -> bool:
    """Whether nothing but missing evidence speaks against the command: no call for what is refused anyway."""
    looks = issubclass(command, Command) and command.looks
    return looks and _nothing_against(command, actor, person, order, parsed)


def _nothing_against(
    command: _OnRun, actor: Actor, person: User | None, order: Order, parsed: Arguments | Refusal
) -> bool:
    """Whether nothing speaks against the command that can be told without reading the outside world."""
    if issubclass(command, SignoffCommand) or isinstance(parsed, Refusal):
        return False
    facts = _facts(order)
    try:
        if _receipts.earlier(actor, order) is not None:
            return False
    except Refused:
        return False
    return _judge_on_handoff(command, actor, _roles(person), order, parsed, facts, None) is None


def _look(command: _OnRun, order: Order, parsed: Arguments | Refusal) -> Looked | None:
    if issubclass(command, SignoffCommand) or isinstance(parsed, Refusal):
        return None
    facts = _facts(order)
    about = command.target(facts, parsed)
    return api.look(facts, about.verb, step=about.step, reference=about.reference)


def _on_system(command: type[SystemCommand[Any]], actor: Actor, person: User | None, order: Order) -> Result:
    """Freeze and unfreeze: the same steps without a case."""
    parsed = read(command, order)
    with api.transaction():
        faultpoints.mark("command")
        _receipts.lock(actor, order.command_id)
        try:
            if (receipt := _receipts.earlier(actor, order)) is not None:
                return _receipts.replay(receipt, order, None)
        except Refused as error:
            parsed = error.refusal
        refusal = policies.why_not_permitted(actor=actor, roles=_roles(person), permission=command.permission)
        if refusal is None:
            refusal = (
                parsed if isinstance(parsed, Refusal) else command.refusal(actor=actor, arguments=parsed)
            )
        if refusal is not None:
            return _without_run(actor, order, refusal)
        command.run(actor=actor, arguments=parsed, command_id=order.command_id)
        receipt = _receipts.keep(actor, order, scheduled=False, facts=None)
        return _accepted(order, receipt.at, scheduled=False, facts=None)


def _not_found(code: str, text: object) -> Refusal:
    return Refusal(answer=Answer.NOT_FOUND, code=code, sentence=Sentence(text))


def _roles(person: User | None) -> frozenset[Role]:
    return frozenset() if person is None else person.current_roles()


def _accepted(
    order: Order, at: datetime, *, scheduled: bool, facts: RunFacts | None, said: Any = None
) -> Result:
    queued = _("Accepted at %(at)s and queued. What comes of it will show here.")
    text = said or (queued if scheduled else _("Recorded at %(at)s."))
    sentence = Sentence(text, {"at": Moment(at, seconds=True)})
    return Result(
        status=Answer.ACCEPTED,
        verb=order.verb,
        command_id=order.command_id,
        code=order.verb,
        sentence=sentence,
        facts=facts,
        saw_version=order.saw_version,
        scheduled=scheduled,
        at=at,
    )


def _kept(order: Order, facts: RunFacts) -> Any:
    """What is said of a verdict that waits for a second person; None for everything else."""
    waits = facts.proposal
    if waits is None or waits.verb != order.verb:
        return None
    return _("Kept at %(at)s. It counts once a second person confirms it.")


def _without_run(actor: Actor, order: Order, refusal: Refusal) -> Result:
    """Refuse where there is no case to write the refusal's entry to."""
    after = {
        "verb": order.verb,
        "target": order.target,
        "code": refusal.code,
        "sentence": refusal.sentence.plain(),
        "door": order.door,
    }
    api.log(name="command.refused", actor=actor, after=after, command_id=order.command_id)
    return refused(order, refusal, facts=None)
