"""Bulks on the screen: the list before anything is sent, how far it is, and what became of every case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workbench.commands import COMMANDS, code_words
from workbench.errors import Sentence
from workbench.queries.bulks import ENDED, BulkFacts, BulkState, MemberFacts, MemberState
from workbench.web.forms import Field
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import StateWord, Words

SHOWN = 200
"""Cases that a page lists; the report has them all."""

MEMBER_WORDS: Mapping[MemberState, StateWord] = {
    MemberState.WAITING: StateWord(icon="wait", word=gettext_lazy("Waiting")),
    MemberState.SENT: StateWord(icon="sent", word=gettext_lazy("Sent, not verified yet"), tone="runt"),
    MemberState.VERIFIED: StateWord(icon="ok", word=gettext_lazy("Verified")),
    MemberState.FAILED: StateWord(icon="bad", word=gettext_lazy("Not done"), tone="badt"),
    MemberState.NO_ANSWER: StateWord(icon="unk", word=gettext_lazy("No answer"), tone="unkt"),
    MemberState.REFUSED: StateWord(icon="lock", word=gettext_lazy("Refused")),
    MemberState.LEFT_OUT: StateWord(icon="held", word=gettext_lazy("Left out")),
    MemberState.UNTOUCHED: StateWord(icon="skip", word=gettext_lazy("Untouched")),
}
DISPOSITIONS: Mapping[str, Words] = {
    "settled": gettext_lazy("settled"),
    "waived": gettext_lazy("waived"),
    "open": gettext_lazy("still open"),
    "unknown": gettext_lazy("no such case"),
}
STATE_WORDS: Mapping[BulkState, StateWord] = {
    BulkState.FROZEN: StateWord(icon="wait", word=gettext_lazy("Not started")),
    BulkState.RUNNING: StateWord(icon="sent", word=gettext_lazy("Running"), tone="run"),
    BulkState.PAUSED: StateWord(icon="held", word=gettext_lazy("Paused"), tone="unk"),
    BulkState.STOPPED: StateWord(icon="bad", word=gettext_lazy("Stopped"), tone="bad"),
    BulkState.FINISHED: StateWord(icon="ok", word=gettext_lazy("At its end"), tone="ok"),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case and its result."""

    ref: str
    url: str
    title: str
    step: str
    first: bool
    state: StateWord
    says: str
    at: str
    now: Words


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many have one result, and the list of only those."""

    state: StateWord
    count: int
    url: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The page of a bulk that was started. `seen` stands for all that a poll would change."""

    ref: str
    title: str
    state: StateWord
    headline: str
    says: str
    why: str
    who: str
    reason: str
    reason_code: Words
    done: int
    of: int
    done_words: str
    tallies: tuple[Tally, ...]
    all_url: str
    rows: tuple[Row, ...]
    more: int
    arrived: str
    ended: bool
    hold_fields: tuple[Field, ...]
    hold_url: str
    can_continue: bool
    can_stop: bool
    why_not: str
    untouched: tuple[str, ...]
    verb: str
    csv_url: str
    jsonl_url: str
    changes_url: str
    seen: str
    checked: str
    announce: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """One bulk in the list of them."""

    ref: str
    url: str
    title: str
    state: StateWord
    says: str
    who: str
    at: str
    trouble: str
    trouble_url: str
    dismiss_url: str
    moves: bool
    seen: str


def title(facts: BulkFacts, tools: Iterable[str] = ()) -> str:
    """What it does, to how many of how many."""
    known = sorted({tool for tool in tools if tool})
    total = facts.included + facts.counts[MemberState.LEFT_OUT]
    parts = {"verb": label(facts.verb, known), "n": facts.included, "of": total}
    return _("{verb}: {n} of {of} cases").format(**parts)


def label(verb: str, tools: Sequence[str] = ()) -> str:
    """The verb as its button says it, with the tool where there is one for all."""
    command = COMMANDS[verb]
    if len(tools) == 1:
        return str(Sentence(command.label, {"tool": tools[0]}))
    return str(command.label_alone or command.label)


# --- While it goes on ---------------------------------------------------------------------------------------------------


def progress(
    facts: BulkFacts,
    members: Sequence[MemberFacts],
    left: Sequence[MemberFacts],
    *,
    shown: str,
    hold_fields: tuple[Field, ...],
    why_not: str,
    clock: Clock,
) -> Progress:
    """How far it is. `shown` is the state that `members` are narrowed to, "" for all; `left` was not touched."""
    ended, paused = facts.state in ENDED, facts.state is BulkState.PAUSED
    own = reverse("bulk-list", args=[facts.ref])
    done = facts.included - facts.under_way
    return Progress(
        ref=facts.ref,
        title=title(facts, (one.tool for one in members)),
        state=STATE_WORDS[facts.state],
        headline=summary(facts),
        says=_now(facts, clock),
        why=str(facts.why) if facts.why.template else "",
        who=_("Started by {who} at {at}").format(who=facts.actor_name, at=clock.time(facts.started_at)),
        reason=facts.reason,
        reason_code=code_words(facts.arguments.get("reason_code", "")),
        done=done,
        of=facts.included,
        done_words=_("{done} of {of} at their end").format(done=done, of=facts.included),
        tallies=tuple(
            Tally(
                state=MEMBER_WORDS[state],
                count=facts.counts[state],
                url=f"{own}?show={state}",
                current=shown == state,
            )
            for state in MemberState
            if facts.counts[state]
        ),
        all_url=own,
        rows=tuple(_row(one, clock) for one in members[:SHOWN]),
        more=max(_total(facts, shown) - SHOWN, 0),
        arrived=_arrived(facts),
        ended=ended,
        hold_fields=hold_fields,
        hold_url=reverse("bulk-continue" if paused else "bulk-pause", args=[facts.ref]),
        can_continue=paused,
        can_stop=facts.state in (BulkState.RUNNING, BulkState.PAUSED) and not why_not,
        why_not="" if ended else why_not,
        untouched=tuple(f"{one.handoff_ref}:{one.version}" for one in left),
        verb=facts.verb,
        csv_url=reverse("bulk-report", args=[facts.ref, "csv"]),
        jsonl_url=reverse("bulk-report", args=[facts.ref, "jsonl"]),
        changes_url=f"{reverse('bulk-changes', args=[facts.ref])}?show={shown}",
        seen=seen(facts),
        checked=clock.time(facts.now),
        announce=summary(facts),
    )


