"""Each compensation of a recovery plan as it will run: the call, what it rests on as just read, what it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sagas.facts import ActionFacts, ConditionCheck, PlanLook, PlannedCall, RunFacts
from tools.contract import Who
from workbench.commands import Fallen, Plan
from workbench.web.presenters import dry_run, signoff_sheet, text, words
from workbench.web.presenters.checks import Check
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Part:
    """One compensation as it will run: `number` in running order, `signed` if it waits for a signature."""

    number: int
    step: str
    tool: str
    line: SafeString
    body: SafeString | None
    key: SafeString
    kind: Words
    about: SafeString
    changes: tuple[signoff_sheet.Changed, ...]
    leaves: SafeString | None
    checks: tuple[Check, ...]
    checked: str
    dry_run: Check
    signed: bool


@dataclass(frozen=True, kw_only=True)
class Fell:
    """A precondition that has fallen: what it says, as it was read for the plan and as it reads now."""

    step: str
    says: SafeString
    then: SafeString
    now: SafeString
    icon: str


def fell(fallen: Fallen, clock: Clock) -> Fell:
    """One fallen precondition in words."""
    then, now = fallen.then, fallen.now
    return Fell(
        step=f"{fallen.step}[{fallen.item}]" if fallen.item else fallen.step,
        says=text.inert(now.text, 300),
        then=_read(_("so"), then, clock),
        now=_read(_("not known") if now.met is None else _("not so"), now, clock),
        icon="unk" if now.met is None else "bad",
    )


def _read(word: str, check: ConditionCheck, clock: Clock) -> SafeString:
    says = _("{word}: {evidence}, read {at}") if check.evidence else _("{word}, read {at}")
    return text.say(says, word=word, evidence=text.inert(check.evidence, 160), at=clock.time(check.read_at))


def stops_at_once(plan: Plan) -> bool:
    """Whether what was just read keeps the first call from being sent."""
    first = next(iter(plan.looks), None)
    if first is None:
        return False
    tried = next((one for one in plan.preview.dry_runs if one.step == first.step), None)
    refused = tried is not None and tried.accepted is False
    return refused or any(check.met is False for check in first.preconditions)


def parts(plan: Plan, facts: RunFacts, clock: Clock) -> Iterator[Part]:
    """Every compensation of a plan, in running order."""
    looks = list(plan.looks)
    calls = [call for call in plan.preview.calls if call.direction == "compensation"]
    for number, call in enumerate(calls, start=1):
        look = looks[number - 1] if number <= len(looks) else None
        action = facts.action(call.step)
        unit = next(
            (item for item in action.items if item.compensation and item.compensation.key == call.key), action
        )
        tried = next((one for one in plan.preview.dry_runs if one.key == call.key), None)
        yield _part(number, call, unit, look, dry_run.of_call(tried, clock, first=number == 1), clock)


def _part(
    number: int, call: PlannedCall, unit: ActionFacts, look: PlanLook | None, tried: Check, clock: Clock
) -> Part:
    made_up, declared = unit.compensation, unit.contract.compensation
    checks = look.preconditions if look else ()
    return Part(
        number=number,
        step=unit.step,
        tool=call.tool,
        line=text.inert(f"{call.system}  {call.line}" if call.system not in call.line else call.line, 400),
        body=text.as_json(call.body, 600) if call.body not in (None, {}, "") else None,
        key=text.inert(call.key, 200),
        kind=words.COMPENSATION_KINDS.get(str(made_up.kind) if made_up else "", ""),
        about=text.inert(call.text, 300),
        changes=tuple(signoff_sheet.changed(one) for one in look.changes) if look else (),
        leaves=text.inert(declared.leaves, 300) if declared and declared.leaves else None,
        checks=tuple(_check(check, clock, first=number == 1) for check in checks),
        checked=clock.time(checks[0].read_at) if checks else "",
        dry_run=tried,
        signed=made_up is not None and made_up.who == Who.APPROVAL,
    )


def _check(check: ConditionCheck, clock: Clock, *, first: bool) -> Check:
    """A precondition as read just now; one that does not hold may come true on the way, but for the first call."""
    if check.met is None:
        return Check(
            icon="unk", says=text.say(_("{text}: not known"), text=check.text), at=clock.time(check.read_at)
        )
    if check.met:
        return Check(icon="ok", says=text.inert(check.text, 300), at=clock.time(check.read_at))
    says = _("{text}: not so") if first else _("{text}: not so yet, looked at again right before its call")
    return Check(
        icon="bad" if first else "wait", says=text.say(says, text=check.text), at=clock.time(check.read_at)
    )
