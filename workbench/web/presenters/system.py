"""The system page: eight numbers with their limits, alarms with what to do, workers, freezes, providers.

A part that could not be read says so; it is never shown as zero, and never as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.api import Alarm
from sagas.facts import FreezeFacts, GateFacts
from sagas.readings import (
    BrokerSeen,
    Counted,
    DatabaseSeen,
    OutboxSeen,
    Outstanding,
    ReconciliationSeen,
    SystemLately,
    Waiting,
    WorkerSeen,
)
from workbench.queries.system import Part, Vitals
from workbench.web.presenters import alarm_words, shares
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.gates import GateRow, holding
from workbench.web.presenters.shares import milliseconds
from workbench.web.presenters.shell import freeze_what
from workbench.web.presenters.words import Words

NOT_MOVING_S, LAGGING_S, UNHEARD_S = 30, 60, 60
SKEW_S = 2.0
"""How far a server's clock may be from the database's: answers are timed by the one, windows close by the other."""
CROWDED = 0.8
"""As long as runs and events may wait before an alarm says so; the share of connections that is too many."""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One number: what it is, its mark, what stands below it, and when it was read."""

    name: Words
    icon: str
    word: Words
    value: str
    about: str
    read_at: str


@dataclass(frozen=True, kw_only=True)
class AlarmRow:
    """An alarm in force with its remedy."""

    icon: str
    code: str
    means: Words
    do: Words
    count: str
    since: str


@dataclass(frozen=True, kw_only=True)
class WorkerRow:
    """A live incarnation."""

    id: str
    kind: str
    place: str
    started: str
    lease: str
    late: bool
    beat: str
    runs: int