def seen(facts: BulkFacts) -> str:
    """All that a poll would change, as one word."""
    counts = ".".join(str(facts.counts[state]) for state in MemberState)
    return f"{facts.state}.{int(facts.released_at is not None)}.{counts}.{facts.arrived}"


def summary(facts: BulkFacts) -> str:
    """9 verified, 1 no answer, 1 refused."""
    parts = [
        str(text).format(n=facts.counts[state]) for state, text in _COUNTED.items() if facts.counts[state]
    ]
    text = _(", ").join(parts) or _("no case")
    return _("{text}.").format(text=text)


_COUNTED: Mapping[MemberState, Words] = {
    MemberState.VERIFIED: gettext_lazy("{n} verified"),
    MemberState.FAILED: gettext_lazy("{n} not done"),
    MemberState.NO_ANSWER: gettext_lazy("{n} without an answer"),
    MemberState.REFUSED: gettext_lazy("{n} refused"),
    MemberState.SENT: gettext_lazy("{n} sent"),
    MemberState.WAITING: gettext_lazy("{n} waiting"),
    MemberState.UNTOUCHED: gettext_lazy("{n} untouched"),
}


def _now(facts: BulkFacts, clock: Clock) -> str:
    match facts.state:
        case BulkState.FINISHED:
            return _("Every case is at its end since {at}.").format(at=clock.time(facts.ended_at))
        case BulkState.STOPPED:
            return _("Stopped at {at}. Nothing else is sent.").format(at=clock.time(facts.ended_at))
        case BulkState.PAUSED if facts.stands_by:
            text = _("Paused at {at} by {who}. What is under way comes to its end; nothing else is sent.")
            return text.format(at=clock.time(facts.paused_at), who=facts.stands_by)
        case BulkState.PAUSED:
            text = _("It waits since {at}. Continue it when nothing speaks against it any more.")
            return text.format(at=clock.time(facts.paused_at))
        case _ if facts.released_at is None:
            return _("The first cases are being proved. The others have not been touched.")
        case _:
            text = _("The first cases were verified at {at}. The others follow, at most {rate} a second.")
            return text.format(at=clock.time(facts.released_at), rate=f"{facts.per_second:g}")


def _arrived(facts: BulkFacts) -> str:
    if not facts.arrived:
        return _("No similar case has come since the list was frozen.")
    text = ngettext(
        "{n} similar case came after the list was frozen. It is not in it and was not touched.",
        "{n} similar cases came after the list was frozen. They are not in it and were not touched.",
        facts.arrived,
    )
    return text.format(n=facts.arrived)


def _total(facts: BulkFacts, shown: str) -> int:
    return sum(number for state, number in facts.counts.items() if shown in ("", state))


def _row(one: MemberFacts, clock: Clock) -> Row:
    return Row(
        ref=one.handoff_ref,
        url=reverse("case", args=[one.handoff_ref]),
        title=one.title,
        step=one.step,
        first=one.first,
        state=MEMBER_WORDS[one.state],
        says=str(one.said) if one.said.template else "",
        at=clock.time(one.settled_at or one.sent_at),
        now=DISPOSITIONS.get(one.disposition, one.disposition),
    )


# --- All of them --------------------------------------------------------------------------------------------------------


def lines(found: Iterable[BulkFacts], clock: Clock, *, reader: str = "") -> tuple[Line, ...]:
    """Those that were started, newest first."""
    return tuple(_line(one, clock, reader) for one in found)


def _line(one: BulkFacts, clock: Clock, reader: str) -> Line:
    url = reverse("bulk-list", args=[one.ref])
    odd = {state: one.counts[state] for state in _TROUBLE if one.counts[state]}
    trouble = sum(odd.values())
    own = one.state in ENDED and one.actor_id == reader
    return Line(
        ref=one.ref,
        url=url,
        title=title(one),
        state=STATE_WORDS[one.state],
        says=summary(one),
        who=one.actor_name,
        at=clock.time(one.started_at),
        trouble=_("Show the {n}").format(n=trouble) if trouble else "",
        trouble_url=f"{url}?show={next(iter(odd))}" if len(odd) == 1 else url,
        dismiss_url=reverse("bulk-dismiss", args=[one.ref]) if own else "",
        moves=one.state not in ENDED,
        seen=seen(one),
    )


_TROUBLE = (MemberState.FAILED, MemberState.NO_ANSWER, MemberState.REFUSED)


def above_the_queue(found: Collection[Line]) -> dict[str, object]:
    """The lines for their template, whether one of them is under way, and all that a poll would change as one word."""
    return {
        "bulk_lines": found,
        "bulk_hurry": any(one.moves for one in found),
        "bulk_seen": "-".join(f"{one.ref}.{one.seen}" for one in found),
    }
