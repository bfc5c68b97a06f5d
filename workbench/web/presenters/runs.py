"""Runs: the list, and one run as boxes, entries in the order written, and the facts an agent is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sagas.facts import ActionFacts, EntryFacts, RunFacts, RunPage, RunRow, StripMark, WaiverFacts
from sagas.states import FINAL_RUN_STATES, Direction
from workbench.web.presenters import activity, items, marks, signoffs, steps, text, words
from workbench.web.presenters.activity import Told
from workbench.web.presenters.case import Link, run_link, title
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import ClassWord, StateWord


@dataclass(frozen=True, kw_only=True)
class Box:
    """One step as a box."""

    number: int
    tool: str
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
class Run:
    """The page of one run."""

    ref: str
    title: str
    workflow: str
    state: StateWord
    started: str
    finished: str
    handoffs: tuple[Link, ...]
    boxes: tuple[Box, ...]
    entries: tuple[Written, ...]
    count: int
    word: str
    started_by: str
    business_ref: str
    digest: str
    input: SafeString
    next_allowed: tuple[str, ...]
    ends: tuple[str, ...]
    effects_left: tuple[str, ...]
    intent: str
    next_url: str
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
    strip: Iterable[StripMark] = (),
    waivers: Iterable[WaiverFacts] = (),
) -> Run:
    """One run; `full` when there are more entries than fit a page."""
    url = reverse("run", args=[facts.ref])
    last = entries[-1].seq if entries else None
    return Run(
        ref=facts.ref,
        title=title(facts),
        workflow=f"{facts.definition.name} v{facts.definition.version}",
        state=words.RUN_STATES[str(facts.state)],
        started=clock.time(facts.started_at),
        finished=clock.time(facts.finished_at),
        handoffs=tuple(Link(ref=one.ref, url=reverse("case", args=[one.ref])) for one in facts.handoffs),
        boxes=tuple(_box(action) for action in steps.current(facts)),
        entries=tuple(
            Written(told=activity.told(entry, reader=reader, clock=clock), step=entry.step)
            for entry in entries
        ),
        count=len(entries),
        word=word,
        started_by=facts.started_by,
        business_ref=facts.business_ref,
        digest=facts.definition_digest[:16],
        input=text.as_json(steps.without_secrets(facts.input), 2000),
        next_allowed=tuple(next_allowed),
        ends=tuple(end.title for end in facts.definition.end_states),
        effects_left=facts.effects_left,
        intent="" if facts.parent_ref else facts.intent,
        next_url=f"{url}?{urlencode({'after': last})}" if full and last else "",
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


def _box(action: ActionFacts) -> Box:
    look = steps.look_of(action)
    detail = text.inert(action.provider_ref, 60) if action.provider_ref else text.inert(look.word)
    if action.error_class and look.icon != "ok":
        detail = text.inert(f"{steps.error_words(action.error_class)} {action.error_detail}".strip(), 90)
    return Box(
        number=action.position,
        tool=action.tool,
        state=look,
        about=detail,
        recovery=marks.recovery_of(action.contract),
        key=text.inert(action.key, 200),
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of the list."""

    ref: str
    url: str
    title: str
    workflow: str
    state: StateWord
    started: str
    business_ref: str
    handoff: Link | None


@dataclass(frozen=True, kw_only=True)
class Only:
    """Which runs are asked for: by a reference, by a workflow, by one version of it."""

    search: str = ""
    workflow: str = ""
    version: int | None = None

    @property
    def said(self) -> str:
        """The workflow as people write it, "" for all of them."""
        return f"{self.workflow} v{self.version}" if self.version else self.workflow


@dataclass(frozen=True, kw_only=True)
class RunList:
    """The list, newest first. `all_url` leads to the runs of all workflows."""

    rows: tuple[Row, ...]
    only: Only
    workflow_url: str
    all_url: str
    next_url: str
    first_url: str


def run_list(page: RunPage, *, only: Only, after: str, clock: Clock) -> RunList:
    """A page of runs."""
    return RunList(
        rows=tuple(_row(row, clock) for row in page.rows),
        only=only,
        workflow_url=reverse("workflow", args=[only.workflow]) if only.workflow else "",
        all_url=_address(Only(search=only.search)) if only.workflow else "",
        next_url=_address(only, page.after) if page.after else "",
        first_url=_address(only) if after else "",
    )


def _row(row: RunRow, clock: Clock) -> Row:
    ref = row.handoff_ref
    return Row(
        ref=row.ref,
        url=reverse("run", args=[row.ref]),
        title=row.title or row.workflow,
        workflow=f"{row.workflow} v{row.workflow_version}",
        state=words.RUN_STATES[row.state],
        started=clock.time(row.started_at),
        business_ref=row.business_ref,
        handoff=Link(ref=ref, url=reverse("case", args=[ref])) if ref else None,
    )


def _address(only: Only, after: str = "") -> str:
    asked = {"q": only.search, "workflow": only.workflow, "version": only.version, "after": after}
    said = urlencode({name: value for name, value in asked.items() if value})
    return f"{reverse('runs')}?{said}" if said else reverse("runs")
