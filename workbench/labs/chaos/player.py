"""Plays cases: starts a run, has a forked child struck while it drives it, recovers, and has the world judge.

Nobody waits: the clocks of the database and of the world are put forward together to the next thing that is due.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db import connection
from django.test import Client

from sagas import alone, api, faultpoints
from sagas.errors import NotFound
from sagas.facts import Actor, ActorKind
from sagas.states import FINAL_RUN_STATES, RunState
from workbench.labs.chaos.case import Outcome, Reached, Strike, case_name, strikes
from workbench.labs.chaos.cells import Cell, slot_of
from workbench.labs.chaos.errands import ERRANDS
from workbench.labs.chaos.judge import judge
from workbench.labs.chaos.yonder import Yonder

AGENT = Actor(kind=ActorKind.AGENT, id="agent:chaos", name="Chaos agent", role="agent")
MOST_TURNS = 150
TURNS_WITH_A_PERSON = 4
STRUCK = 77
_STRIDE_S = 0.6
_AFTER_LEASE_S = alone.LEASE_S + 1.0


class Player:
    """One lane's player. Holds one connection, which its children use while it waits for them."""

    def __init__(self, *, prefix: str) -> None:
        self._prefix, self._number, self._since = prefix, 0, 0
        # The collector would copy every page into every child; what a cell leaves behind is collected after it.
        gc.disable()
        gc.freeze()
        self._yonder = Yonder(settings.SIMULATOR_ADMIN_URL)
        self._worker = alone.Alone()
        self._undertaker = alone.Undertaker()
        self._client = Client(SERVER_NAME="localhost")

    def play(
        self, cell: Cell, *, only: str = "", points: frozenset[str] = frozenset(), most: int | None = None
    ) -> Iterator[Outcome]:
        """The cell without a fault, then struck wherever it came by.

        `only` those whose coordinates begin so, at these `points`, and at `most` so many of them, drawn by the cell's
        name, so that the same are drawn again.
        """
        reached: list[Reached] = []
        yield self._case(cell, None, lambda point, about: reached.append((point, dict(about))))
        found = [one for one in strikes(cell, reached) if case_name(cell, one).startswith(only)]
        if points:
            found = [one for one in found if points & {one.point, one.again}]
        if most is not None and most < len(found):
            found = random.Random(cell.name).sample(found, most)  # noqa: S311  replayable, not secret
        for strike in found:
            yield self._case(cell, strike)
        gc.collect()

    def _case(
        self, cell: Cell, strike: Strike | None, listener: faultpoints.Listener | None = None
    ) -> Outcome:
        began = time.perf_counter()
        self._number += 1
        about = f"{self._prefix}{self._number}"
        ref = api.run_ref(AGENT, about)
        self._since = self._yonder.begin(cell.rules(about))
        struck = False
        if strike is None:
            with faultpoints.heard(listener or (lambda point, about: None)):
                self._live(cell, about, ref)
        else:
            struck = self._in_child(strike.plan(), lambda: self._live(cell, about, ref))
            # Whoever was told that the run has started does not ask for it again.
            asked_again = strike.point.startswith("start.")
            if strike.again:
                self._put_forward(_AFTER_LEASE_S)
                struck &= self._in_child(
                    strike.plan_again(), lambda: self._recover(cell, about, ref, asked_again)
                )
            self._recover(cell, about, ref, asked_again)
        try:
            facts = api.run_facts(ref)
        except NotFound:
            facts = None
        verdict = judge(cell, facts, about, self._yonder.since(self._since))
        return Outcome(
            case=case_name(cell, strike),
            struck=struck,
            state=facts.state.value if facts else "",
            faults=verdict.faults,
            seconds=round(time.perf_counter() - began, 3),
        )

    def run_errand(self, point: str) -> Outcome:
        """A run played to its rest, then the errand in which this point comes by: struck, done again, judged."""
        kind, behaviour = ERRANDS[point].behaviour
        cell = Cell(kind=kind, behaviour=behaviour, position="last", direction="forward")
        self._case(cell, None)
        began = time.perf_counter()
        errand = ERRANDS[point](self, f"{self._prefix}{self._number}", self._number)
        struck = self._in_child(Strike(point=point).plan(), errand.act)
        errand.act()
        return Outcome(
            case=f"{kind}/{behaviour}/errand/{type(errand).__name__.lower()}/{point}#1",
            struck=struck,
            state="",
            faults=list(errand.faults()),
            seconds=round(time.perf_counter() - began, 3),
        )

    # --- What errands are run on

    agent = AGENT

    def bring_to_rest(self, ref: str) -> None:
        """Let every lease run out, bury the dead, and drive the run as far as it goes without a person."""
        for _ in range(MOST_TURNS):
            standing = alone.standing(ref)
            assert standing is not None  # noqa: S101  it was started
            if standing.owner:
                self._put_forward(_AFTER_LEASE_S)
                self._undertaker.look()
                continue
            waits_for_a_person = standing.state in (RunState.AWAITING_APPROVAL, RunState.HANDOFF)
            due_in_s = standing.due_in_s
            if due_in_s is None or (waits_for_a_person and due_in_s > 0):
                return
            self._put_forward(max(due_in_s, 0.0) + 0.001)
            self._worker.step(standing.run_id)

    def effects(self, business: str) -> list[str]:
        """The tools whose calls took effect out there for this since the last case began, in their order."""
        return [
            record["tool"]
            for record in self._yonder.since(self._since)
            if record["kind"] == "effect" and record["business"] == business
        ]

    def change(self, kind: str, id_: str, state: str) -> None:
        """Have somebody else change a thing out there."""
        self._yonder.change(kind, id_, state)

    # --- What a process does

    def _live(self, cell: Cell, about: str, ref: str) -> None:
        """Start the run and drive it to its rest, as a worker does."""
        self._start(cell, about)
        self._drive(cell, ref)

    def _start(self, cell: Cell, about: str) -> None:
        given = {f"s{number}": slot_of(about, number) for number in range(1, cell.steps + cell.back + 1)}
        api.start_run(actor=AGENT, definition=cell.workflow, input=given, start_key=about)

    def _recover(self, cell: Cell, about: str, ref: str, asked_again: bool) -> None:
        """What comes after a death: the lease runs out, the dead are buried, the caller and the work come again."""
        standing = alone.standing(ref)
        if standing is not None and standing.state in FINAL_RUN_STATES and not standing.owner:
            return
        self._put_forward(_AFTER_LEASE_S)
        self._undertaker.look()
        if standing is None or asked_again:
            self._start(cell, about)
        self._drive(cell, ref)

    def _drive(self, cell: Cell, ref: str) -> None:
        """Step the run and put the clocks forward until it is at its end, or with a person and quiet."""
        with_a_person = 0
        for _ in range(MOST_TURNS):
            standing = alone.standing(ref)
            if standing is None or standing.state in FINAL_RUN_STATES:
                return
            if standing.due_in_s is not None and standing.due_in_s <= 0:
                self._worker.step(standing.run_id)
                continue
            if standing.owner:
                # Held by an incarnation that lost its way: its lease runs out like anybody's.
                self._put_forward(_AFTER_LEASE_S)
                self._undertaker.look()
                continue
            if standing.state is RunState.HANDOFF:
                with_a_person += 1
                if standing.due_in_s is None or with_a_person > TURNS_WITH_A_PERSON:
                    return
            stride = _STRIDE_S if standing.due_in_s is None else standing.due_in_s + 0.001
            if cell.kind == "later":
                self._put_forward(min(stride, _STRIDE_S))
                continue
            self._put_forward(stride)
            if standing.due_in_s is not None:
                self._worker.step(standing.run_id)

    def _put_forward(self, seconds: float) -> None:
        """Make it later here and outside; what the world has to say by then is delivered."""
        with connection.cursor() as cursor:
            cursor.execute("UPDATE test_clock.ahead SET ahead = ahead + make_interval(secs => %s)", [seconds])
        for call in self._yonder.put_forward(seconds):
            answer = self._client.post(
                call["path"],
                call["body"],
                content_type="application/json",
                headers={"Webhook-Signature": call["signature"]},
            )
            self._yonder.fetched(call["id"], answer.status_code)

    # --- Processes that die

    def _in_child(self, plan: faultpoints.Plan, work: Callable[[], None]) -> bool:
        """Have a forked child do the work with this plan; returns whether it was struck.

        The child works on our connection while we wait. At a fault point nothing is on the wire, so that what the
        server does when a client is gone, rolling back and unlocking, can be asked of it in the child's place. A line
        that is cut is cut at the child's end.
        """
        connection.ensure_connection()
        pid = os.fork()
        if pid == 0:
            self._be_struck(plan, work)
        _, status = os.waitpid(pid, 0)
        connection.connection.execute("ROLLBACK")
        connection.connection.execute("SELECT pg_advisory_unlock_all()")
        if os.WIFSIGNALED(status):
            return os.WTERMSIG(status) == signal.SIGKILL
        return os.WEXITSTATUS(status) == STRUCK

    def _be_struck(self, plan: faultpoints.Plan, work: Callable[[], None]) -> None:
        try:
            faultpoints.plan(plan)
            self._worker.reborn()
            work()
        except BaseException:  # noqa: BLE001  a forked child says what broke it and never returns
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(STRUCK if plan.seen >= plan.nth else 0)
