"""One worker without pool, bell or threads, in the very process that calls it: for the proving ground.

Drives and recovers single runs with the engine's own claim, executor and recovery; decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import OperationalError, connection

from sagas import executor, faultpoints, reconcile, relay
from sagas.ledger import advance, workers
from sagas.states import RunState
from sagas.sweep import Recovery
from sagas.tx import retrying
from tools.world import World


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a run stands: who holds it, and in how many seconds of the database's clock it is due (None = never)."""

    run_id: int
    state: RunState
    owner: str
    due_in_s: float | None


class Alone:
    """A worker that does one thing at a time. It belongs to the process that makes it until `reborn` in another."""

    def __init__(self) -> None:
        self.world = World(settings.TOOL_SYSTEMS)
        self.owner = ""

    def reborn(self) -> None:
        """Begin a new incarnation, as a process that has just started does."""
        self.owner = workers.enrol("alone")

    def step(self, run_id: int) -> bool:
        """Claim this run and drive it until nothing is to be done. False: it is not due, or somebody holds it."""
        if not self.owner or not workers.beat(self.owner):
            self.reborn()
        try:
            claimed = retrying(lambda: advance.claim_run(run_id, self.owner))
        except OperationalError:
            # Whether the claim was made is not known: its lease runs out, and recovery finds what it held.
            connection.close()
            self.owner = ""
            return True
        if claimed is None:
            return False
        faultpoints.reach("pool.claimed", run=claimed[0].run_ref)
        executor.drive(*claimed, self.world)
        return True


def standing(run_ref: str) -> Standing | None:
    """How a run stands now; None: there is no such run."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, state, owner, extract(epoch FROM due_at - now_()) FROM sagas_run WHERE ref = %s",
            [run_ref],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    run_id, state, owner, due_in_s = row
    return Standing(
        run_id=run_id,
        state=RunState(state),
        owner=owner,
        due_in_s=None if due_in_s is None else float(due_in_s),
    )


class Undertaker:
    """Recovery on a clock of its own, which is put forward together with the database's."""

    def __init__(self) -> None:
        self._now = 0.0
        self._recovery = Recovery(clock=lambda: self._now)

    def look(self) -> int:
        """Look, wait a full lease on this clock, look again: buries whoever is dead by both clocks."""
        freed = self._recovery.look()
        self._now += workers.LEASE_S
        return freed + self._recovery.look()


LEASE_S = workers.LEASE_S
"""Seconds that a lease runs."""


def relay_all(tell: Callable[[str], None]) -> None:
    """Publish what is pending, the id of each event told in its turn."""
    while relay.relay_once(lambda event: tell(event.id)):
        pass


def compare() -> None:
    """Compare the record with the outside, whatever changed since the last time."""
    world = World(settings.TOOL_SYSTEMS)
    try:
        reconcile.reconcile(world)
    finally:
        world.close()
