"""The recovery plan: what would be made up for, in which order, on which grounds, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas import api
from sagas.facts import EntryFacts, FreezeFacts, RunFacts
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, HandoffState, RunState
from tools.contract import Who
from workbench import policies
from workbench.commands import Fallen, Plan
from workbench.web.forms import Field
from workbench.web.presenters import (
    activity,
    case,
    dry_run,
    ladder,
    marks,
    plan_parts,
    steps,
    text,
    words,
)
from workbench.web.presenters.checks import Check
from workbench.web.presenters.clock import Clock, span_words

GROUPS = 4
_TO_BEGIN = frozenset(
    {CompensationState.REGISTERED, CompensationState.DUE, CompensationState.AWAITING_APPROVAL}
)


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """The form that leaves steps out; `why_not` where the reader may not."""

    choices: tuple[tuple[str, str], ...]
    why_not: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """The plan's page. `state` is ready, expired, void, running, paused, stopped or ended."""

    id: str
    url: str
    act_url: str
    make_url: str
    changes_url: str
    case_ref: str
    case_url: str
    run_ref: str
    run_url: str
    title: str
    pill: words.StateWord
    risk: marks.Risk
    about: tuple[str, ...]
    lede: str
    state: str
    note: str
    fallen: tuple[plan_parts.Fell, ...]
    rungs: tuple[ladder.Rung, ...]
    parts: tuple[plan_parts.Part, ...]
    checks: tuple[Check, ...]
    digest: tuple[str, ...]
    built: str
    valid: str
    left: str
    stays: tuple[SafeString, ...]
    end: str
    left_out: tuple[str, ...]
    why_left_out: str
    progress: ladder.Progress | None
    events: tuple[activity.Told, ...]
    run: str
    once: str
    mine: bool
    by: str
    version: int
    read_at: str
    paused: str = ""
    open_ref: str = ""
    open_url: str = ""

    @property
    def over(self) -> bool:
        """Nothing further comes of it by itself, so nobody has to ask again."""
        return self.state not in ("running", "paused", "ready")


def plan_url(plan: Plan) -> str:
    """Where a plan is read."""
    return reverse("plan", args=[plan.preview.handoff_ref, plan.id])


def state_of(plan: Plan, facts: RunFacts) -> str:
    """Where a plan stands, from the facts alone."""
    if plan.ran_at is None:
        if plan.preview.version != facts.version:
            return "void"
        return "expired" if plan.preview.expires_at <= facts.now else "ready"
    if facts.state in FINAL_RUN_STATES:
        return "ended"
    if facts.handoff is not None and facts.handoff.state is not HandoffState.RESOLVED:
        return "stopped"
    return "paused" if facts.paused_at is not None else "running"


def held_by(plan: Plan, facts: RunFacts) -> FreezeFacts | None:
    """The freeze that keeps a plan from being ordered, or the next call of one that runs from beginning."""
    match state_of(plan, facts):
        case "running" | "paused":
            made_up = [ladder.leading(facts.action(step)) for step in _order(plan)]
            following = next((one for one in made_up if one is not None and one.state in _TO_BEGIN), None)
            return api.freeze_on(facts, following.tool, compensating=True) if following else None
        case "stopped" | "ended":
            return None
        case _:
            return policies.freeze_on(facts, "compensate")


def page(
    plan: Plan,
    facts: RunFacts,
    entries: Iterable[EntryFacts],
    *,
    reader: str,
    clock: Clock,
    level: str,
    fallen: Iterable[Fallen] = (),
) -> Page:
    """The page of one plan at one moment; `fallen` is what it rested on and does not rest on any more."""
    preview, state, held = plan.preview, state_of(plan, facts), held_by(plan, facts)
    fallen = tuple(fallen)
    if fallen and state == "ready":
        state = "void"  # it was ordered, read again and refused; a new one rests on what is true now
    order = _order(plan)
    url = plan_url(plan)
    later = facts.handoff if state == "stopped" else None
    return Page(
        id=plan.id,
        url=url,
        act_url=f"{url}act/",
        changes_url=f"{url}changes/",
        make_url=reverse("plan-new", args=[preview.handoff_ref]),
        case_ref=preview.handoff_ref,
        case_url=case.case_url(preview.handoff_ref),
        run_ref=facts.ref,
        run_url=reverse("run", args=[facts.ref]),
        title=_title(state, len(order)),
        pill=_pill(state, facts, order, held),
        risk=marks.risk(level),
        about=tuple(part for part in (case.title(facts), facts.business_ref, facts.customer) if part),
        lede=_lede(order, facts),
        state=state,
        note=_note(state, plan, facts, held, clock),
        fallen=tuple(plan_parts.fell(one, clock) for one in fallen),
        rungs=ladder.ladder(
            facts, clock, order=order, left_out=plan.leave_out, waits=plan.ran_at is not None
        ),
        parts=tuple(plan_parts.parts(plan, facts, clock)) if state in ("ready", "expired", "void") else (),
        checks=tuple(_summary(plan, facts, held, clock)),
        digest=_short(plan.digest),
        built=_("{plan}, built from case v{n}").format(plan=plan.id, n=preview.version),
        valid=_("{at}, then it is checked again").format(at=clock.time(preview.expires_at)),
        left=_left(preview.expires_at, clock) if state == "ready" else "",
        stays=tuple(_stays(plan, facts)),
        end=_end(plan, facts),
        left_out=plan.leave_out,
        why_left_out=plan.why_left_out,
        progress=ladder.progress(facts, order) if plan.ran_at else None,
        events=_events(plan, entries, reader=reader, clock=clock),
        run=_run_label(plan, order, facts),
        once=_once(plan, facts),
        mine=plan.by == reader,
        by=plan.by_name,
        version=preview.version,
        read_at=clock.time(facts.now),
        paused=ladder.paused(facts, clock),
        open_ref=later.ref if later else "",
        open_url=case.case_url(later.ref) if later else "",
    )


