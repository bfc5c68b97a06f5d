"""The rows of the queue: single cases and groups of similar ones, in due order. Five counts equal the strip."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas import api
from sagas.facts import Closing, FreezeFacts, QueueFilter, QueueGroup, QueuePage, QueueRow
from workbench.queries.views import View
from workbench.web.presenters import marks, reasons, text, words
from workbench.web.presenters.clock import Clock, Due
from workbench.web.presenters.steps import error_words
from workbench.web.presenters.words import Words

COUNTED_TO = 1000

type Viewers = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case of the queue, everything in finished words. `closed_by` says who closed it and when; `left` that it
    is open, but none of this view any more; either is `gone` from a page that is shown. `kid`: it stands below the head
    of its group. `holder` is the user name of who has claimed it.
    """

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
    viewing: str = ""
    closed_by: str = ""
    left: str = ""
    gone: bool = False
    kid: bool = False
    holder: str = ""
    wanted: str = ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The head of a group of similar cases. `members` are values of the checkboxes that stand for them."""

    id: str
    due: Due
    first: str
    title: SafeString
    says: str
    look: words.StateWord
    times: str
    folded: bool
    fold_url: str
    all_url: str
    more: str
    members: tuple[str, ...]
    rows: tuple[Row, ...]
    count: int


@dataclass(frozen=True, kw_only=True)
class Teller:
    """Turns what was read into rows for one reader at one moment."""

    reader: str
    clock: Clock
    freezes: tuple[FreezeFacts, ...] = ()
    viewers: Viewers | None = None

    def row(
        self, row: QueueRow, *, closing: Closing | None = None, left: bool = False, kid: bool = False
    ) -> Row:
        """One case. `closing` and `left` tell what became of a row that is on a page, but not of its view any more."""
        amount = f"{row.amount} {row.currency}".strip() if row.amount else ""
        closed = row.state == "resolved"
        mark = api.trouble(row.strip)
        owner = marks.owner(
            claimed_by=row.claimed_by,
            name=row.claimed_by_name,
            until=row.claim_until,
            since=None,
            reader=self.reader,
            clock=self.clock,
        )
        return Row(
            ref=row.ref,
            url=reverse("case", args=[row.ref]),
            title=row.titles.get(get_language() or "", "") or row.title or row.workflow,
            about=tuple(dict.fromkeys(part for part in (row.business_ref, row.customer, amount) if part)),
            due=self.clock.due(row.due_at),
            strip=marks.strip(row.strip),
            counts=marks.counts(row.counts),
            why=reasons.short(row.reason, row.params, mark.tool if mark else "", settled=_settled(row)),
            risk=marks.risk(row.level),
            owner=claimable(owner, ref=row.ref, version=row.version, closed=closed),
            closed=closed,
            frozen=not closed and any(_covers(freeze, row) for freeze in self.freezes),
            version=row.version,
            viewing=viewing((self.viewers or {}).get(row.ref, ()), owner=row.claimed_by, reader=self.reader),
            closed_by=self._closed_by(row, closing) if closed else "",
            left=_("Not in this view any more") if left and not closed else "",
            gone=left,
            kid=kid,
            holder=row.claimed_by,
            wanted=_("{who} asks for it").format(who=row.wanted_by_name)
            if row.wanted_by_name and not closed and not owner.nobody
            else "",
        )

    def _closed_by(self, row: QueueRow, closing: Closing | None) -> str:
        if closing is None:
            return _("Closed {at}").format(at=self.clock.short(row.closed_at))
        return _("Closed by {who} {at}").format(who=closing.by, at=self.clock.short(closing.at))

    def group(self, group: QueueGroup, *, view: View, folded: frozenset[str]) -> Group:
        """The head of a group; `folded` are the ids of those whose rows are not shown."""
        mine = group_id(group.key)
        look = words.state(group.state)
        hidden = group.count - len(group.rows)
        inside = View(filter=replace(view.filter, similar=group.key))
        return Group(
            id=mine,
            due=self.clock.due(group.first_due_at),
            first=_("first of {n}").format(n=group.count),
            title=_title(group, look),
            says=ngettext(
                "{n} case since {at}: same tool, same error, same state",
                "{n} cases since {at}: same tool, same error, same state",
                group.count,
            ).format(n=group.count, at=self.clock.short(group.since)),
            look=look,
            times=f"{group.count} × {group.tool}",
            folded=mine in folded,
            fold_url=address(view, fold=folded ^ {mine}),
            all_url=address(inside),
            more=ngettext("Show {n} more in this group", "Show {n} more in this group", hidden).format(
                n=hidden
            )
            if hidden and group.rows
            else "",
            members=tuple(f"{ref}:{version}" for ref, version in group.members),
            rows=tuple(self.row(row, kid=True) for row in group.rows),
            count=group.count,
        )

    def entries(self, page: QueuePage, *, view: View, folded: frozenset[str]) -> tuple[Row | Group, ...]:
        """A page: where a row heads a group, the group stands in its place."""
        groups = {group.key: group for group in page.groups}
        return tuple(
            self.group(groups[row.similar], view=view, folded=folded)
            if row.similar in groups
            else self.row(row)
            for row in page.rows
        )


def _title(group: QueueGroup, look: words.StateWord) -> SafeString:
    """What the members have in common, in words: the tool, how its call stands, and the kind of error."""
    error = error_words(group.error_class) if group.error_class else ""
    if not error:
        return text.say(_("{tool}: {state}"), tool=group.tool, state=look.word)
    return text.say(_("{tool}: {state}, {error}"), tool=group.tool, state=look.word, error=error)


def group_id(key: str) -> str:
    """A short name of a group, for addresses and for elements."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def address(view: View, *, fold: Iterable[str] = (), size: int = 0, after: str = "") -> str:
    """Where a view is shown."""
    more = [("fold", one) for one in sorted(fold)]
    more += [("rows", str(size))] if size else []
    more += [("after", after)] if after else []
    query = "&".join(part for part in (view.query, urlencode(more)) if part)
    return f"{reverse('queue')}?{query}" if query else reverse("queue")


