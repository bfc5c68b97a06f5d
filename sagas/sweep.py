"""The sweep: a process of its own on PostgreSQL that finds what should move and does not, broker or no broker.

It buries dead incarnations, lets lapsed claims of people go, escalates late cases, rings the bell for what is due, and
drains by itself what nobody took for two seconds: without a broker work goes on, slower (law 1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial

import structlog
from django.db import DatabaseError, close_old_connections, connection

from sagas import alarms, faultpoints, gates, reconcile
from sagas.executor import Drain
from sagas.ledger import alerts, claims, ears, quarantine, workers
from sagas.ledger.desk import opened
from sagas.relay import ring
from sagas.tx import durable, held_up, soon

log = structlog.get_logger(__name__)

TICK_S = 0.5
WATCH_EVERY_S = 60.0
MUTE_S = 2.0
"""Seconds that the sweep leaves a broker alone that did not answer."""
UNTAKEN = timedelta(seconds=2.0)
"""Work that nobody took for this long is drained by the sweep itself."""


class Recovery:
    """Watches the pulses of workers on its own monotonic clock and buries the dead.

    Dead = the lease has run out by the database's clock **and** no beat was seen for a full lease here. After lost
    contact with the database it waits one lease more, because nobody could beat meanwhile (engine.md, section 4).
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, tuple[int, float]] = {}

    def contact_lost(self) -> None:
        """Forget every pulse: silence counts from the next look."""
        self._last.clear()

    def look(self) -> int:
        """Bury whoever is dead by both clocks; returns the runs freed."""
        now, freed = self._clock(), 0
        seen: dict[str, tuple[int, float]] = {}
        for pulse in workers.pulses():
            beats, since = self._last.get(pulse.owner, (pulse.beats, now))
            since = since if beats == pulse.beats else now
            seen[pulse.owner] = (pulse.beats, since)
            if pulse.ended or (pulse.over and now - since >= workers.LEASE_S):
                freed += workers.bury(pulse.owner)
        self._last = seen
        if freed:
            log.warning("worker.dead", runs_freed=freed)
        return freed


