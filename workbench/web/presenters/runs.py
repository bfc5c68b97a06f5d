"""One run: its steps as boxes or page by page, entries in the order written, and the facts an agent is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import ActionFacts, EntryFacts, RunFacts, StripMark, WaiverFacts
from sagas.readings import TrailState
from sagas.states import FINAL_RUN_STATES, Direction
from workbench.web.presenters import activity, items, marks, shares, signoffs, steps, text, words
from workbench.web.presenters.activity import Told
from workbench.web.presenters.case import Link, run_link, title
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import ClassWord, StateWord
from workbench.web.presenters.workflows import Verdict

STEPS = 50
"""Steps on a page of a run that has more than fit as boxes."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One step as a box."""

    number: int
    step: str
    tool: str
    url: str
    current: bool
    state: StateWord
    about: SafeString
    recovery: ClassWord
    key: SafeString


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """An error of the check that somebody let pass when this version was published."""

    code: str
    title: str
    steps: str
    reason: str
    by: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Written:
    """One entry of the list, with the step and the words of what it tells."""

    told: Told
    step: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What of a long run is asked for: entries after a number, of one step, only what failed; steps after one."""

    after: int = 0
    step: str = ""
    failures: bool = False
    steps_after: str = ""

    def url(self, ref: str, *, page: str = "run", **changed: object) -> str:
        """The address of the page with something else asked for, or of its news."""
        said = {
            "after": self.after,
            "step": self.step,
            "only": "failures" if self.failures else "",
            "steps": self.steps_after,
            **changed,
        }
        query = urlencode({name: value for name, value in said.items() if value})
        return f"{reverse(page, args=[ref])}?{query}" if query else reverse(page, args=[ref])


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps shown: all as boxes, or of many a page in a table. `trouble_url` leads to the first in trouble."""

    boxes: tuple[Box, ...]
    table: bool
    said: str
    first_url: str
    next_url: str
    trouble_url: str


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which entries are shown, and the addresses that show others."""

    step: str
    every_step_url: str
    failures: bool
    failures_url: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """The page of one run."""

    ref: str
    version: int
    seq: int
    """The last entry of the trail when it was read, shown on this page or not."""
    over: bool
    read_at: str
    changes_url: str
    title: str
    workflow: str
    state: StateWord
    started: str
    finished: str
    handoffs: tuple[Link, ...]
    shape: Steps
    filters: Filters
    entries: tuple[Written, ...]
    counted: str
    word: str
    started_by: str
    business_ref: str
    digest: str
    input: SafeString
    next_allowed: tuple[str, ...]
    ends: tuple[str, ...]
    effects_left: tuple[str, ...]
    effects_more: str
    intent: str
    next_url: str
    first_url: str
    saved: str
    workflow_url: str = ""
    check: Verdict | None = None
    published: str = ""
    stop_url: str = ""
    stopped: str = ""
    signoffs: tuple[signoffs.Pending, ...] = ()
    bar: marks.Strip | None = None
    items: tuple[items.Items, ...] = ()
    accounts: tuple[steps.Account, ...] = ()
    parent: Link | None = None
    remedies: tuple[Link, ...] = ()
    waivers: tuple[Waiver, ...] = ()


def run(
    facts: RunFacts,
    entries: Sequence[EntryFacts],
    *,
    next_allowed: Sequence[str],
    word: str,
    reader: str,
    clock: Clock,
    full: bool,
    seq: int = 0,
    strip: Iterable[StripMark] = (),
    waivers: Iterable[WaiverFacts] = (),
    asked: Asked = Asked(),
    trail: TrailState | None = None,
    check: Verdict | None = None,
) -> Run:
    """One run; `full` when there are more entries than fit a page, `check` where its workflow was published."""
    last = entries[-1].seq if entries else None
    named = reverse("workflow-version", args=[facts.definition.name, facts.definition.version])
    return Run(
        ref=facts.ref,
        version=facts.version,
        seq=seq,
        over=facts.state in FINAL_RUN_STATES,
        read_at=clock.time(facts.now),
        changes_url=asked.url(facts.ref, page="run-changes"),
        title=title(facts),
        workflow=f"{facts.definition.name} v{facts.definition.version}",
        state=words.RUN_STATES[str(facts.state)],
        started=clock.time(facts.started_at),
        finished=clock.time(facts.finished_at),
        handoffs=tuple(Link(ref=one.ref, url=reverse("case", args=[one.ref])) for one in facts.handoffs),
        shape=_steps(facts, asked),
        filters=Filters(
            step=asked.step,
            every_step_url=asked.url(facts.ref, step="", after=0),
            failures=asked.failures,
            failures_url=asked.url(facts.ref, only="" if asked.failures else "failures", after=0),
        ),
        entries=tuple(_written(entries, reader, clock)),
        counted=_counted(len(entries), trail),
        word=word,
        started_by=facts.started_by,
        business_ref=facts.business_ref,
        digest=facts.definition_digest[:16],
        input=text.as_json(steps.without_secrets(facts.input), 2000),
        next_allowed=tuple(next_allowed),
        ends=tuple(end.title for end in facts.definition.end_states),
        effects_left=facts.effects_left[:STEPS],
        effects_more=shares.number(len(facts.effects_left) - STEPS)
        if len(facts.effects_left) > STEPS
        else "",
        intent="" if facts.parent_ref else facts.intent,
        next_url=asked.url(facts.ref, after=last) if full and last else "",
        first_url=asked.url(facts.ref, after=0) if asked.after else "",
        saved=_saved(facts),
        workflow_url=named if check is not None else "",
        check=check,
        published=_published(trail),
        stop_url=reverse("run-stop", args=[facts.ref]) if _can_be_stopped(facts) else "",
        stopped=_stopped(facts, clock),
        signoffs=signoffs.pending(facts.actions, clock),
        bar=marks.long_strip(strip),
        items=items.batches(facts),
        accounts=steps.accounts(facts),
        parent=run_link(facts.parent_ref) if facts.parent_ref else None,
        remedies=tuple(run_link(ref) for ref in facts.remedies),
        waivers=tuple(_waiver(one, clock) for one in waivers),
    )


def _can_be_stopped(facts: RunFacts) -> bool:
    return facts.state not in FINAL_RUN_STATES and facts.direction is Direction.FORWARD


def _stopped(facts: RunFacts, clock: Clock) -> str:
    """Who began the compensation, and when; "" where nobody has."""
    if facts.turned_back_at is None:
        return ""
    return _("compensation since {at}, begun by {who}").format(
        at=clock.time(facts.turned_back_at), who=facts.turned_back_by
    )


def _waiver(one: WaiverFacts, clock: Clock) -> Waiver:
    return Waiver(
        code=one.code,
        title=one.title,
        steps=", ".join(one.steps),
        reason=one.reason,
        by=one.by_name,
        at=clock.time(one.at),
    )


def _written(entries: Iterable[EntryFacts], reader: str, clock: Clock) -> Iterator[Written]:
    """The entries in the order written; what the system did again and again with one step is one line."""
    for step, same in groupby(entries, key=lambda entry: entry.step):
        told = (activity.told(entry, reader=reader, clock=clock) for entry in same)
        yield from (Written(told=one, step=step) for one in activity.folded(told))


def _counted(shown: int, trail: TrailState | None) -> str:
    if trail is None:
        return shares.number(shown)
    return _("{n} of {all}").format(n=shares.number(shown), all=shares.number(trail.entries))


def _saved(facts: RunFacts) -> str:
    """How many steps had the state before them saved."""
    saved = sum(action.prior_state is not None for action in steps.current(facts))
    return ngettext("of {n} step", "of {n} steps", saved).format(n=saved) if saved else ""


def _published(trail: TrailState | None) -> str:
    """How far the events have left."""
    if trail is None:
        return ""
    if trail.parked:
        return ngettext("{n} parcel set aside", "{n} parcels set aside", trail.parked).format(n=trail.parked)
    if trail.waiting:
        return ngettext("{n} parcel waits", "{n} parcels wait", trail.waiting).format(n=trail.waiting)
    return _("all delivered")


def _steps(facts: RunFacts, asked: Asked) -> Steps:
    every = steps.current(facts)
    if len(every) <= marks.LONGEST_STRIP:
        boxes = tuple(_box(action, facts.ref, asked) for action in every)
        return Steps(boxes=boxes, table=False, said="", first_url="", next_url="", trouble_url="")
    begin = next((n for n, action in enumerate(every, 1) if action.step == asked.steps_after), 0)
    page = every[begin : begin + STEPS]
    trouble = next((n for n, action in enumerate(every) if steps.look_of(action).icon in _TROUBLE), None)
    before = every[trouble - 1].step if trouble else ""
    said = _("{first} to {last} of {all}").format(
        first=begin + 1, last=begin + len(page), all=shares.number(len(every))
    )
    return Steps(
        boxes=tuple(_box(action, facts.ref, asked) for action in page),
        table=True,
        said=said,
        first_url=asked.url(facts.ref, steps="") if begin else "",
        next_url=asked.url(facts.ref, steps=page[-1].step) if begin + STEPS < len(every) else "",
        trouble_url="" if trouble is None else asked.url(facts.ref, steps=before),
    )


_TROUBLE = frozenset({"bad", "unk", "compfailed"})


def _box(action: ActionFacts, ref: str, asked: Asked) -> Box:
    look = steps.look_of(action)
    detail = text.inert(action.provider_ref, 60) if action.provider_ref else text.inert(look.word)
    if action.error_class and look.icon != "ok":
        detail = text.inert(f"{steps.error_words(action.error_class)} {action.error_detail}".strip(), 90)
    return Box(
        number=action.position,
        step=action.step,
        tool=action.tool,
        url=asked.url(ref, step=action.step, after=0),
        current=action.step == asked.step,
        state=look,
        about=detail,
        recovery=marks.recovery_of(action.contract),
        key=text.inert(action.key, 200),
    )
