"""Entries of the trail as sentences: the case's activity, and the decision trail with who, why and what they saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from sagas.facts import EntryFacts
from workbench.commands import code_words
from workbench.queries.bulks import behind
from workbench.web.presenters import marks, text, words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Told:
    """One entry told: `quote` is what a person wrote, `code` the code beside it, `saw` the version before them."""

    stamp: str
    short: str
    exact: str
    initials: str
    icon: str
    says: SafeString
    quote: SafeString | None
    code: Words
    detail: SafeString | None
    times: str
    saw: str
    number: str
    name: str
    person: bool
    refused: bool


_ICONS = {
    "human.handoff.started": "hand",
    "approval.requested": "sign",
    "approval.settled": "sign",
    "tool.execution.started": "sent",
    "tool.execution.succeeded": "ok",
    "tool.execution.failed": "bad",
    "tool.execution.unknown": "unk",
    "tool.compensation.succeeded": "compensated",
    "tool.compensation.failed": "compfailed",
    "tool.compensation.unknown": "unk",
    "tool.compensation.registered": "back",
    "tool.compensation.started": "compensating",
    "tool.retry.scheduled": "retry",
    "tool.execution.resolved": "eye",
    "tool.callback.received": "info",
    "reconciliation.drift": "warn",
    "run.replanned": "flow",
    "run.follow_up.started": "flow",
    "run.compensation.paused": "pause",
    "run.compensation.continued": "right",
    "human.handoff.asked_for": "hand",
}

# {who} acts, {step} is what it is about. Names as in the state tables, and those of people's commands.
_SENTENCES: dict[str, Words] = {
    "run.started": gettext_lazy("{who} started the run."),
    "run.handed_off": gettext_lazy("{who} stopped the run: a person has to decide."),
    "run.resumed": gettext_lazy("{who} let the run go on."),
    "run.compensating": gettext_lazy("{who} started the compensation."),
    "run.recovering": gettext_lazy("{who} started finding out what happened."),
    "run.settled": gettext_lazy("{who} found out what happened; the run goes on."),
    "run.completed": gettext_lazy("{who} closed the run: all steps are settled."),
    "run.compensated": gettext_lazy("{who} closed the run: what had been done was compensated."),
    "run.closed_accepted": gettext_lazy("{who} closed the run as accepted."),
    "run.failed_clean": gettext_lazy("{who} closed the run: nothing was left behind."),
    "tool.execution.planned": gettext_lazy("{who} planned {step}."),
    "tool.execution.prepared": gettext_lazy("{who} prepared {step}."),
    "tool.execution.started": gettext_lazy("{who} sent {step}."),
    "tool.execution.succeeded": gettext_lazy("{step} is confirmed."),
    "tool.execution.accepted": gettext_lazy("{step} was accepted by the provider and is being worked on."),
    "tool.execution.failed": gettext_lazy("{step} was refused."),
    "tool.execution.partial": gettext_lazy("{step} was done in part."),
    "tool.execution.unknown": gettext_lazy("{step} got no answer: its outcome is unknown."),
    "tool.execution.skipped": gettext_lazy("{step} was left out."),
    "tool.execution.compensated": gettext_lazy("{step} was made up for."),
    "tool.execution.superseded": gettext_lazy("{step} was replaced by a new try."),
    "tool.execution.accepted_by_person": gettext_lazy("{who} accepted {step} as it is."),
    "tool.execution.queried": gettext_lazy("{who} asked for the status of {step}."),
    "tool.compensation.queried": gettext_lazy("{who} asked for the status of the compensation of {step}."),
    "tool.execution.resolved": gettext_lazy("{step} is settled: {target}."),
    "tool.retry.scheduled": gettext_lazy("{who} scheduled {step} again."),
    "tool.retry.skipped": gettext_lazy("{step} is not tried again: a retry cannot help."),
    "tool.compensation.registered": gettext_lazy("{who} registered the compensation of {step}."),
    "tool.compensation.voided": gettext_lazy("The compensation of {step} is not needed."),
    "tool.compensation.due": gettext_lazy("The compensation of {step} is due."),
    "tool.compensation.started": gettext_lazy("{who} sent the compensation of {step}."),
    "tool.compensation.succeeded": gettext_lazy("The compensation of {step} is confirmed."),
    "tool.compensation.failed": gettext_lazy("The compensation of {step} failed."),
    "tool.compensation.unknown": gettext_lazy(
        "The compensation of {step} got no answer: its outcome is unknown."
    ),
    "tool.compensation.retry.scheduled": gettext_lazy("{who} scheduled the compensation of {step} again."),
    "tool.compensation.skipped": gettext_lazy("{who} left out the compensation of {step}."),
    "human.handoff.started": gettext_lazy("{who} handed the case to people."),
    "human.handoff.claimed": gettext_lazy("{who} claimed the case."),
    "human.handoff.released": gettext_lazy("{who} released the case."),
    "human.handoff.resolved": gettext_lazy("{who} closed the case."),
    "human.handoff.commented": gettext_lazy("{who} commented."),
    "approval.requested": gettext_lazy("{who} asked for a signature on the compensation of {step}."),
    "approval.consumed": gettext_lazy("The signature on the compensation of {step} was used."),
    "approval.lapsed": gettext_lazy("The signature on the compensation of {step} is void: it was not used."),
    "tool.compensation.approval.requested": gettext_lazy("{who} asked for a sign-off."),
    "tool.compensation.approval.settled": gettext_lazy("The sign-off is settled."),
    "human.handoff.accepted": gettext_lazy("{who} accepted the state as it is."),
    "tool.execution.late_answer": gettext_lazy("A late answer about {step} arrived."),
    "tool.prior_state.read": gettext_lazy("{who} read what stood there before {step}."),
    "run.turned_back": gettext_lazy("{who} turned the run back: what was done is made up for."),
    "run.turned_forward": gettext_lazy("{who} turned the run forward again."),
    "run.compensation.paused": gettext_lazy("{who} paused the compensation: nothing further begins."),
    "run.compensation.continued": gettext_lazy("{who} let the compensation go on."),
    "run.approval.requested": gettext_lazy("{who} asked for a sign-off."),
    "run.approval.settled": gettext_lazy("The sign-off is settled."),
    "run.replanned": gettext_lazy("{who} recorded a change of plan."),
    "run.follow_up.started": gettext_lazy(
        "{who} opened the follow-up of the accepted state as a run of its own."
    ),
    "tool.result.truncated": gettext_lazy(
        "The answer about {step} was too large; only its beginning was kept."
    ),
    "tool.callback.received": gettext_lazy("The provider reported back about {step}."),
    "reconciliation.drift": gettext_lazy("What was read about {step} differs from what is on record."),
    "human.handoff.reopened": gettext_lazy("{step} failed once more, the case is open again."),
    "human.handoff.asked_for": gettext_lazy("{who} asked for the case to be handed over."),
    "human.handoff.assigned": gettext_lazy("{who} handed the case over."),
    "verdict.proposed": gettext_lazy("{who} stated what a second person has to confirm."),
    "verdict.confirmed": gettext_lazy("{who} confirmed what was stated."),
    "verdict.declined": gettext_lazy("{who} declined what was stated."),
    "verdict.expired": gettext_lazy("Nobody confirmed in time what was stated."),
    "verdict.void": gettext_lazy("What was stated is void: the facts have changed."),
    "human.handoff.escalated": gettext_lazy("{who} escalated the case."),
    "human.handoff.reminded": gettext_lazy("{who} reminded the team: part of the time is gone."),
    "run.quarantined": gettext_lazy("{who} set a run aside that breaks whoever works on it."),
    "tool.gate.closed": gettext_lazy("A tool asked everybody to slow down."),
    "tool.gate.paused": gettext_lazy("{who} paused a tool: it refuses our credential."),
    "tool.gate.opened": gettext_lazy("{who} opened a paused tool."),
    "system.frozen": gettext_lazy("{who} froze the system."),
    "system.lift_asked": gettext_lazy("{who} asked to lift a freeze; another person has to do it."),
    "system.lift_withdrawn": gettext_lazy("{who} took back that a freeze is to be lifted."),
    "system.unfrozen": gettext_lazy("{who} lifted a freeze."),
}
_SIGNOFFS: dict[str, Words] = {
    "granted": gettext_lazy("{who} signed the compensation of {step}."),
    "rejected": gettext_lazy("{who} did not sign the compensation of {step}."),
    "expired": gettext_lazy("Nobody signed the compensation of {step} in time."),
    "withdrawn": gettext_lazy("The request to sign the compensation of {step} is void."),
}
_VERBS: dict[str, Words] = {
    "query_status": gettext_lazy("{who} asked for the status of {step}."),
    "retry": gettext_lazy("{who} retried {step}."),
    "edit_and_retry": gettext_lazy("{who} sent {step} again with other arguments."),
    "redo": gettext_lazy("{who} let the run go forward again from {step}."),
    "resolve_happened": gettext_lazy("{who} stated that {step} did happen."),
    "resolve_not_happened": gettext_lazy("{who} stated that {step} did not happen."),
    "compensate": gettext_lazy("{who} ordered the compensation."),
    "stop_and_compensate": gettext_lazy("{who} stopped the run and ordered the compensation."),
    "mark_acceptable": gettext_lazy("{who} accepted the state and closed the case."),
}
_SYSTEM = gettext_lazy("The system")
REFUSED = "command.refused"
# What only moves the machinery: the run page shows it, the decision trail does not.
_MACHINERY = frozenset(
    {
        "tool.execution.planned",
        "tool.execution.prepared",
        "tool.compensation.voided",
        "tool.compensation.due",
        "tool.compensation.registered",
        "run.settled",
        "run.recovering",
        "run.approval.requested",
        "run.approval.settled",
        "tool.compensation.approval.requested",
        "tool.compensation.approval.settled",
        "approval.consumed",
        "tool.prior_state.read",
    }
)


def tell(entries: Iterable[EntryFacts], *, reader: str, clock: Clock) -> tuple[Told, ...]:
    """Every entry as a sentence, oldest first."""
    return tuple(told(entry, reader=reader, clock=clock) for entry in entries)


def activity(entries: Iterable[EntryFacts], *, reader: str, clock: Clock, most: int = 12) -> tuple[Told, ...]:
    """The last things that matter, for the case page: decisions and effects, without the machinery."""
    return gathered(entries, reader=reader, clock=clock)[-most:]


def gathered(entries: Iterable[EntryFacts], *, reader: str, clock: Clock) -> tuple[Told, ...]:
    """What matters, in as few lines as say it: repetitions once, the items of a call over many by number."""
    counted = (
        _of_items(told(entry, reader=reader, clock=clock), number) for entry, number in by_step(entries)
    )
    return tuple(folded(decisions(counted)))


def by_step(entries: Iterable[EntryFacts]) -> Iterator[tuple[EntryFacts, int]]:
    """Entries about items of one step that follow upon each other as one for each name, with how many there were."""
    for step, block in groupby(entries, key=lambda entry: _whole(entry.step)):
        if not step:
            yield from ((entry, 1) for entry in block)
            continue
        sums: dict[tuple[str, str], list[EntryFacts]] = {}
        for entry in block:
            sums.setdefault((entry.name, entry.target), []).append(entry)
        for same in sums.values():
            yield (
                (same[0], 1)
                if len(same) == 1
                else (replace(same[0], step=step, reason=_said_of_all(same), after=None), len(same))
            )


def _said_of_all(same: list[EntryFacts]) -> str:
    """What a person gave as the reason for all of them at once; the system's details differ from item to item."""
    reasons = {entry.reason for entry in same if entry.actor_kind == "human"}
    return reasons.pop() if len(reasons) == 1 else ""


