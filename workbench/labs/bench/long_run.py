"""`manage.py bench long-run --steps N --back M`: whether the last step of a large run costs what the first did (FS-1).

One worker drives a run of N steps to its end, then one of M steps whose last one is refused, so that M - 1 effects are
made up for. Times are those of the trail, by the database's clock; rows are what PostgreSQL says it read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection

from sagas import api
from sagas.facts import EntryFacts
from tools.contract import Json
from tools.reader import definition_from_document, read_contract
from workbench.labs.arena import Arena
from workbench.labs.chaos.door import Door, Say
from workbench.labs.story import AGENT, PUBLISHER, ROOT

LIMIT = 1.2
"""The most that a step at the end may cost of one at the beginning."""

SHARE = 10
"""The first and the last tenth of a run are compared: of 10,000 steps a thousand each."""

TELL_EVERY_S = 5.0
_TOOLS = ("reserve_stock", "release_stock", "get_reservation")
_REFUSED = "SKU-0"


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a run went: seconds from one step to the next in their order, and what the whole cost."""

    steps: tuple[float, ...]
    started_s: float
    total_s: float
    commits: float
    rows_first: float
    rows_last: float

    @property
    def first(self) -> tuple[float, ...]:
        """The steps of the first tenth."""
        return self.steps[: max(len(self.steps) // SHARE, 1)]

    @property
    def last(self) -> tuple[float, ...]:
        """The steps of the last tenth."""
        return self.steps[-max(len(self.steps) // SHARE, 1) :]

    @property
    def ratio(self) -> float:
        """Last over first by the step in the middle, which a pause of the machine does not move."""
        return median(self.last) / median(self.first)

    def line(self, what: str) -> str:
        """The figures in a line."""
        return (
            f"{what} {len(self.steps) + 1} steps in {self.total_s:.0f} s: first tenth {_ms(self.first)}, last tenth "
            f"{_ms(self.last)} a step, last/first {self.ratio:.2f} (mean {mean(self.last) / mean(self.first):.2f}, "
            f"limit {LIMIT}), commits a step {self.commits:.2f}, rows read a step {self.rows_first:.0f} -> "
            f"{self.rows_last:.0f}, put on record in {self.started_s:.2f} s: "
            f"{'holds' if self.ratio <= LIMIT else 'DOES NOT HOLD'}"
        )


def _ms(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.2f} ms"


def definition(name: str, steps: int, *, refused: bool) -> Json:
    """Reservations, each of which names the one before it; the last is refused, if it is to be."""

    def order(number: int) -> Json:
        if number == 1:
            return {"from": "input", "pointer": "/order"}
        return {"from": f"steps.s{number - 1}.result", "pointer": "/reservation"}

    def sku(number: int) -> str:
        return _REFUSED if refused and number == steps else f"SKU-{number}"

    return {
        "name": name,
        "version": 1,
        "title": f"{steps} reservations",
        "on_failure": "compensate",
        "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}},
        "steps": [
            {
                "id": f"s{number}",
                "tool": "reserve_stock",
                "contract_version": 1,
                "args": {"order": order(number), "sku": sku(number), "qty": 1},
            }
            for number in range(1, steps + 1)
        ],
    }


def drive(arena: Arena, name: str, steps: int, *, refused: bool, say: Say) -> Course:
    """Start the run, watch it to its end, take its figures from the trail. Raises `AssertionError` if it went wrong."""
    document = definition_from_document(definition(name, steps, refused=refused))
    api.publish_definition(document, actor=PUBLISHER)
    began = time.monotonic()
    ref = api.start_run(actor=AGENT, definition=name, input={"order": "O-1"}, start_key=name).run_ref
    started_s = time.monotonic() - began
    api.ring(ref)
    marks = list(_watch(arena, ref, say))
    total_s = time.monotonic() - began
    trail = list(_trail(ref))
    wanted, end = ("compensation", "run.compensated") if refused else ("execution", "run.completed")
    times = [entry.at.timestamp() for entry in trail if entry.name == f"tool.{wanted}.succeeded"]
    if trail[-1].name != end or len(times) != steps - int(refused):
        raise AssertionError(f"{ref} ended with {trail[-1].name} after {len(times)} steps")
    entries_a_step = len(trail) / steps
    third = len(marks) // 3
    return Course(
        steps=tuple(later - earlier for earlier, later in pairwise(times)),
        started_s=started_s,
        total_s=total_s,
        commits=_commits(ref) / (steps + len(times) if refused else steps),
        rows_first=_rows_an_entry(marks[: third + 2]) * entries_a_step,
        rows_last=_rows_an_entry(marks[-third - 2 : -1]) * entries_a_step,
    )


def _watch(arena: Arena, ref: str, say: Say) -> Iterator[tuple[int, int]]:
    """Until the run is at its end: the entries it has left, and the rows the database has read by then."""
    told = 0.0
    while True:
        for notice in arena.tend():
            say(notice)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT seq, confirmations, direction, state, finished_at IS NOT NULL OR state = 'handoff', "
                "(SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_user_tables) FROM sagas_run WHERE ref = %s",
                [ref],
            )
            seq, confirmed, direction, state, over, read = cursor.fetchone()
        yield int(seq), int(read or 0)
        if over:
            return
        if time.monotonic() - told > TELL_EVERY_S:
            told = time.monotonic()
            say(f"  {state}: {confirmed} steps confirmed, {seq} entries, {direction}")
        time.sleep(1.0)


def _rows_an_entry(marks: Sequence[tuple[int, int]]) -> float:
    """Rows read for each entry that was left between the first mark and the last."""
    moved = [mark for mark in marks if mark[0] > marks[0][0]]
    return (moved[-1][1] - marks[0][1]) / (moved[-1][0] - marks[0][0]) if moved else 0.0


def _trail(ref: str) -> Iterator[EntryFacts]:
    after = 0
    while page := api.entries(ref, after_seq=after, limit=5000):
        yield from page
        after = page[-1].seq or 0


def _commits(ref: str) -> int:
    """The commits that wrote something of a run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT xid) FROM sagas_entry WHERE run_ref = %s", [ref])
        return int(cursor.fetchone()[0])


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("--steps", type=int, default=10_000, help="steps of the run that goes forward")
    parser.add_argument("--back", type=int, default=1_000, help="steps of the run that turns back; 0 = none")


def _run(options: dict[str, Any], say: Say) -> bool:
    with Arena(workers=1, sweeps=1, relays=1) as arena:
        arena.wait_until_ready()
        for tool in _TOOLS:
            api.publish_contract(read_contract(ROOT / "tools" / "catalog" / f"{tool}.toml"), actor=PUBLISHER)
        say(f"a run of {options['steps']} steps, forward")
        forward = drive(arena, "long_run", options["steps"], refused=False, say=say)
        lines, good = [forward.line("forward")], forward.ratio <= LIMIT
        if options["back"]:
            say(f"a run of {options['back']} steps, the last of which is refused")
            arena.outside.plan({"tool": "reserve_stock", "match": _REFUSED, "mode": "refuse"})
            back = drive(arena, "long_way_back", options["back"], refused=True, say=say)
            lines.append(back.line("back"))
            good = good and back.ratio <= LIMIT
    for line in lines:
        say(line)
    return good


DOOR = Door(
    help="whether the last step of a large run costs what the first did (FS-1)",
    arguments=_arguments,
    run=_run,
)