@dataclass(frozen=True, kw_only=True)
class FreezeRow:
    """A freeze in force."""

    what: str
    since: str
    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProviderRow:
    """A system outside and how it answered lately."""

    icon: str
    word: Words
    name: str
    calls: str
    failures: str
    mean: str
    last_success: str
    last_failure: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The numbers and the sentence above them: what the page keeps up to date by itself."""

    summary: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, kw_only=True)
class System:
    """The whole page. None for a list that could not be read."""

    panel: Panel
    alarms: tuple[AlarmRow, ...] | None
    alarms_at: str
    workers: tuple[WorkerRow, ...] | None
    workers_at: str
    freezes: tuple[FreezeRow, ...]
    held: str
    gates: tuple[GateRow, ...] | None
    gates_at: str
    providers: tuple[ProviderRow, ...] | None
    providers_at: str
    checked: str


def system(
    seen: Vitals,
    providers: Part[tuple[SystemLately, ...]],
    gates: Part[tuple[GateFacts, ...]],
    freezes: Iterable[FreezeFacts],
    *,
    clock: Clock,
) -> System:
    """The page."""
    in_force = tuple(freezes)
    alarms, workers, waiting = seen.alarms.value, seen.workers.value, seen.waiting.value
    return System(
        panel=panel(seen, in_force, clock=clock),
        alarms=None if alarms is None else tuple(_alarm(one, clock) for one in alarms),
        alarms_at=clock.time(seen.alarms.read_at),
        workers=None if workers is None else tuple(_worker(one, clock) for one in workers),
        workers_at=clock.time(seen.workers.read_at),
        freezes=tuple(_freeze(one, clock) for one in in_force),
        held="" if waiting is None else _held(waiting),
        gates=None if gates.value is None else holding(gates.value, clock),
        gates_at=clock.time(gates.read_at),
        providers=None
        if providers.value is None
        else tuple(_provider(one, clock) for one in providers.value),
        providers_at=clock.time(providers.read_at),
        checked=clock.time(clock.now),
    )


def panel(seen: Vitals, freezes: tuple[FreezeFacts, ...], *, clock: Clock) -> Panel:
    """The eight numbers in their fixed order: nothing is sorted by how bad it is."""
    codes = frozenset(one.code for one in seen.alarms.value or ())
    tiles = (
        _tile(_("Workers"), seen.workers, lambda value: _workers(value, codes), clock),
        _tile(_("Due work"), seen.waiting, _due, clock),
        _tile(_("Broker wait"), seen.broker, _broker, clock),
        _tile(_("Outbox wait"), seen.outbox, _outbox, clock),
        _tile(_("Unknown steps"), seen.unknown, lambda value: _unknown(value, clock), clock),
        _tile(
            _("Outstanding compensations"), seen.outstanding, lambda value: _outstanding(value, clock), clock
        ),
        _tile(_("Reconciliation"), seen.reconciliation, lambda value: _compared(value, codes, clock), clock),
        _tile(_("Database"), seen.database, lambda value: _database(value, seen.database.took_ms), clock),
    )
    return Panel(summary=_summary(seen, freezes, tiles), tiles=tiles)


type _Told = tuple[str, Words, str, str]
"""Mark, its word, the number, what stands below it."""


def _tile[Value](name: Words, part: Part[Value], tell: Callable[[Value], _Told], clock: Clock) -> Tile:
    icon, word, value, about = (
        ("unk", _("not read"), _("not read"), _("This part did not answer."))
        if part.value is None
        else tell(part.value)
    )
    return Tile(name=name, icon=icon, word=word, value=value, about=about, read_at=clock.time(part.read_at))


def _workers(workers: tuple[WorkerSeen, ...], alarms: frozenset[str]) -> _Told:
    alive = [one for one in workers if one.lease_left_s > 0]
    late = len(workers) - len(alive)
    kinds: dict[str, int] = {}
    for one in alive:
        kinds[one.kind] = kinds.get(one.kind, 0) + 1
    listed = _(", ").join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
    if late:
        about = ngettext("{n} lease has run out", "{n} leases have run out", late).format(n=late)
        return "warn", _("outside its limits"), str(len(alive)), _(", ").join(filter(None, (listed, about)))
    if not alive and "run.not_moving" in alarms:
        return "bad", _("outside its limits"), "0", _("work is due and nobody takes it")
    if not alive:
        return "wait", _("at rest"), "0", _("normal while nothing is due")
    return _well(str(len(alive)), listed)


def _due(seen: Waiting) -> _Told:
    value = seconds(seen.oldest_s) if seen.due else _("none")
    about = ngettext("{n} run due, limit {limit} s", "{n} runs due, limit {limit} s", seen.due)
    said = about.format(n=shares.number(seen.due), limit=NOT_MOVING_S)
    return _ill(value, said) if seen.oldest_s > NOT_MOVING_S else _well(value, said)


def _broker(seen: BrokerSeen) -> _Told:
    value = seconds(seen.unheard_s) if seen.unheard_s else _("none")
    about = ngettext(
        "{n} bell to be heard, limit {limit} s", "{n} bells to be heard, limit {limit} s", seen.bells
    )
    said = about.format(n=shares.number(seen.bells), limit=UNHEARD_S)
    if seen.policy != "noeviction":
        evicts = _("it evicts when its memory is full ({policy})").format(policy=seen.policy)
        return _ill(value, _(", ").join((evicts, said)))
    return _ill(value, said) if seen.unheard_s > UNHEARD_S else _well(value, said)


def _outbox(seen: OutboxSeen) -> _Told:
    value = seconds(seen.oldest_s) if seen.waiting else _("none")
    about = ngettext("{n} event, limit {limit} s", "{n} events, limit {limit} s", seen.waiting)
    said = about.format(n=shares.number(seen.waiting), limit=LAGGING_S)
    if seen.parked:
        parked = ngettext("{n} parked", "{n} parked", seen.parked).format(n=shares.number(seen.parked))
        return _ill(value, _(", ").join((parked, said)))
    return _ill(value, said) if seen.oldest_s > LAGGING_S else _well(value, said)


def _unknown(seen: Counted, clock: Clock) -> _Told:
    if not seen.count or seen.since is None:
        return _well("0", _("every outcome is known"))
    return (
        "unk",
        _("unknown"),
        shares.number(seen.count),
        _("oldest {span}").format(span=_age(seen.since, clock)),
    )


def _outstanding(seen: Outstanding, clock: Clock) -> _Told:
    if not seen.all or seen.since is None:
        return _well("0", _("none is outstanding"))
    people = ngettext("{n} case with a person", "{n} cases with people", seen.with_people)
    about = _(", ").join(
        (
            _("{n} for more than 5 m").format(n=shares.number(seen.dangling)),
            _("oldest {span}").format(span=_age(seen.since, clock)),
            people.format(n=shares.number(seen.with_people)),
        )
    )
    icon, word = (
        ("compfailed", _("outside its limits")) if seen.dangling else ("compensating", _("under way"))
    )
    return icon, word, shares.number(seen.all), about


def _compared(seen: ReconciliationSeen, alarms: frozenset[str], clock: Clock) -> _Told:
    if seen.finished_at is None:
        about = _("none has been finished yet")
        return (
            ("wait", _("at rest"), "–", about) if "reconciliation.overdue" not in alarms else _ill("–", about)
        )
    value = _("{span} ago").format(span=_age(seen.finished_at, clock))
    about = _("{looked} compared, {drift} drifted, {unread} could not be checked").format(
        looked=shares.number(seen.looked), drift=shares.number(seen.drift), unread=shares.number(seen.unread)
    )
    if seen.drift or "reconciliation.overdue" in alarms:
        return _ill(value, about)
    return ("warn", _("outside its limits"), value, about) if seen.unread else _well(value, about)


def _database(seen: DatabaseSeen, took_ms: float) -> _Told:
    value = _("{n} ms").format(n=max(round(took_ms), 1))
    about = _("PostgreSQL {version}, {n} of {all} connections").format(
        version=seen.version, n=seen.connections, all=seen.allowed
    )
    if abs(seen.ahead_s) > SKEW_S:
        ahead, behind = (
            _("this server's clock is {span} ahead of it"),
            _("this server's clock is {span} behind it"),
        )
        skew = (ahead if seen.ahead_s > 0 else behind).format(span=seconds(abs(seen.ahead_s)))
        return _ill(value, _(", ").join((skew, about)))
    return _ill(value, about) if seen.connections > CROWDED * seen.allowed else _well(value, about)


def _well(value: str, about: str) -> _Told:
    return "ok", _("within its limits"), value, about


def _ill(value: str, about: str) -> _Told:
    return "bad", _("outside its limits"), value, about


def _summary(seen: Vitals, freezes: tuple[FreezeFacts, ...], tiles: tuple[Tile, ...]) -> str:
    unread = sum(tile.icon == "unk" and tile.value == _("not read") for tile in tiles)
    unread += seen.alarms.value is None
    loud = [one for one in seen.alarms.value or () if one.code not in alarm_words.QUIET]
    said = []
    if freezes:
        said.append(
            ngettext("{n} freeze is in force.", "{n} freezes are in force.", len(freezes)).format(
                n=len(freezes)
            )
        )
    if unread:
        said.append(
            ngettext("{n} part could not be read.", "{n} parts could not be read.", unread).format(n=unread)
        )
    if loud:
        said.append(
            ngettext("{n} alarm is in force.", "{n} alarms are in force.", len(loud)).format(n=len(loud))
        )
    elif seen.alarms.value is not None:
        said.append(_("No alarm is in force."))
    return " ".join(said)


def _alarm(one: Alarm, clock: Clock) -> AlarmRow:
    words = alarm_words.remedy(one.code)
    quiet = one.code in alarm_words.QUIET
    return AlarmRow(
        icon="info" if quiet else "warn",
        code=one.code,
        means=words.means,
        do=words.do,
        count="" if quiet else shares.number(one.count),
        since=clock.time(one.since),
    )


def _worker(one: WorkerSeen, clock: Clock) -> WorkerRow:
    late = one.lease_left_s <= 0
    span = seconds(abs(one.lease_left_s))
    return WorkerRow(
        id=one.id,
        kind=one.kind,
        place=one.place,
        started=clock.time(one.started_at),
        lease=_("ran out {span} ago").format(span=span) if late else _("{span} left").format(span=span),
        late=late,
        beat=_("{span} ago").format(span=seconds(one.beat_s)),
        runs=one.runs,
    )


def _freeze(one: FreezeFacts, clock: Clock) -> FreezeRow:
    return FreezeRow(what=freeze_what(one), since=clock.time(one.at), by=one.by, reason=one.reason)


def _held(seen: Waiting) -> str:
    return ngettext("{n} run is held", "{n} runs are held", seen.held).format(n=shares.number(seen.held))


def _provider(one: SystemLately, clock: Clock) -> ProviderRow:
    failing = one.failures > 0
    down = failing and one.failures == one.calls
    looks = {
        (True, True): ("bad", _("every call failed")),
        (True, False): ("warn", _("some calls failed")),
        (False, False): ("ok", _("answering")) if one.calls else ("wait", _("not called")),
    }
    icon, word = looks[failing, down]
    return ProviderRow(
        icon=icon,
        word=word,
        name=one.system,
        calls=shares.number(one.calls),
        failures=shares.number(one.failures),
        mean="–" if one.mean_ms is None else milliseconds(one.mean_ms),
        last_success=clock.time(one.last_success) or _("none seen"),
        last_failure=clock.time(one.last_failure) or _("none seen"),
    )


def _age(at: datetime, clock: Clock) -> str:
    return span_words(max(int((clock.now - at).total_seconds()), 0))


def seconds(value: float) -> str:
    """A short span with one decimal below ten seconds, in words above."""
    return _("{seconds} s").format(seconds=f"{value:.1f}") if value < 10 else span_words(int(value))