def _whole(step: str) -> str:
    """The step that an item belongs to, as entries name it: "relabel" of "relabel[ART-7]"; "" for a plain one."""
    whole, bracket, __ = step.partition("[")
    return whole if bracket and step.endswith("]") else ""


def _of_items(one: Told, number: int) -> Told:
    if number == 1:
        return one
    return replace(one, times=ngettext("({n} item)", "({n} items)", number).format(n=number))


def folded(entries: Iterable[Told]) -> Iterator[Told]:
    """What the system did again and again with the same outcome, as one line that says how often."""
    for __, same in groupby(
        entries,
        key=lambda one: (one.person, one.refused, one.says, one.times, one.detail, one.code, one.quote),
    ):
        first, *more = same
        if first.person or first.times or not more:
            yield from (first, *more)
        else:
            times = _("{n} times, last {at}").format(n=len(more) + 1, at=more[-1].short)
            yield replace(first, times=times)


def decisions(entries: Iterable[Told]) -> Iterator[Told]:
    """Decisions and effects only."""
    return (entry for entry in entries if entry.name not in _MACHINERY)


def told(entry: EntryFacts, *, reader: str, clock: Clock) -> Told:
    """One entry as a sentence."""
    person = entry.actor_kind == "human"
    who = (_("You") if entry.actor_id == reader else entry.actor_name) if person else _actor(entry)
    said = said_by(entry)
    return Told(
        stamp=clock.stamp(entry.at),
        short=clock.short(entry.at),
        exact=clock.exact(entry.at),
        initials=marks.initials(entry.actor_name) if person else "",
        icon=_ICONS.get(entry.name, "pulse"),
        says=_sentence(entry, who),
        quote=text.inert(said, 2000) if said and entry.actor_kind != "system" else None,
        code=code_words(entry.reason_code),
        detail=text.inert(said, 300) if said and entry.actor_kind == "system" else None,
        times="",
        saw=_saw(entry),
        number=_("entry {n}").format(n=f"{entry.id:,}"),
        name=entry.name,
        person=person,
        refused=entry.name == REFUSED,
    )


