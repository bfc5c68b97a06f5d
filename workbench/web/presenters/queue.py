"""The queue page: tabs, the sentence with the load, rows in due order. Five counts equal the strip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas.facts import FreezeFacts, QueuePage, QueueRow
from workbench.web.presenters import marks, reasons, words
from workbench.web.presenters.clock import Clock, Due
from workbench.web.presenters.words import Words

COUNTED_TO = 1000
_TROUBLE = ("compensation_failed", "compensation_unknown", "unknown", "rejected", "partial", "sent")


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A saved view: its name, how many cases it holds, and whether it is shown."""

    name: Words
    url: str
    count: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case of the queue, everything in finished words."""

    ref: str
    url: str
    title: str
    about: tuple[str, ...]
    due: Due
    strip: marks.Strip
    counts: tuple[marks.Count, ...]
    why: SafeString
    risk: marks.Risk
    owner: marks.Owner
    closed: bool
    frozen: bool
    version: int


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The whole page. `load` is the sentence under the title; `next_url` the next page or ""."""

    tabs: tuple[Tab, ...]
    view: str
    search: str
    caption: str
    load: str
    rows: tuple[Row, ...]
    next_url: str
    first_url: str
    cursor: str
    changes_url: str
    first_run: bool
    open_count: str
    checked: str


def queue(
    page: QueuePage,
    *,
    counts: Mapping[str, int],
    view: str,
    search: str,
    after: str,
    reader: str,
    clock: Clock,
    freezes: tuple[FreezeFacts, ...] = (),
) -> Queue:
    """The page for one view; `counts` are capped, so a full thousand is shown as "1000+"."""
    base = reverse("queue")
    names = dict(words.VIEWS)
    asked = {"view": view, **({"q": search} if search else {})}
    frozen = any(freeze.applies_to == "all" for freeze in freezes)
    return Queue(
        tabs=tuple(_tab(code, name, counts, view) for code, name in words.VIEWS),
        view=view,
        search=search,
        caption=_("{view}, due first").format(view=names.get(view, view)),
        load=load_sentence(counts),
        rows=tuple(_row(row, reader=reader, clock=clock, frozen=frozen) for row in page.rows),
        next_url=f"{base}?{urlencode({**asked, 'after': page.after})}" if page.after else "",
        first_url=f"{base}?{urlencode(asked)}" if after else "",
        cursor=page.cursor,
        changes_url=f"{reverse('queue-changes')}?{urlencode({**asked, 'since': page.cursor})}",
        first_run=not any(counts.values()),
        open_count=capped(counts.get("open", 0)),
        checked=clock.time(page.now),
    )


def load_sentence(counts: Mapping[str, int]) -> str:
    """The load in one sentence: how many, how many late, how many unknown."""
    open_, late, unknown = (counts.get(name, 0) for name in ("open", "late", "unknown"))
    if not open_:
        return _("Nothing needs a decision.")
    sentences = [ngettext("{n} needs a decision.", "{n} need a decision.", open_).format(n=capped(open_))]
    if late:
        sentences.append(ngettext("{n} is late.", "{n} are late.", late).format(n=capped(late)))
    if unknown:
        sentences.append(
            ngettext("{n} has an unknown outcome.", "{n} have an unknown outcome.", unknown).format(
                n=capped(unknown)
            )
        )
    failed = counts.get("compensation_failed", 0)
    if failed:
        sentences.append(
            ngettext("{n} compensation failed.", "{n} compensations failed.", failed).format(n=capped(failed))
        )
    return sentence_join(sentences)


def sentence_join(sentences: Iterable[str]) -> str:
    """Whole sentences after another; Chinese needs no space between them."""
    parts = [part for part in sentences if part]
    return "".join(part if part[-1:] in "。！？" else f"{part} " for part in parts).rstrip()


def pill(changed: int) -> str:
    """What waits for `U`."""
    return ngettext("{n} new or changed", "{n} new or changed", changed).format(n=changed)


def fresh_url(view: str, search: str) -> str:
    """The first page of a view, read anew."""
    return f"{reverse('queue')}?{urlencode({'view': view, **({'q': search} if search else {})})}"


def capped(count: int) -> str:
    """A count as shown; the server stops counting at a thousand."""
    return f"{COUNTED_TO}+" if count >= COUNTED_TO else str(count)


def _tab(code: str, name: Words, counts: Mapping[str, int], view: str) -> Tab:
    url = f"{reverse('queue')}?{urlencode({'view': code})}"
    return Tab(name=name, url=url, count=capped(counts.get(code, 0)), current=code == view)


def _row(row: QueueRow, *, reader: str, clock: Clock, frozen: bool) -> Row:
    amount = f"{row.amount} {row.currency}".strip() if row.amount else ""
    return Row(
        ref=row.ref,
        url=reverse("case", args=[row.ref]),
        title=row.titles.get(get_language() or "", "") or row.title or row.workflow,
        about=tuple(dict.fromkeys(part for part in (row.business_ref, row.customer, amount) if part)),
        due=clock.due(row.due_at),
        strip=marks.strip(row.strip),
        counts=marks.counts(row.counts),
        why=reasons.short(row.reason, row.params, trouble(row), settled=_settled(row)),
        risk=marks.risk(row.level),
        owner=claimable(
            marks.owner(
                claimed_by=row.claimed_by,
                name=row.claimed_by_name,
                until=row.claim_until,
                since=None,
                reader=reader,
                clock=clock,
            ),
            ref=row.ref,
            version=row.version,
            closed=row.state == "resolved",
        ),
        closed=row.state == "resolved",
        frozen=frozen,
        version=row.version,
    )


def claimable(owner: marks.Owner, *, ref: str, version: int, closed: bool) -> marks.Owner:
    """The owner's cell with where to claim; nobody claims what is closed."""
    url = "" if closed else reverse("claim", args=[ref])
    return replace(owner, ref=ref, version=version, claim_url=url)


def _settled(row: QueueRow) -> bool:
    return not any("unknown" in word for word, __ in marks.words_of(row.strip))


def trouble(row: QueueRow) -> str:
    """The tool that the case is about, when the reason does not name it: the worst mark of the strip."""
    found = sorted(
        (mark for mark in row.strip if mark.state in _TROUBLE), key=lambda mark: _TROUBLE.index(mark.state)
    )
    return found[0].tool if found else ""