def release_lapsed_claims() -> int:
    """Give handoffs whose claim has lapsed back to the queue; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id FROM sagas_handoff WHERE state = 'claimed' AND claim_until <= now_() ORDER BY run_id LIMIT 100"
        )
        run_ids = [row[0] for row in cursor.fetchall()]
    return sum(_each(run_ids, _release_lapsed, "claim.not_released"))


def _release_lapsed(run_id: int) -> int:
    released = 0
    with durable(), soon(), opened(run_id) as desk:
        faultpoints.mark("sweep", run=desk.run.ref)
        for row in desk.handoffs:
            if claims.has_lapsed(desk, row):
                claims.let_go(desk, row)
                released += 1
        if released:
            desk.due_at = desk.run.due_at
            desk.close(release=False)
    return released


def speak_up() -> int:
    """Leave the reminders and escalations that are due; returns how many."""
    return sum(_each(alerts.due(), alerts.speak_up, "handoff.not_alerted"))


def _each(run_ids: Iterable[int], do: Callable[[int], int], complaint: str) -> Iterator[int]:
    """Do it for each of these runs. One that is held up, or is broken, keeps no other."""
    for run_id in run_ids:
        try:
            yield do(run_id)
        except DatabaseError as error:
            if not held_up(error):
                raise
            log.info("run.held", run_id=run_id)
        except Exception:
            log.exception(complaint, run_id=run_id)


type Errand = Callable[[Callable[[], bool]], None]
"""Something to be done at every look, whatever it is; it is told how to ask whether to stop."""


class Sweep:
    """The loop of the process: looks every half second, drains in a thread of its own, and errands in another.

    `errands` are what the people's side wants to go on by itself; nothing of it holds up the sweep.
    """

    def __init__(self, errands: Sequence[Errand] = ()) -> None:
        self.stopping = threading.Event()
        self._errands = tuple(errands)
        self._told = False
        self._recovery = Recovery()
        self._next_watch = self._next_turn = self._next_ring = 0.0
        self._drain: Drain | None = None

    def stop(self, *signal: object) -> None:
        """End soon. Takes no lock, so a signal handler may call it wherever the main thread is."""
        self._told = True

    def run(self) -> None:
        """Sweep until told to stop; then what the drain has in flight is waited for, and nothing more is claimed."""
        helpers = [threading.Thread(target=self._drain_untaken, name="sweep-drain")]
        if self._errands:
            helpers.append(threading.Thread(target=self._run_errands, name="sweep-errands"))
        for helper in helpers:
            helper.start()
        while not self._told and not self.stopping.wait(TICK_S):
            try:
                self.tick()
            except DatabaseError:
                log.warning("sweep.no_database")
                self._recovery.contact_lost()
                connection.close()
            except Exception:
                # Whatever one run is like, the sweep goes on looking after the others.
                log.exception("sweep.tick_failed")
        self.stopping.set()
        if self._drain is not None:
            self._drain.stopping.set()
        for helper in helpers:
            helper.join()
        connection.close()

    def tick(self) -> None:
        """One look: the dead, the lapsed, whose turn it is, the due. What is held up keeps nothing else."""
        close_old_connections()
        for look in (self._recovery.look, release_lapsed_claims, speak_up, gates.hand_out):
            try:
                look()
            except DatabaseError as error:
                if not held_up(error):
                    raise
                log.info("sweep.held_up", by=look.__name__)
        if workers.anything_due():
            self._ring()
        self._canary()
        self._watch()

    def _ring(self) -> bool:
        """Ring; a bell that could not be rung is left alone for a while, so that nobody's recovery waits for it."""
        if time.monotonic() < self._next_ring:
            return False
        rung = ring()
        if not rung:
            self._next_ring = time.monotonic() + MUTE_S
        return rung

    def _canary(self) -> None:
        """Ring although nothing is due: a worker that is connected and deaf shows by what it does not hear."""
        if ears.ring_is_due() and self._ring():
            ears.rang()

    def _watch(self) -> None:
        """Say once a minute which alarms are in force."""
        if time.monotonic() < self._next_watch:
            return
        self._next_watch = time.monotonic() + WATCH_EVERY_S
        quarantine.hand_over_rest()
        for alarm in alarms.in_force():
            if alarm.code != "worker.none":  # drains come and go with the work; the sweep itself is alive
                log.error("alarm", code=alarm.code, count=alarm.count, since=str(alarm.since or ""))

    def _drain_untaken(self) -> None:
        while not self.stopping.wait(TICK_S):
            try:
                if self._drain is None:
                    self._drain = Drain("sweep")
                self._drain.run(seconds=5.0, not_due_before=UNTAKEN)
                if reconcile.due():
                    reconcile.reconcile(self._drain.world, go_on=partial(self._meanwhile, self._drain))
            except DatabaseError:
                log.warning("sweep.cannot_drain")
                connection.close()
            except Exception:
                log.exception("sweep.drain_failed")
        if self._drain is not None:
            self._drain.close()
        connection.close()

    def _run_errands(self) -> None:
        while not self.stopping.wait(TICK_S):
            for errand in self._errands:
                try:
                    close_old_connections()
                    errand(self.stopping.is_set)
                except DatabaseError:
                    log.warning("sweep.errand_without_database")
                    connection.close()
                except Exception:
                    log.exception("sweep.errand_failed")
        connection.close()

    def _meanwhile(self, drain: Drain) -> bool:
        """Amid a comparison: keep the lease and drain what nobody took, once a second. False: told to stop."""
        if time.monotonic() >= self._next_turn:
            drain.run(seconds=1.0, not_due_before=UNTAKEN)
            self._next_turn = time.monotonic() + 1.0
        return not self.stopping.is_set()