def said_by(entry: EntryFacts) -> str:
    """The reason, the comment or the detail that came with an entry."""
    if entry.reason:
        return entry.reason.strip().removesuffix(":")
    after = entry.after if isinstance(entry.after, dict) else {}
    said = after.get("said") or after.get("text") or ""
    return said if isinstance(said, str) else ""


def _actor(entry: EntryFacts) -> str:
    return entry.actor_name if entry.actor_kind == "agent" else str(_SYSTEM)


def _sentence(entry: EntryFacts, who: str) -> SafeString:
    parts = {
        "who": text.strong(who),
        "step": text.strong(entry.step or "…"),
        "target": _state(entry.target),
    }
    if entry.name == "approval.settled" and entry.target in _SIGNOFFS:
        return text.say(_SIGNOFFS[entry.target], **parts)
    after = entry.after if isinstance(entry.after, dict) else {}
    if entry.name == "human.handoff.started" and after.get("reason") == "reopened":
        return text.say(_("{who} reopened the case as {ref}."), ref=after.get("ref", ""), **parts)
    if entry.name in _SENTENCES:
        return text.say(_SENTENCES[entry.name], **parts)
    if entry.name == REFUSED:
        asked = entry.after.get("verb", "") if isinstance(entry.after, dict) else ""
        return text.say(
            _("{who} asked for “{verb}” and was refused."), verb=str(asked).replace("_", " "), **parts
        )
    sentence = _VERBS.get(entry.name.removeprefix("command."))
    if sentence:
        return text.say(sentence, **parts)
    if entry.source or entry.target:
        return text.say(
            _("{who}: {name}, {source} → {target}"),
            name=entry.name,
            source=_state(entry.source),
            **parts,
        )
    return text.say(_("{who}: {name}"), name=entry.name, **parts)


def _state(name: str) -> str:
    return str(words.STATES[name].word) if name in words.STATES else name


def trail_summary(count: int) -> str:
    """The sentence under the title of the trail."""
    return ngettext("{n} entry, it cannot be edited.", "{n} entries, none can be edited.", count).format(
        n=count
    )


def _saw(entry: EntryFacts) -> str:
    """The version that its author had before them, and the bulk that the case was one of."""
    parts = [] if entry.saw_version is None else [_("saw version {n}").format(n=entry.saw_version)]
    ref = behind(entry.command_id)
    parts += [_("in bulk {ref}").format(ref=ref)] if ref else []
    return " · ".join(parts)
