"""The queue of handoffs as it is read: filters, pages in due order, groups, counts, changes. Writes nothing.

One place says which handoffs a filter means, so that a page, a tab's count and the news of a page cannot differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import Count, F, Min, Q, QuerySet, Window
from django.db.models.fields.json import KT
from django.db.models.functions import RowNumber

from sagas.facts import (
    Closing,
    Counts,
    QueueChanges,
    QueueChoices,
    QueueFilter,
    QueueGroup,
    QueuePage,
    QueueRow,
    StripMark,
)
from sagas.models import Action, Compensation, Entry, Handoff
from sagas.models.clock import DatabaseNow
from sagas.pagekeys import page_key, read_page_key
from sagas.queries import CAP
from sagas.states import HandoffState, Machine
from tools.contract import Level

STATES = ("open", "unknown", "compensation_failed", "signoff", "closed", "any")
DUE = {"late": 0, "1h": 1, "8h": 8, "24h": 24}
"""How far ahead a due time may be, in hours."""
MEMBERS, UNFOLDED = 500, 2
"""How many members of a group a page knows, and how many rows it shows of one that is not folded."""
_EVERYTHING = QueueFilter()


def page(
    wanted: QueueFilter = _EVERYTHING,
    *,
    actor_id: str = "",
    after: str = "",
    limit: int = 50,
    grouped: bool = False,
    folded: Iterable[str] = (),
) -> QueuePage:
    """A page in due order (closed ones: newest first); `grouped` folds those that are alike into the first of them.

    A fixed number of queries however many rows. Raises `ValueError` for a filter or a key that is none.
    """
    with connection.cursor() as cursor:
        # The snapshot first: what commits after it is a change to this page, even if the rows below show it already.
        cursor.execute("SELECT now_(), pg_current_snapshot()::text")
        now, snapshot = cursor.fetchone()
    every = _matching(wanted, actor_id)
    closed = wanted.state == "closed"
    rows = every if not grouped or closed else Handoff.objects.filter(pk__in=_heads(every))
    rows = rows.order_by(*(("-resolved_at", "-id") if closed else ("due_at", "id")))
    if after:
        at, pk = read_page_key(after)
        rows = rows.filter(
            Q(resolved_at__lt=at) | Q(resolved_at=at, id__lt=pk)
            if closed
            else Q(due_at__gt=at) | Q(due_at=at, id__gt=pk)
        )
        rows = rows.filter(resolved_at__lte=at) if closed else rows.filter(due_at__gte=at)
    found = list(rows[: limit + 1])
    shown = tuple(_row(row) for row in found[:limit])
    last = found[limit - 1] if len(found) > limit else None
    following = "" if last is None else page_key(last.resolved_at if closed else last.due_at, last.pk)
    groups = _groups(every, shown, frozenset(folded)) if grouped and not closed else ()
    return QueuePage(rows=shown, after=following, now=now, cursor=snapshot, groups=groups)


def rows_of(refs: Iterable[str]) -> Mapping[str, QueueRow]:
    """The rows of these handoffs as they are now, whatever a filter says of them."""
    return {row.ref: _row(row) for row in Handoff.objects.filter(ref__in=list(refs))}


def closings(refs: Iterable[str]) -> Mapping[str, Closing]:
    """Who closed these handoffs, and when; those that are open are left out."""
    closed = {row.pk: row for row in Handoff.objects.filter(ref__in=list(refs), state=HandoffState.RESOLVED)}
    entries = Entry.objects.filter(
        machine=Machine.HANDOFF, object_id__in=list(closed), target=HandoffState.RESOLVED
    ).order_by("object_version")
    return {
        closed[entry.object_id].ref: Closing(by=entry.actor_name, at=entry.at)
        for entry in entries
        if entry.object_id in closed
    }


def counts(actor_id: str) -> Mapping[str, int]:
    """The load in numbers, each capped at `CAP`: what is open, mine, nobody's, unknown, failed, closed, late."""
    return count(
        {
            "open": _EVERYTHING,
            "mine": QueueFilter(owner="me"),
            "unclaimed": QueueFilter(owner="nobody"),
            "unknown": QueueFilter(state="unknown"),
            "compensation_failed": QueueFilter(state="compensation_failed"),
            "closed": QueueFilter(state="closed"),
            "late": QueueFilter(due="late"),
        },
        actor_id,
    )


def count(filters: Mapping[str, QueueFilter], actor_id: str) -> Mapping[str, int]:
    """How many handoffs each filter means, each capped at `CAP`, in one statement. Raises `ValueError`."""
    parts: list[str] = []
    given: list[Any] = []
    for wanted in filters.values():
        query, params = _statement(wanted, actor_id)
        parts.append(f"(SELECT count(*) FROM ({query}) part)")  # noqa: S608  made by the query builder
        given += params
    if not parts:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", given)
        return dict(zip(filters, cursor.fetchone(), strict=True))