def _order(plan: Plan) -> tuple[str, ...]:
    """The steps of the plan in running order."""
    return tuple(dict.fromkeys(call.step for call in plan.preview.calls if call.direction == "compensation"))


def _title(state: str, number: int) -> str:
    if state in ("running", "paused"):
        return ngettext("Compensating {n} step", "Compensating {n} steps", number).format(n=number)
    if state == "stopped":
        return _("Compensation stopped half-way")
    return ngettext("Compensate {n} step", "Compensate {n} steps", number).format(n=number)


def _pill(state: str, facts: RunFacts, order: tuple[str, ...], held: FreezeFacts | None) -> words.StateWord:
    done = len([step for step in order if facts.action(step).state is ActionState.COMPENSATED])
    running = _("Running, {done} of {n} compensated").format(done=done, n=len(order))
    match state:
        case "ready":
            return words.StateWord(icon="held", word=_("Plan, nothing sent yet"))
        case "expired":
            return words.StateWord(icon="clock", word=_("Plan expired, nothing was sent"), tone="unk")
        case "void":
            return words.StateWord(icon="warn", word=_("Plan void, nothing was sent"), tone="unk")
        case "running" if facts.state is RunState.AWAITING_APPROVAL:
            return words.StateWord(icon="sign", word=_("Waits for a signature"), tone="unk")
        case "running" if held is not None:
            frozen = _("Held by a freeze, {done} of {n} compensated").format(done=done, n=len(order))
            return words.StateWord(icon="pause", word=frozen, tone="unk")
        case "running":
            return words.StateWord(icon="compensating", word=running, tone="run")
        case "paused":
            paused = _("Paused, {done} of {n} compensated").format(done=done, n=len(order))
            return words.StateWord(icon="pause", word=paused, tone="unk")
        case "stopped":
            return words.StateWord(icon="compfailed", word=ladder.worlds(facts), tone="bad")
        case _:
            return words.RUN_STATES[str(facts.state)]


def _lede(order: tuple[str, ...], facts: RunFacts) -> str:
    numbers = [facts.action(step).position for step in order]
    listed = _(", ").join(str(number) for number in numbers)
    return ngettext(
        "This plan compensates step {steps} and stops if that is not proven.",
        "This plan compensates steps {steps}, in that order, and stops at the first compensation that is not proven.",
        len(numbers),
    ).format(steps=listed)


def _note(state: str, plan: Plan, facts: RunFacts, held: FreezeFacts | None, clock: Clock) -> str:
    match state:
        case "ready" if held is not None:
            says = _("Frozen since {at} by {who}: {why}. This can be ordered after the freeze is lifted.")
            return says.format(at=clock.short(held.at), who=held.by, why=held.reason.rstrip(" .。"))
        case "running" | "paused" if held is not None:
            says = _("Frozen since {at} by {who}: {why}. No further call begins until the freeze is lifted.")
            return says.format(at=clock.short(held.at), who=held.by, why=held.reason.rstrip(" .。"))
        case "ready" if plan_parts.stops_at_once(plan):
            return _(
                "As things stand the first call would not be sent: what it rests on does not hold. "
                "The case would come back to people."
            )
        case "expired":
            return _(
                "This plan is older than 15 minutes. Nothing was sent. In a new one all checks are run again."
            )
        case "void" if plan.preview.version == facts.version:
            return _("What this plan rests on does not hold any more. Nothing was sent.")
        case "void":
            return _("The case has changed since this plan was made, at {at}. Nothing was sent.").format(
                at=clock.time(facts.changed_at)
            )
        case "stopped":
            return _("Both directions are now incomplete. No more compensations will run by themselves.")
        case _:
            return ""


