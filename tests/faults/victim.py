"""A worker that is struck at a fault point of one call.

`python -m tests.faults.victim` reads commands, a JSON object a line: {"run_id"} and a plan of `sagas.faultpoints`
("point", "tool", "direction"; "do" where it is not kill: a stopped one is a zombie that somebody may wake later).
For each it forks a child, already preloaded, that drives this one run until the point is reached, and answers
{"started": pid, "run_id"}. When a child is gone it answers {"ended": pid, "signal"} (0 = it came to its end by itself).
At most `AT_ONCE` children live at a time, so that none is starved past the time in which a call must leave.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

AT_ONCE = 4


def drive(command: dict[str, Any]) -> None:
    """Drive one run like any worker does."""
    from django.conf import settings

    from sagas import executor, faultpoints
    from sagas.ledger import advance, workers
    from tools.world import World

    run_id = command.pop("run_id")
    faultpoints.plan(faultpoints.Plan(**command))
    claimed = advance.claim_run(run_id, workers.enrol("victim"))
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
        run_id = command["run_id"]
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
        answer({"started": pid, "run_id": run_id})
    while alive:
        bury_one()


if __name__ == "__main__":
    main()