def viewing(viewers: Iterable[tuple[str, str]], *, owner: str, reader: str) -> str:
    """Who else looks at a case just now; of its owner the word alone, the name stands beside it."""
    others = [(who, name) for who, name in viewers if who != reader]
    if not others:
        return ""
    if [who for who, __ in others] == [owner]:
        return _("viewing")
    return _("{who} viewing").format(who=_(", ").join(name for __, name in others))


def load_sentence(counts: Mapping[str, int], at_stake: Sequence[tuple[str, str]] = ()) -> str:
    """The load in one line: how many, how many late, how many unknown, and what is at stake."""
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
    if at_stake:
        amounts = _(" and ").join(f"{amount} {currency}".strip() for amount, currency in at_stake)
        sentences.append(_("{amounts} at stake.").format(amounts=amounts))
    return sentence_join(sentences)


def sentence_join(sentences: Iterable[str]) -> str:
    """Whole sentences after another; Chinese needs no space between them."""
    parts = [part for part in sentences if part]
    return "".join(part if part[-1:] in "。！？" else f"{part} " for part in parts).rstrip()


def capped(count: int) -> str:
    """A count as shown; the server stops counting at a thousand."""
    return f"{COUNTED_TO}+" if count >= COUNTED_TO else str(count)


def claimable(owner: marks.Owner, *, ref: str, version: int, closed: bool) -> marks.Owner:
    """The owner's cell with where to claim; nobody claims what is closed."""
    url = "" if closed else reverse("claim", args=[ref])
    return replace(owner, ref=ref, version=version, claim_url=url)


def _settled(row: QueueRow) -> bool:
    return not any("unknown" in word for word, __ in marks.words_of(row.strip))


def _covers(freeze: FreezeFacts, row: QueueRow) -> bool:
    """Whether a freeze holds back some call of this case."""
    kind, _colon, name = freeze.applies_to.partition(":")
    match kind:
        case "tool":
            return any(mark.tool == name for mark in row.strip)
        case "workflow":
            return row.workflow == name
        case "team":
            return row.team == name
        case _:
            return True


# --- What is new ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What a fresh page would change of the one that is shown: rows that would come, and rows that would go or move."""

    new: int = 0
    changed: int = 0
    gone: frozenset[str] = frozenset()


def places(page: QueuePage) -> tuple[str, ...]:
    """What stands on a page, in its order: references, and groups as id and number of members."""
    groups = {group.key: group for group in page.groups}
    found: list[str] = []
    for row in page.rows:
        group = groups.get(row.similar)
        if group is None:
            found.append(row.ref)
        else:
            found.append(f"{group_id(group.key)}x{group.count}")
            found += [one.ref for one in group.rows]
    return tuple(found)


def difference(shown: Sequence[str], fresh: Sequence[str], touched: Iterable[str]) -> Difference:
    """How the page that is shown differs from a fresh one; `touched` are the cases that changed in between."""
    was, now = _sizes(shown), _sizes(fresh)
    rows_was, rows_now = [one for one in shown if one not in was], [one for one in fresh if one not in now]
    heads_was, heads_now = _heads(was), _heads(now)
    new = len(set(rows_now) - set(rows_was))
    new += sum(max(number - heads_was.get(head, 0), 0) for head, number in heads_now.items())
    gone = frozenset(rows_was) - frozenset(rows_now)
    fewer = sum(max(number - heads_now.get(head, 0), 0) for head, number in heads_was.items())
    stay_was = [one for one in rows_was if one in set(rows_now)]
    stay_now = [one for one in rows_now if one in set(rows_was)]
    moved = {ref for ref in touched if ref in set(stay_was) and stay_was.index(ref) != stay_now.index(ref)}
    return Difference(new=new, changed=len(gone) + fewer + len(moved), gone=gone)


def _sizes(places: Sequence[str]) -> frozenset[str]:
    return frozenset(one for one in places if "x" in one and not one.startswith("HF-"))


def _heads(sizes: Iterable[str]) -> dict[str, int]:
    return {head: int(number) for head, _x, number in (one.partition("x") for one in sizes)}


def pill(found: Difference) -> str:
    """What waits for `U`: 3 new, 1 changed."""
    new = ngettext("{n} new", "{n} new", found.new).format(n=found.new) if found.new else ""
    changed = (
        ngettext("{n} changed", "{n} changed", found.changed).format(n=found.changed) if found.changed else ""
    )
    return _(", ").join(part for part in (new, changed) if part)


def caption(view: View, name: Words) -> str:
    """What the table is."""
    if view.filter.state == "closed":
        return _("{view}, last closed first").format(view=name)
    return _("{view}, due first").format(view=name)


def only_search(view: View) -> bool:
    """Whether nothing but words were asked for."""
    return view.filter == QueueFilter(search=view.filter.search)
