"""`chaos point`: one fault point, or one id of the catalogue, again and again: die there, recover, be judged."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from sagas.faultpoints import POINTS
from workbench.labs.chaos.cells import Cell, cells
from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.errands import ERRANDS
from workbench.labs.chaos.lanes import Lane, Lanes
from workbench.labs.chaos.matrix import Tally

_BEHAVIOURS = ("applied_no_answer", "ok", "no_answer", "always_fails", "refuse", "fail_before")
"""What the world does while a point is struck, in the order in which it is tried."""
_CELLS_TRIED = 60


def named(name: str) -> frozenset[str]:
    """The fault points that a name or an id of the catalogue stands for. Raises `CommandError`."""
    found = frozenset(
        point.name for point in POINTS.values() if name == point.name or name in point.crash_points
    )
    if not found:
        raise CommandError(f"There is no point {name}. `manage.py chaos points` lists them.")
    return found


def _cells(name: str) -> Iterator[Cell]:
    """Cells in which the point may come by: forward ones for CP-F, compensations for CP-C, else both in turn."""
    way = {"CP-F": "forward", "CP-C": "compensation"}.get(name[:4], "")
    for behaviour in _BEHAVIOURS:
        yield from (
            cell for cell in cells() if cell.behaviour == behaviour and cell.direction.startswith(way)
        )


def _play(lane: Lane, name: str, repeat: int, tally: Tally) -> None:
    """Cell after cell, then those again in which the point came by, until it was struck often enough."""
    for point in itertools.cycle(sorted(named(name) & set(ERRANDS))):
        for outcome in lane.run_errand(point):
            tally.add(outcome)
        if tally.cases >= repeat:
            return
    passing: list[Cell] = []
    for cell in itertools.islice(_cells(name), _CELLS_TRIED):
        if _struck(lane, cell, name, repeat, tally):
            passing.append(cell)
        if tally.struck >= repeat:
            return
    for cell in itertools.cycle(passing):
        if not _struck(lane, cell, name, repeat, tally) or tally.struck >= repeat:
            return


def _struck(lane: Lane, cell: Cell, name: str, repeat: int, tally: Tally) -> bool:
    before = tally.struck
    for outcome in lane.play(cell, points=named(name), most=repeat - before):
        if not outcome.case.endswith("/unstruck"):
            tally.add(outcome)
    return tally.struck > before


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("name", help="a fault point (call.answered) or an id of the catalogue (CP-F6)")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="the verdict as JSON on the last line")


def _run(options: dict[str, Any], say: Say) -> bool:
    named(options["name"])
    tally, began = Tally(), time.monotonic()
    with Lanes(1) as ground:
        _play(ground.lanes[0], options["name"], options["repeat"], tally)
        if tally.found or tally.missed:
            say(ground.log(ground.lanes[0])[-2000:])
    tally.seconds = time.monotonic() - began
    for outcome in tally.found:
        say(f"  {outcome.case} ({outcome.state}): {outcome.faults}")
    if not tally.cases:
        say(f"No drive of a run passes {options['name']}.")
    say(f"{options['name']}: {tally.line()}")
    if options["json"]:
        say(json.dumps(tally.document()))
    return tally.holds


DOOR = Door(help="strike one fault point again and again", arguments=_arguments, run=_run)