@lru_cache(maxsize=512)
def _statement(wanted: QueueFilter, actor_id: str) -> tuple[str, tuple[Any, ...]]:
    """What finds the handoffs of a filter, up to `CAP`; the same tabs are counted by everybody all day long."""
    query, params = _matching(wanted, actor_id).values("pk")[:CAP].query.sql_with_params()
    return query, tuple(params)


def at_stake() -> tuple[tuple[str, str], ...]:
    """The amounts of the open cases with an effect outside, summed for each currency: (amount, currency)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum((summary->>'amount')::numeric)::text, summary->>'currency' FROM sagas_handoff "
            "WHERE state <> 'resolved' AND touches_money AND summary->>'amount' ~ '^[0-9]{1,15}([.][0-9]{1,6})?$' "
            "GROUP BY 2 ORDER BY 2"
        )
        return tuple((str(amount), str(currency)) for amount, currency in cursor.fetchall())


def changes(since: str) -> QueueChanges:
    """The handoffs changed by transactions that the page with this cursor could not see.

    Exact: a transaction that commits late is not skipped, because snapshots are compared and not sequences.
    Raises `ValueError` for a cursor that is none.
    """
    xmin = since.partition(":")[0]
    if not xmin.isdigit():
        raise ValueError("this is not a cursor of a queue page")
    with connection.cursor() as cursor:
        # The new cursor in the statement itself: it must see no more and no less than the rows beside it.
        cursor.execute(
            "SELECT pg_current_snapshot()::text, ARRAY(SELECT ref FROM sagas_handoff WHERE changed_xid >= %s "
            "AND NOT pg_visible_in_snapshot(changed_xid::text::xid8, %s::pg_snapshot) ORDER BY id LIMIT %s)",
            [int(xmin), since, CAP],
        )
        cursor_now, refs = cursor.fetchone()
    return QueueChanges(refs=tuple(refs), cursor=cursor_now)


def watched() -> tuple[int, int | None]:
    """How many steps of unknown outcome are being asked about, capped, and in how many seconds the next one is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), greatest(extract(epoch FROM min(due_at) - now_()), 0)::int FROM ("
            "SELECT due_at FROM sagas_action WHERE state = 'unknown' AND due_at IS NOT NULL "
            "ORDER BY due_at LIMIT %s) part",
            [CAP],
        )
        asked, seconds = cursor.fetchone()
    return int(asked), seconds


def choices() -> QueueChoices:
    """What the open handoffs can be told apart by."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(DISTINCT workflow), array_agg(DISTINCT reason), "
            "(SELECT array_agg(DISTINCT tool) FROM sagas_handoff, jsonb_array_elements_text(summary->'tools') tool "
            " WHERE state <> 'resolved'), "
            "coalesce(jsonb_object_agg(claimed_by, claimed_by_name) FILTER (WHERE claimed_by <> ''), '{}')::text "
            "FROM sagas_handoff WHERE state <> 'resolved'"
        )
        workflows, reasons, tools, owners = cursor.fetchone()
    return QueueChoices(
        workflows=tuple(name for name in workflows or () if name),
        reasons=tuple(reasons or ()),
        tools=tuple(tools or ()),
        owners=tuple(sorted(json.loads(owners).items(), key=lambda one: str(one[1]))),
    )


# --- Which handoffs a filter means ------------------------------------------------------------------------------


def _matching(wanted: QueueFilter, actor_id: str) -> QuerySet[Handoff]:
    rows = _in_state(wanted.state)
    plain = {"workflow": wanted.workflow, "reason": wanted.reason, "similar": wanted.similar}
    rows = rows.filter(**{name: value for name, value in plain.items() if value})
    if wanted.tool:
        rows = rows.filter(summary__contains={"tools": [wanted.tool]})
    if wanted.level:
        levels = [str(level) for level in Level]
        rows = rows.filter(level__in=levels[_index(levels, wanted.level) :])
    if wanted.owner:
        rows = rows.filter(_owned_by(wanted.owner, actor_id))
    match wanted.touched:
        case "":
            pass
        case "money":
            rows = rows.filter(touches_money=True)
        case "customers":
            rows = rows.filter(touches_customer=True)
        case _:
            raise ValueError(f"nothing is touched that is called {wanted.touched!r}")
    if wanted.due:
        rows = rows.filter(due_at__lt=DatabaseNow() + timedelta(hours=DUE[_known(wanted.due, DUE)]))
    return rows.filter(_found_by(wanted.search.strip())) if wanted.search.strip() else rows


def _in_state(state: str) -> QuerySet[Handoff]:
    open_ones = Handoff.objects.exclude(state=HandoffState.RESOLVED)
    match state:
        case "open":
            return open_ones
        case "unknown":
            return open_ones.filter(unknowns__gt=0)
        case "compensation_failed":
            return open_ones.filter(compensation_failed=True)
        case "signoff":
            return open_ones.filter(signoff=True)
        case "closed":
            return Handoff.objects.filter(state=HandoffState.RESOLVED)
        case "any":
            return Handoff.objects.all()
        case _:
            raise ValueError(f"no handoff is in a state {state!r}")


def _owned_by(owner: str, actor_id: str) -> Q:
    """Whose it is; a claim that has run out is nobody's, as the screen says."""
    lapsed = Q(claim_until__lte=DatabaseNow())
    if owner == "nobody":
        return Q(claimed_by="") | lapsed
    holder = actor_id if owner == "me" else owner
    return Q(claimed_by=holder) & ~Q(claimed_by="") & ~lapsed


