"""Sign-offs: the list of requests, what came of signing, and the word on other pages that something waits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from sagas.facts import ActionFacts, SignoffPage, SignoffRow
from sagas.states import PermitState
from workbench.commands import Result
from workbench.errors import Answer, Refusal
from workbench.policies import signoff_risk
from workbench.web.presenters import marks, results, text
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.queue import capped, sentence_join
from workbench.web.presenters.words import StateWord, Words

STATES: dict[str, StateWord] = {
    "requested": StateWord(icon="held", word=gettext_lazy("Waits for a signature")),
    "granted": StateWord(icon="ok", word=gettext_lazy("Signed")),
    "consumed": StateWord(icon="ok", word=gettext_lazy("Signed")),
    "rejected": StateWord(icon="bad", word=gettext_lazy("Rejected"), tone="badt"),
    "expired": StateWord(icon="clock", word=gettext_lazy("Expired")),
    "withdrawn": StateWord(icon="skip", word=gettext_lazy("Void")),
}


@dataclass(frozen=True, kw_only=True)
class Tab:
    """Open or decided ones."""

    name: Words
    url: str
    count: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One request of the list. `locked` is the server's own reason why this reader cannot sign it."""

    ref: str
    url: str
    title: str
    about: tuple[str, ...]
    who: Words
    asked: str
    why: SafeString
    quoted: bool
    risk: marks.Risk
    left: str
    late: bool
    until: str
    locked: str
    state: StateWord
    decided: str


@dataclass(frozen=True, kw_only=True)
class SignoffList:
    """The page of requests."""

    tabs: tuple[Tab, ...]
    decided: bool
    says: str
    rows: tuple[Row, ...]
    next_url: str
    first_url: str
    changes_url: str
    checked: str


# --- The list -----------------------------------------------------------------------------------------------


def listing(
    page: SignoffPage,
    *,
    decided: bool,
    open_count: int,
    locked: dict[str, Refusal | None],
    reader: str,
    clock: Clock,
    after: str,
) -> SignoffList:
    """The page; `locked` says for each reference why the reader cannot sign it."""
    base, asked = reverse("signoffs"), {"view": "decided"} if decided else {}
    rows = tuple(_row(row, locked.get(row.ref), reader=reader, clock=clock) for row in page.rows)
    return SignoffList(
        tabs=(
            Tab(name=_("Waiting"), url=base, count=capped(open_count), current=not decided),
            Tab(name=_("Decided"), url=f"{base}?{urlencode({'view': 'decided'})}", count="", current=decided),
        ),
        decided=decided,
        says="" if decided else _load(rows),
        rows=rows,
        next_url=f"{base}?{urlencode({**asked, 'after': page.after})}" if page.after else "",
        first_url=f"{base}?{urlencode(asked)}" if after else "",
        changes_url=f"{reverse('signoffs-changes')}?{urlencode({'since': fingerprint(page)})}",
        checked=clock.time(page.now),
    )


def fingerprint(page: SignoffPage) -> str:
    """What a page of open requests shows, as one word to compare it by."""
    shown = " ".join(f"{row.ref}.{row.state}.{row.expires_at <= page.now}" for row in page.rows)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def pill() -> str:
    """What waits for `U`."""
    return _("Something has changed")


def list_url() -> str:
    """The open requests, read anew."""
    return reverse("signoffs")


def _load(rows: tuple[Row, ...]) -> str:
    mine = sum(not row.locked and not row.late for row in rows)
    bound = _("Each is bound to one exact call; if the call changes, the request is void.")
    if not mine:
        return sentence_join([_("Nothing waits for your signature."), bound])
    waiting = ngettext("{n} waits for you.", "{n} wait for you.", mine).format(n=mine)
    return sentence_join([waiting, bound])


