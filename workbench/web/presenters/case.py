"""The handoff page in the order of its questions: what happened, what is true, why it needs you, what would do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas.facts import ActionFacts, EntryFacts, HandoffFacts, RunFacts, StripMark
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, HandoffState
from tools.contract import Condition
from tools.definition import EndState, StepIs
from workbench.web.presenters import alike as alike_steps
from workbench.web.presenters import items, ladder, marks, reasons, signoffs, steps, text, words
from workbench.web.presenters.clock import Clock, Due, limit_words
from workbench.web.presenters.known import IDLE, UNPROVEN, Fact, is_unknown, known
from workbench.web.presenters.queue import sentence_join
from workbench.web.presenters.steps import Account
from workbench.web.presenters.words import Words

_DONE = frozenset({ActionState.CONFIRMED, ActionState.ACCEPTED})


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One condition of an end state with its mark."""

    icon: str
    says: SafeString
    word: Words


@dataclass(frozen=True, kw_only=True)
class End:
    """One acceptable end state: `tally` says how much of it holds, the nearest one is `open`."""

    id: str
    title: str
    tally: str
    open: bool
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, kw_only=True)
class Link:
    """A reference and where it leads."""

    ref: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Somebody asked whoever holds the case to hand it over. `give_url`, for the holder: where that is done."""

    says: SafeString
    quote: SafeString | None
    give: str = ""
    give_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """The left side of the page."""

    ref: str
    url: str
    plan_url: str
    version: int
    title: str
    pill: reasons.ReasonWords
    risk: marks.Risk
    due: Due
    limit: str
    workflow: str
    run_ref: str
    run_url: str
    about: tuple[str, ...]
    lede: str
    facts: tuple[Fact, ...]
    why: SafeString
    rule: Words
    ends: tuple[End, ...]
    steps: tuple[steps.Step, ...]
    steps_summary: str
    untold: str
    owner: marks.Owner
    intent: str
    closed: str
    again_ref: str
    again_url: str
    trail_url: str
    changes_url: str
    read_at: str
    signoffs: tuple[signoffs.Pending, ...] = ()
    bar: marks.Strip | None = None
    alike: tuple[alike_steps.Alike, ...] = ()
    items: tuple[items.Items, ...] = ()
    accounts: tuple[Account, ...] = ()
    linked: str = ""
    halfway: ladder.Halfway | None = None
    under_way: ladder.UnderWay | None = None
    parent: Link | None = None
    remedies: tuple[Link, ...] = ()
    before: Link | None = None


def case(
    facts: RunFacts,
    handoff: HandoffFacts,
    *,
    reader: str,
    clock: Clock,
    level: str,
    strip: Iterable[StripMark] = (),
    changed: Collection[str] = (),
) -> Case:
    """Everything the page says about a case; `level` is how much is at stake, `strip` its marks, `changed` the steps
    that moved while the page was being read.
    """
    tool = troubled(facts)
    url = case_url(handoff.ref)
    settled = not any(is_unknown(action) for action in steps.current(facts))
    again_ref, again_url = _again(handoff, facts)
    amount = f"{facts.amount} {facts.currency}".strip() if facts.amount else ""
    return Case(
        ref=handoff.ref,
        url=url,
        plan_url=plan_url(handoff.ref),
        version=facts.version,
        title=title(facts),
        pill=reasons.reason_words(handoff.reason, settled=settled),
        risk=marks.risk(level),
        due=clock.due(handoff.due_at),
        limit=limit_words(handoff.schedule, handoff.due_at),
        workflow=f"{facts.definition.name} v{facts.definition.version}",
        run_ref=facts.ref,
        run_url=reverse("run", args=[facts.ref]),
        about=tuple(dict.fromkeys(part for part in (facts.business_ref, facts.customer, amount) if part)),
        lede=lede(facts),
        facts=known(facts, clock),
        why=reasons.long(handoff.reason, handoff.params, tool, settled=settled),
        rule=reasons.reason_words(handoff.reason, settled=settled).rule,
        ends=ends(facts),
        steps=steps.steps(facts, clock),
        steps_summary=steps.summary(facts),
        untold=steps.untold(facts),
        owner=owner(handoff, reader=reader, clock=clock),
        intent="" if facts.parent_ref else facts.intent,
        closed=_closed(handoff, facts, clock),
        again_ref=again_ref,
        again_url=again_url,
        trail_url=reverse("trail", args=[handoff.ref]),
        changes_url=reverse("case-changes", args=[handoff.ref]),
        read_at=clock.time(facts.now),
        signoffs=signoffs.pending(facts.actions, clock),
        bar=marks.long_strip(strip),
        alike=alike_steps.alike(facts, clock, changed=changed),
        items=items.batches(facts),
        accounts=steps.accounts(facts),
        linked=_linked(handoff, facts),
        halfway=ladder.halfway(facts, clock) if handoff.state is not HandoffState.RESOLVED else None,
        under_way=ladder.under_way(facts, clock),
        parent=run_link(facts.parent_ref) if facts.parent_ref else None,
        remedies=tuple(run_link(ref) for ref in facts.remedies),
        before=_before(handoff),
    )


def _before(handoff: HandoffFacts) -> Link | None:
    """The closed case that this one goes on from."""
    ref = handoff.params.get("goes_on_from")
    return Link(ref=ref, url=case_url(ref)) if isinstance(ref, str) and ref else None


def asked(handoff: HandoffFacts, entries: Sequence[EntryFacts], *, reader: str, clock: Clock) -> Asked | None:
    """That somebody would take the case over, said to whoever holds it and to everybody who reads along."""
    if not handoff.wanted_by or (handoff.claim_until is not None and handoff.claim_until <= clock.now):
        return None
    at = clock.time(handoff.wanted_at)
    if reader == handoff.wanted_by:
        says = text.say(
            _("You asked {who} at {at} to hand this case over."),
            who=text.strong(handoff.claimed_by_name),
            at=at,
        )
        return Asked(says=says, quote=None)
    newest = next((one for one in reversed(entries) if one.name == "human.handoff.asked_for"), None)
    quote = text.inert(newest.reason, 500) if newest is not None and newest.reason else None
    who = text.strong(handoff.wanted_by_name)
    if reader != handoff.claimed_by:
        says = text.say(
            _("{who} asked {holder} at {at} to hand this case over."),
            who=who,
            holder=text.strong(handoff.claimed_by_name),
            at=at,
        )
        return Asked(says=says, quote=quote)
    return Asked(
        says=text.say(_("{who} asked you at {at} to hand this case over."), who=who, at=at),
        quote=quote,
        give=_("Hand over to {who}…").format(who=handoff.wanted_by_name),
        give_url=f"{case_url(handoff.ref)}?{urlencode({'act': 'assign', 'to': handoff.wanted_by})}",
    )


def run_link(ref: str) -> Link:
    """A run and its page."""
    return Link(ref=ref, url=reverse("run", args=[ref]))


def _linked(handoff: HandoffFacts, facts: RunFacts) -> str:
    """A late fact stands beside a run that is over; nothing that is done here opens it again."""
    if not handoff.linked or handoff.state is HandoffState.RESOLVED:
        return ""
    ended = words.RUN_STATES[str(facts.state)].word
    if handoff.reason == "reopened":
        return _(
            "The run ended as “{state}” and stays so. What has to be put right starts as a run of its own that is "
            "linked here."
        ).format(state=ended)
    return _("The run ended as “{state}” and stays closed. Only what came in late is settled here.").format(
        state=ended
    )


def title(facts: RunFacts) -> str:
    """The case in business words; the workflow's own title in the reader's language where it has one."""
    plain = facts.definition.title
    if facts.title not in ("", plain):
        return facts.title
    return facts.definition.titles.get(get_language() or "", plain)


def case_url(ref: str) -> str:
    """Where a case is read and worked on."""
    return reverse("case", args=[ref])


def plan_url(ref: str) -> str:
    """Where a recovery plan of a case is made."""
    return reverse("plan-new", args=[ref])


def owner(handoff: HandoffFacts, *, reader: str, clock: Clock) -> marks.Owner:
    """Who works on this case."""
    return marks.owner(
        claimed_by=handoff.claimed_by,
        name=handoff.claimed_by_name,
        until=handoff.claim_until,
        since=handoff.claimed_at,
        reader=reader,
        clock=clock,
    )


def troubled(facts: RunFacts) -> str:
    """The tool this case is about: the worst step."""
    order = (ActionState.UNKNOWN, ActionState.REJECTED, ActionState.PARTIAL, ActionState.SENT)
    for action in facts.actions:
        if action.compensation and action.compensation.state in UNPROVEN:
            return action.tool
    found = [action for action in steps.current(facts) if action.state in order]
    return min(found, key=lambda action: order.index(action.state)).tool if found else ""


def lede(facts: RunFacts) -> str:
    """What happened, in whole sentences from our templates, never from a model."""
    return sentence_join(_lede(facts))


def _lede(facts: RunFacts) -> Iterator[str]:
    now = steps.current(facts)
    done = [action for action in now if action.state in _DONE]
    if not (len(now) == 1 and now[0].items):
        words = ngettext("{done} of {n} step is confirmed.", "{done} of {n} steps are confirmed.", len(now))
        yield words.format(done=len(done), n=len(now))
    told = steps.told(facts)
    for action in told:
        title = action.contract.texts.title
        if action.state is ActionState.UNKNOWN:
            yield _("“{title}” got no answer, so nobody knows whether it took effect.").format(title=title)
        elif action.state is ActionState.REJECTED:
            yield _("“{title}” was refused: nothing happened.").format(title=title)
        elif action.state is ActionState.PARTIAL:
            yield _part_of(action)
    made_up = [action for action in now if action.state is ActionState.COMPENSATED]
    if made_up:
        yield ngettext("{n} step was compensated.", "{n} steps were compensated.", len(made_up)).format(
            n=len(made_up)
        )
    for action in told:
        if action.compensation and action.compensation.state is CompensationState.UNKNOWN:
            yield _("Compensating “{title}” got no answer.").format(title=action.contract.texts.title)
        elif action.compensation and action.compensation.state is CompensationState.FAILED:
            yield _("Compensating “{title}” failed.").format(title=action.contract.texts.title)
    idle = sum(action.state in IDLE for action in now)
    if idle:
        yield ngettext("{n} step was never sent.", "{n} steps were never sent.", idle).format(n=idle)


def _part_of(action: ActionFacts) -> str:
    title = action.contract.texts.title
    if not action.items:
        return _("“{title}” was done in part.").format(title=title)
    return _("“{title}” was done in part: {listed}.").format(title=title, listed=items.tally(action))


def ends(facts: RunFacts) -> tuple[End, ...]:
    """The acceptable end states; the one with the fewest conditions in doubt stands open."""
    made = [
        (end, tuple(_wanted(condition, facts) for condition in end.conditions))
        for end in facts.definition.end_states
    ]
    doubts = [sum(want.icon != "ok" for want in wanted) for __, wanted in made]
    nearest = doubts.index(min(doubts)) if doubts else -1
    return tuple(_end(end, wanted, open_=number == nearest) for number, (end, wanted) in enumerate(made))


def _end(end: EndState, wanted: tuple[Wanted, ...], *, open_: bool) -> End:
    met = sum(want.icon == "ok" for want in wanted)
    tally = ngettext("{met} of {n} met", "{met} of {n} met", len(wanted)).format(met=met, n=len(wanted))
    return End(id=end.id, title=end.title, tally=tally, open=open_, wanted=wanted)


def _wanted(condition: Condition | StepIs, facts: RunFacts) -> Wanted:
    if isinstance(condition, Condition):
        return Wanted(icon="wait", says=text.inert(condition.text, 300), word=_("read when you accept"))
    try:
        action = facts.action(condition.step)
    except KeyError:
        return Wanted(icon="wait", says=text.inert(condition.text, 300), word=_("not met"))
    if str(action.settled_as) in condition.states:
        return Wanted(icon="ok", says=text.inert(condition.text, 300), word=_("met"))
    if action.state is ActionState.UNKNOWN:
        return Wanted(icon="unk", says=text.inert(condition.text, 300), word=_("not known"))
    return Wanted(icon="wait", says=text.inert(condition.text, 300), word=_("not met"))


def _closed(handoff: HandoffFacts, facts: RunFacts, clock: Clock) -> str:
    """How the case was closed, and whether the run is at its end or goes on."""
    if handoff.state is not HandoffState.RESOLVED:
        return ""
    known = {
        "completed": _("all steps are settled"),
        "compensated": _("what had been done was compensated"),
        "closed_accepted": _("a person accepted the state"),
        "failed_clean": _("nothing was left behind"),
        "settled by evidence": _("evidence settled it"),
        "a person ordered a retry": _("a person ordered a retry"),
        "a person ordered a repeat under the same key": _("a person ordered a repeat with the same key"),
        "a person found that it happened": _("a person found that it happened"),
        "a person found that it did not happen": _("a person found that it did not happen"),
        "a person let the run go on": _("a person let the run go on"),
        "a person ordered the compensation": _("a person ordered the compensation"),
        "a person stopped the run": _("a person stopped the run and ordered the compensation"),
    }
    how = known.get(handoff.resolution, handoff.resolution)
    closed = _("Closed {at}: {how}.").format(at=clock.time(handoff.resolved_at), how=how)
    if facts.state in FINAL_RUN_STATES:
        return sentence_join(
            [
                closed,
                _("Nothing can be changed."),
                _("A remark can be added; reopening it makes a new case that is linked to this one."),
            ]
        )
    return sentence_join([closed, _("The run goes on.")])


def _again(handoff: HandoffFacts, facts: RunFacts) -> tuple[str, str]:
    """A later case of the same run that is open, as a reference and an address."""
    later = next(
        (one for one in facts.handoffs if one.id > handoff.id and one.state is not HandoffState.RESOLVED),
        None,
    )
    return (later.ref, case_url(later.ref)) if later else ("", "")
