"""A worker that dies by SIGKILL at a named point of one call. Test-only: it wraps the product's functions from outside.

`python -m tests.faults.victim` reads commands, a JSON object a line: {"run_id", "point", "tool", "compensating"} and
"signal" where it is not SIGKILL: SIGSTOP makes a zombie that somebody may wake later.
For each it forks a child, already preloaded, that drives this one run until the point kills it, and answers
{"started": pid, "run_id"}. When a child is gone it answers {"ended": pid, "signal"} (0 = the point was never
reached). At most `AT_ONCE` children live at a time, so that none is starved past the time in which a call must leave.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

AT_ONCE = 4

OUTSIDE = ("mid_call", "mid_call_lost")
"""Here the world hangs, and whoever looks on kills the child."""

POINTS = (
    "before_prepare",
    "before_commit_of_sent",
    "before_first_byte",
    *OUTSIDE,
    "before_confirm",
    "in_confirm",
    "after_confirm",
)


def arm(point: str, tool: str, compensating: bool, number: signal.Signals) -> None:
    """Wrap the one function that the point lies in."""

    def die() -> None:
        """No handler, no cleanup, no goodbye; a stopped one goes on from here when it is woken."""
        os.kill(os.getpid(), number)

    from sagas import executor
    from sagas.ledger import advance, settle
    from sagas.ledger.desk import Desk
    from sagas.models import Action
    from sagas.orders import Answered, Ask, Call, Order, Queue, Seen
    from tools.outcome import OutcomeKind

    def meant(order: Order) -> bool:
        return (
            isinstance(order, Call)
            and order.contract.tool == tool
            and (order.compensation_id is not None) is compensating
        )

    def confirming(seen: Seen | None) -> bool:
        return isinstance(seen, Answered) and meant(seen.call) and seen.outcome.kind is OutcomeKind.CONFIRMED

    match point:
        case "before_prepare" if compensating:
            look = advance._look

            def look_or_die(desk: Desk, claim: Any, action: Action) -> Any:
                return die() if desk.compensations[action.pk].tool == tool else look(desk, claim, action)

            advance._look = look_or_die
        case "before_prepare":
            prepare = advance._prepare

            def prepare_or_die(desk: Desk, action: Action) -> None:
                return die() if action.tool == tool else prepare(desk, action)

            advance._prepare = prepare_or_die
        case "before_commit_of_sent":
            stamped = advance._stamped

            def stamped_or_die(order: Call | Ask | Queue) -> Call | Ask | Queue:
                if meant(order):
                    die()
                return stamped(order)

            advance._stamped = stamped_or_die
        case "before_first_byte" | "before_confirm":
            call = executor._call

            def call_or_die(order: Call, world: Any) -> Answered:
                if meant(order) and point == "before_first_byte":
                    die()
                answered = call(order, world)
                if meant(order) and point == "before_confirm":
                    die()
                return answered

            executor._call = call_or_die
        case "in_confirm":
            recorded: list[bool] = []
            answered, flush = settle.answered, Desk._flush

            def answered_and_noted(desk: Desk, seen: Answered) -> None:
                answered(desk, seen)
                recorded.append(confirming(seen))

            def flush_and_die(desk: Desk, changes: dict[str, Any]) -> None:
                flush(desk, changes)
                if any(recorded):
                    die()

            settle.answered = answered_and_noted
            Desk._flush = flush_and_die  # type: ignore[method-assign,assignment]
        case "after_confirm":
            advanced = advance.advance

            def advance_and_die(claim: Any, seen: Seen | None, **how: Any) -> Order:
                order = advanced(claim, seen, **how)
                if confirming(seen):
                    die()
                return order

            advance.advance = advance_and_die
        case _ if point in OUTSIDE:
            # A busy machine must not let the call's own limit be faster than whoever looks on.
            endless = executor._call

            def hang(order: Call, world: Any) -> Answered:
                limits = replace(order.contract.limits, total_s=60.0)
                meant_one = replace(order, contract=replace(order.contract, limits=limits))
                return endless(meant_one if meant(order) else order, world)

            executor._call = hang
        case _:
            raise ValueError(point)


def drive(command: dict[str, Any]) -> None:
    """Drive one run like any worker does."""
    from django.conf import settings

    from sagas import executor
    from sagas.ledger import advance, workers
    from tools.world import World

    number = signal.Signals[command.get("signal", "SIGKILL")]
    arm(command["point"], command["tool"], command["compensating"], number)
    claimed = advance.claim_run(command["run_id"], workers.enrol("victim"))
    assert claimed is not None, "the run could not be claimed"
    executor.drive(*claimed, World(settings.TOOL_SYSTEMS))


def preload() -> None:
    """Load once what every child needs, so that a forked one starts at once. Leaves no connection open."""
    from django.db import connections

    from sagas import executor, published
    from sagas.models import ContractVersion, DefinitionVersion

    assert executor.drive is not None
    for pk in ContractVersion.objects.values_list("pk", flat=True):
        published.contract_by_id(pk)
    for row in DefinitionVersion.objects.all():
        published.definition_by_id(row.pk)
        published.pinned(row.pk, next(iter(row.pins)))
    connections.close_all()


def main() -> None:
    """Serve commands until standard input ends and every child is gone."""
    import django

    django.setup()
    preload()
    alive: set[int] = set()
    answer: Callable[[dict[str, int]], None] = lambda line: print(json.dumps(line), flush=True)  # noqa: E731, T201

    def bury_one() -> None:
        pid, status = os.wait()
        alive.discard(pid)
        answer({"ended": pid, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0})

    for line in sys.stdin:
        command = json.loads(line)
        while len(alive) >= AT_ONCE:
            bury_one()
        pid = os.fork()
        if pid == 0:
            try:
                drive(command)
            except BaseException:  # noqa: BLE001 - a forked child says what broke it and never returns
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(1)
        alive.add(pid)
        answer({"started": pid, "run_id": command["run_id"]})
    while alive:
        bury_one()


if __name__ == "__main__":
    main()