def _row(row: SignoffRow, refusal: Refusal | None, *, reader: str, clock: Clock) -> Row:
    who = asker(row.asked_by, row.asked_by_name, reader)
    amount = f"{row.amount} {row.currency}".strip() if row.amount else ""
    late = row.expires_at <= clock.now
    state = STATES[row.state]
    decided = [str(state.word), row.decided_by_name, clock.short(row.decided_at)]
    return Row(
        ref=row.ref,
        url=reverse("signoff", args=[row.ref]),
        title=title_of(row.title, forward=row.forward),
        about=tuple(
            part
            for part in (row.ref, f"{row.tool} · {row.system}", row.business_ref, row.run_title, amount)
            if part
        ),
        who=who,
        asked=clock.short(row.requested_at),
        why=text.inert(row.why.rstrip(": "), 300),
        quoted=bool(row.asked_by),
        risk=marks.risk(signoff_risk(row.level, row.amount)),
        left=_("Expired") if late else left(row.expires_at, clock),
        late=late,
        until=clock.time(row.expires_at),
        locked=str(refusal.sentence) if refusal else "",
        state=state,
        decided=" · ".join(part for part in decided[1:] if part),
    )


def title_of(done: str, *, forward: bool) -> str:
    """What would run, in business words: the step itself, or what it makes up for."""
    return done if forward else _("Compensate “{title}”").format(title=done)


def left(until: datetime, clock: Clock) -> str:
    """How long a request can still be signed: minutes with seconds, because they matter here."""
    seconds = max(int((until - clock.now).total_seconds()), 0)
    minutes, rest = divmod(seconds, 60)
    return _("{minutes} m {seconds} s").format(minutes=minutes, seconds=rest) if minutes else span_words(rest)


def asker(asked_by: str, name: str, reader: str) -> Words:
    """Who asked for it, as this reader is told."""
    if not asked_by:
        return _("The run itself")
    return _("You") if asked_by == reader else name


# --- Results ------------------------------------------------------------------------------------------------


def result(done: Result, clock: Clock) -> results.Shown:
    """What came of signing or rejecting; after any refusal it says that no signature was taken."""
    if done.status is Answer.DUPLICATE or done.field_errors:
        return replace(results.result(done, step="", url="", clock=clock), on_top=True)
    says = str(done.sentence)
    if done.status is Answer.UNCONFIRMED:
        return not_confirmed(Refusal(answer=done.status, code=done.code, sentence=done.sentence))
    if done.accepted:
        icon = "sign" if done.verb == "sign" else "ok"
        return results.Shown(
            tone="ok", icon=icon, headline=says, on_top=True, command_id=done.command_id, announce=says
        )
    icons = {Answer.FROZEN: "pause", Answer.EXPIRED: "clock", Answer.FORBIDDEN: "lock"}
    return results.Shown(
        tone="bad" if done.status is Answer.FORBIDDEN else "unk",
        icon=icons.get(done.status, "warn"),
        headline=says,
        says="" if _("No signature was taken.") in says else _("No signature was taken."),
        alert=True,
        on_top=True,
        command_id=done.command_id,
        announce=says,
    )


def not_confirmed(refusal: Refusal) -> results.Shown:
    """The password is asked for, was not theirs, or was tried too often."""
    says = str(refusal.sentence)
    problem = results.Problem(name="password", says=_("Type your password and sign again."))
    return results.Shown(
        tone="unk",
        icon="clock" if refusal.answer is Answer.TOO_MANY else "lock",
        headline=says,
        says=_("No signature was taken."),
        alert=True,
        on_top=True,
        problems=(problem,),
        announce=says,
    )


# --- On other pages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A request that a case or a run waits for."""

    ref: str
    url: str
    title: str
    left: str


def pending(actions: Iterable[ActionFacts], clock: Clock) -> tuple[Pending, ...]:
    """The open requests among these actions, for the pages that show the run."""
    waiting = (
        (action, permit, permit is action.permit)
        for whole in actions
        for action in (whole, *whole.items)
        for permit in (action.permit, action.compensation.permit if action.compensation else None)
        if permit is not None
    )
    return tuple(
        Pending(
            ref=permit.ref,
            url=reverse("signoff", args=[permit.ref]),
            title=title_of(action.contract.texts.title, forward=forward),
            left=left(permit.expires_at, clock),
        )
        for action, permit, forward in waiting
        if permit.state is PermitState.REQUESTED and permit.expires_at > clock.now
    )