def _summary(plan: Plan, facts: RunFacts, held: FreezeFacts | None, clock: Clock) -> Iterator[Check]:
    """What was checked before anything runs, as one list; freezes as they are now."""
    read = [check for look in plan.looks for check in look.preconditions]
    hold = sum(check.met is True for check in read)
    at = clock.time(plan.preview.made_at)
    if read:
        says = ngettext("{hold} of {n} precondition holds", "{hold} of {n} preconditions hold", len(read))
        icon = "ok" if hold == len(read) else "unk" if any(check.met is None for check in read) else "wait"
        yield Check(icon=icon, says=text.say(says, hold=hold, n=len(read)), at=at)
    else:
        yield Check(icon="wait", says=text.say(_("These compensations declare no precondition.")), at=at)
    unread = sum(not look.read for look in plan.looks)
    if unread:
        says = ngettext(
            "{n} more was not read: there was no time. It is looked at right before its call.",
            "{n} more were not read: there was no time. They are looked at right before their calls.",
            unread,
        )
        yield Check(icon="unk", says=text.say(says, n=unread), at=at)
    yield dry_run.summary(plan.preview.dry_runs, clock)
    yield Check(icon="ok", says=text.say(_("The order is last step first")), at="")
    if held is None:
        yield Check(icon="ok", says=text.say(_("No freeze covers this")), at=clock.time(facts.now))
    else:
        says = text.say(_("Frozen since {at} by {who}"), at=clock.short(held.at), who=held.by)
        yield Check(icon="wait", says=says, at=clock.time(facts.now))
    signed = sum(_signed(facts, step) for step in _order(plan))
    if signed:
        says = ngettext(
            "{n} signature by someone who did not ask for it",
            "{n} signatures by someone who did not ask for them",
            signed,
        )
        yield Check(icon="wait", says=text.say(says, n=signed), at="")


def _signed(facts: RunFacts, step: str) -> bool:
    action = facts.action(step)
    return any(
        unit.compensation is not None and unit.compensation.who == Who.APPROVAL
        for unit in (action.items or (action,))
    )


def _short(digest: str) -> tuple[str, ...]:
    """A digest in groups of four, as people compare it."""
    return tuple(digest[start : start + GROUPS] for start in range(0, len(digest), GROUPS))


def _left(until: datetime, clock: Clock) -> str:
    return _("plan valid {span}").format(span=span_words(max(int((until - clock.now).total_seconds()), 0)))


def _stays(plan: Plan, facts: RunFacts) -> Iterator[SafeString]:
    """What the plan does not bring back: what is left out, what has no compensation, what a compensation leaves."""
    yield from (text.inert(one, 300) for one in plan.preview.stays)
    yield from (text.inert(one, 300) for one in plan.preview.irreversible)
    for step in _order(plan):
        action = facts.action(step)
        declared = action.contract.compensation
        if declared is not None and declared.leaves:
            yield text.inert(declared.leaves, 300)
        elif action.compensation is not None and action.compensation.kind == "mitigates":
            yield text.say(_("Limited, not taken away: {done}"), done=steps.said(action))


def _end(plan: Plan, facts: RunFacts) -> str:
    """The end state in words, if every compensation is proven."""
    if plan.preview.irreversible:
        return _("The case comes back to people: an effect stays that nothing compensates.")
    if plan.leave_out:
        return _("The run ends as Accepted: what was left out stays in effect.")
    if any(
        made_up.kind == "mitigates"
        for step in _order(plan)
        if (made_up := facts.action(step).compensation) is not None
    ):
        return _("The case comes back to people: a limited effect stays.")
    return _("The run ends as Compensated: no effect is left.")


def _events(
    plan: Plan, entries: Iterable[EntryFacts], *, reader: str, clock: Clock
) -> tuple[activity.Told, ...]:
    """What happened since it was ordered, newest first."""
    ran = plan.ran_at
    if ran is None:
        return ()
    since = [entry for entry in entries if entry.at >= ran or entry.command_id == plan.id]
    return tuple(reversed(activity.gathered(since, reader=reader, clock=clock)))


def _run_label(plan: Plan, order: tuple[str, ...], facts: RunFacts) -> str:
    if order and _signed(facts, order[0]):
        return _("Ask for sign-off")
    return ngettext("Compensate {n} step", "Compensate {n} steps", len(order)).format(n=len(order))


def _once(plan: Plan, facts: RunFacts) -> str:
    order = _order(plan)
    if order and _signed(facts, order[0]):
        return _("Nothing runs until someone else signs. You will not be able to sign it yourself.")
    if plan.preview.needs_signoff:
        return _("What needs a signature waits for one; you will not be able to sign it yourself.")
    return _("Runs once, request {id}. A second click shows the first result.").format(id=plan.id[:11])


def leaving(facts: RunFacts) -> tuple[tuple[str, str], ...]:
    """The steps that can be left out, in running order, with what would stay."""
    found: dict[str, str] = {}
    for unit in api.can_be_left_out(facts):
        found.setdefault(unit.step, unit.tool)
    return tuple((step, f"{step} ({tool})") for step, tool in found.items())
