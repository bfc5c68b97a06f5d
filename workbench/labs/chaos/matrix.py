"""`chaos matrix`: every crash point x contract kind x outside behaviour x position x direction, judged by the world.

Each case is one process struck at one place, recovered and judged. A fault found is played again by its coordinates.
"""

from __future__ import annotations

import json
import math
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.management.base import CommandParser

from workbench.labs.chaos.case import Outcome
from workbench.labs.chaos.cells import Cell, cells
from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.errands import ERRANDS
from workbench.labs.chaos.judge import FAULTS
from workbench.labs.chaos.lanes import Lane, Lanes

PROGRESS_S = 5.0
LANES = 3
"""Two cores keep three busy: a lane, its database and its world work in turn, never at the same moment."""
_CASES_A_CELL = 3
"""How many of a cell's cases a sample takes."""
_TIMES_AN_ERRAND = 5
"""How often each point of an errand is struck: an errand is the same wherever it stands."""

type Job = Cell | str
"""A cell to play, or the fault point of an errand."""


@dataclass
class Tally:
    """What was played and what was found."""

    cases: int = 0
    struck: int = 0
    points: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    found: list[Outcome] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        point = outcome.case.split("/")[4].partition("#")[0]
        self.cases += 1
        self.struck += outcome.struck
        self.points[point] += 1
        self.ends[outcome.state] += 1
        self.faults.update({fault for fault, _ in outcome.faults})
        if outcome.faults:
            self.found.append(outcome)
        if not outcome.struck and point != "unstruck":
            self.missed.append(outcome.case)

    @property
    def holds(self) -> bool:
        """Whether nothing was found, and nearly every strike came to pass."""
        return self.cases > 0 and not self.found and len(self.missed) <= self.cases // 50

    def line(self) -> str:
        """The summary. With C cases and none found, the 95 % bound is about 3/C."""
        counts = " ".join(f"{fault} {self.faults[fault]}" for fault in FAULTS)
        bound = f"{3 / self.cases:.5f}" if self.cases else "-"
        word = "holds" if self.holds else "DOES NOT HOLD"
        return (
            f"cases {self.cases} {counts} (95 % bound beside each zero {bound}) struck {self.struck} "
            f"at {len(self.points)} points in {self.seconds:.0f} s: {word}"
        )

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "cases": self.cases,
            "struck": self.struck,
            "missed": self.missed,
            "faults": {fault: self.faults[fault] for fault in FAULTS},
            "bound_95": 3 / self.cases if self.cases else None,
            "points": dict(sorted(self.points.items())),
            "ends": dict(sorted(self.ends.items())),
            "found": [
                {"case": one.case, "state": one.state, "faults": list(one.faults)} for one in self.found
            ],
            "seconds": round(self.seconds, 1),
        }


def play(
    todo: Sequence[Job],
    say: Say,
    *,
    only: str = "",
    most: int | None = None,
    lanes: int = LANES,
    minutes: float | None = None,
) -> Tally:
    """Play these on as many lanes; `only` and `most` as the player knows them.

    After so many `minutes` nothing more is begun, and what was played is told. None: everything is played.
    """
    tally, began = Tally(), time.monotonic()
    until = began + 60 * minutes if minutes is not None else math.inf
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in todo:
        waiting.put(job)
    done: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
    with Lanes(lanes) as ground:
        threads = [
            threading.Thread(target=_serve, args=(lane, waiting, done, only, most, until))
            for lane in ground.lanes
        ]
        for thread in threads:
            thread.start()
        total = sum(not isinstance(job, str) for job in todo)
        _collect(tally, done, len(threads), say, began, total=total, left=lambda: min(total, waiting.qsize()))
        for thread in threads:
            thread.join()
        for lane in ground.lanes if tally.found or tally.missed else ():
            say(ground.log(lane)[-2000:])
    tally.seconds = time.monotonic() - began
    return tally


def _serve(
    lane: Lane,
    waiting: queue.SimpleQueue[Job],
    done: queue.SimpleQueue[Outcome | BaseException | None],
    only: str,
    most: int | None,
    until: float,
) -> None:
    try:
        while time.monotonic() < until:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                break
            played = lane.run_errand(job) if isinstance(job, str) else lane.play(job, only=only, most=most)
            for outcome in played:
                done.put(outcome)
    except BaseException as error:  # noqa: BLE001  said by the main thread
        done.put(error)
    done.put(None)


def _collect(
    tally: Tally,
    done: queue.SimpleQueue[Outcome | BaseException | None],
    lanes: int,
    say: Say,
    began: float,
    *,
    total: int,
    left: Callable[[], int],
) -> None:
    said = cells_since = began
    broken: BaseException | None = None
    while lanes:
        answer = done.get()
        if answer is None:
            lanes -= 1
        elif isinstance(answer, BaseException):
            broken = answer
        else:
            tally.add(answer)
            for fault, detail in answer.faults:
                say(f"  {fault}: {answer.case} ({answer.state}): {detail}")
        if time.monotonic() - said >= PROGRESS_S:
            said = time.monotonic()
            begun = total - left()
            if not begun:
                cells_since = said  # so far only errands, which are far shorter
            to_go = f", about {(said - cells_since) / begun * left() / 60:.0f} min to go" if begun else ""
            counts = f"{begun} of {total} cells, cases {tally.cases}, found {len(tally.found)}"
            say(f"{counts}, {said - began:.0f} s{to_go}")
    if broken is not None:
        raise broken


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("--sample", type=int, help="about so many cases, drawn by the seed, instead of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, help="after so many nothing more is begun; without, all is played"
    )
    parser.add_argument(
        "--only", default="", help="only cases whose coordinates begin so: kind/behaviour/position/..."
    )
    parser.add_argument("--lanes", type=int, default=LANES, help="processes side by side")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON on the last line")


def _run(options: dict[str, Any], say: Say) -> bool:
    todo: list[Job] = [
        cell
        for cell in cells()
        if cell.name.startswith(options["only"]) or options["only"].startswith(cell.name)
    ]
    if not options["only"]:
        todo += sorted(ERRANDS) * _TIMES_AN_ERRAND
    chance = random.Random(options["seed"])  # noqa: S311  replayable, not secret
    chance.shuffle(todo)
    most = None
    if options["sample"]:
        todo, most = todo[: max(1, options["sample"] // (_CASES_A_CELL + 1))], _CASES_A_CELL
    # Errands first: one that compares the record with the outside costs more with every run that there is.
    todo.sort(key=lambda job: isinstance(job, Cell))
    tally = play(
        todo,
        say,
        only=options["only"],
        most=most,
        lanes=options["lanes"],
        minutes=options["minutes"],
    )
    for outcome in tally.found[:50]:
        say(f"again: manage.py chaos matrix --only '{outcome.case}'")
    for case in tally.missed[:10]:
        say(f"not struck: {case}")
    say(tally.line())
    if options["json"]:
        say(json.dumps(tally.document()))
    return tally.holds


DOOR = Door(help="strike every cell of the matrix at every point it passes", arguments=_arguments, run=_run)