def _found_by(text: str) -> Q:
    """By a part of its reference, business reference or customer; by a whole key or provider's reference."""
    actions = Action.objects.filter(Q(key=text) | Q(provider_ref=text)).values("run")
    compensations = Compensation.objects.filter(Q(key=text) | Q(provider_ref=text)).values("run")
    return Q(search__contains=text.lower()) | Q(run__in=actions) | Q(run__in=compensations)


def _index(values: list[str], value: str) -> int:
    return values.index(_known(value, values))


def _known(value: str, values: Iterable[str]) -> str:
    if value not in values:
        raise ValueError(f"{value!r} is none of {', '.join(values)}")
    return value


# --- Groups -----------------------------------------------------------------------------------------------------


def _heads(every: QuerySet[Handoff]) -> QuerySet[Any, Any]:
    """The first of each group, and all that are like no other; of the whole view, whatever page is shown."""
    order = Window(RowNumber(), partition_by=F("similar"), order_by=["due_at", "id"])
    return every.annotate(nth=order).filter(Q(similar="") | Q(similar=None) | Q(nth=1)).values("pk")


def _groups(
    every: QuerySet[Handoff], shown: tuple[QueueRow, ...], folded: frozenset[str]
) -> tuple[QueueGroup, ...]:
    keys = [row.similar for row in shown if row.similar]
    told = {
        one["similar"]: one
        for one in every.filter(similar__in=keys)
        .values("similar")
        .annotate(together=Count("pk"), first=Min("due_at"), since=Min("opened_at"))
        .filter(together__gt=1)
    }
    members: dict[str, list[tuple[str, int]]] = {key: [] for key in told}
    order = Window(RowNumber(), partition_by=F("similar"), order_by=["due_at", "id"])
    alike = every.filter(similar__in=list(told)).annotate(nth=order).filter(nth__lte=MEMBERS)
    versions = alike.order_by("due_at", "id").values_list("similar", "ref", KT("summary__version"))
    for key, ref, version in versions:
        members[key].append((ref, int(version)))
    rows: dict[str, list[QueueRow]] = {}
    for row in alike.filter(nth__lte=UNFOLDED, similar__in=told.keys() - folded).order_by("due_at", "id"):
        rows.setdefault(row.similar, []).append(_row(row))
    return tuple(
        _group(key, one, members[key], rows.get(key, ()))
        for key, one in sorted(told.items(), key=lambda item: keys.index(item[0]))
    )


def _group(
    key: str, told: Mapping[str, Any], members: list[tuple[str, int]], rows: Iterable[QueueRow]
) -> QueueGroup:
    tool, error_class, state, _ = key.split("|")
    return QueueGroup(
        key=key,
        tool=tool,
        error_class=error_class,
        state=state,
        count=told["together"],
        first_due_at=told["first"],
        since=told["since"],
        members=tuple(members),
        rows=tuple(rows),
    )


def _row(row: Handoff) -> QueueRow:
    small: dict[str, Any] = row.summary
    return QueueRow(
        id=row.pk,
        ref=row.ref,
        run_ref=small["run_ref"],
        version=small["version"],
        state=row.state,
        title=small["title"],
        business_ref=small["business_ref"],
        customer=small["customer"],
        amount=small["amount"],
        currency=small["currency"],
        workflow=small["workflow"],
        workflow_version=small["workflow_version"],
        reason=row.reason,
        params=row.params,
        level=small["level"],
        irreversible_confirmed=small["irreversible_confirmed"],
        strip=tuple(
            StripMark(
                position=mark[0],
                step=mark[1],
                tool=mark[2],
                state=mark[3],
                recovery_class=mark[4],
                items=tuple((word, number) for word, number in (mark[5] if len(mark) > 5 else ())),
            )
            for mark in small["strip"]
        ),
        counts=Counts(
            ok=small["counts"][0],
            failed=small["counts"][1],
            unknown=small["counts"][2],
            irreversible=small["counts"][3],
            compensable=small["counts"][4],
        ),
        due_at=row.due_at,
        escalation=row.escalation,
        claimed_by=row.claimed_by,
        claimed_by_name=row.claimed_by_name,
        claim_until=row.claim_until,
        titles=small.get("titles", {}),
        team=small.get("team", ""),
        touches_money=small.get("touches_money", False),
        touches_customer=small.get("touches_customer", False),
        similar=small.get("similar", ""),
        closed_at=row.resolved_at,
        wanted_by_name=row.wanted_by_name if row.is_wanted else "",
    )
