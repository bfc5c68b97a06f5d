"""One case of the matrix: a cell, where the process is struck, and where the one that recovers is struck in its turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sagas.faultpoints import Plan
from workbench.labs.chaos.cells import Cell

type Reached = tuple[str, Mapping[str, str]]

AGAIN = ("sweep.before_commit", "sweep.after_commit", "sweep.commit_lost", "sweep.between_runs")
_AGAIN_AFTER = ("sent.after_commit", "call.answered")


@dataclass(frozen=True, kw_only=True)
class Strike:
    """Where a process is struck: the `nth` time that it reaches `point` for this tool ("" = whatever for)."""

    point: str
    tool: str = ""
    direction: str = ""
    nth: int = 1
    again: str = ""

    @property
    def name(self) -> str:
        """The strike as part of a case's coordinates."""
        about = f"@{self.tool}" if self.tool else ""
        return f"{self.point}#{self.nth}{about}" + (f"+{self.again}" if self.again else "")

    @property
    def loses(self) -> bool:
        """Whether the answer to a COMMIT is lost instead of the process."""
        return self.point.endswith(".commit_lost")

    def plan(self) -> Plan:
        """The strike as a plan for the first process."""
        how = "lose" if self.loses else "kill"
        return Plan(point=self.point, do=how, tool=self.tool, direction=self.direction, nth=self.nth)

    def plan_again(self) -> Plan:
        """The strike of the process that recovers."""
        return Plan(point=self.again, do="lose" if self.again.endswith(".commit_lost") else "kill")


def strikes(cell: Cell, reached: Sequence[Reached]) -> Iterator[Strike]:
    """Every strike that a cell allows, from what its own run without a fault has reached.

    Of the struck call every point, the first time it is reached; of points that belong to no call those around it.
    In one position the process that recovers is struck in its turn.
    """
    direction = "compensation" if cell.back else "forward"
    own = [place for place, (_, about) in enumerate(reached) if _is_own(about, cell, direction)]
    if not own:
        return
    first, last = own[0] - 4, own[-1] + 6
    counted: Counter[tuple[str, str]] = Counter()
    for place, (point, about) in enumerate(reached):
        is_own = _is_own(about, cell, direction)
        counted[point, ""] += 1
        if is_own:
            counted[point, cell.tool] += 1
            if counted[point, cell.tool] == 1:
                # A place that says nothing of a direction is found without one.
                said = about.get("direction", "")
                yield from _with_again(cell, Strike(point=point, tool=cell.tool, direction=said))
        elif not about.get("tool") and first <= place <= last:
            yield Strike(point=point, nth=counted[point, ""])


def _with_again(cell: Cell, strike: Strike) -> Iterator[Strike]:
    yield strike
    if strike.point in _AGAIN_AFTER and cell.position == "middle":
        for again in AGAIN:
            yield Strike(**{**vars(strike), "again": again})


def _is_own(about: Mapping[str, str], cell: Cell, direction: str) -> bool:
    return about.get("tool") == cell.tool and about.get("direction", direction) == direction


def case_name(cell: Cell, strike: Strike | None) -> str:
    """The coordinates of a case, as `--only` takes them."""
    return f"{cell.name}/{strike.name if strike else 'unstruck'}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a case: whether it was struck, what is wrong, and the run's end."""

    case: str
    struck: bool
    state: str
    faults: Sequence[tuple[str, str]]
    seconds: float

    @staticmethod
    def of(document: Mapping[str, Any]) -> Outcome:
        """An outcome as it came over a pipe."""
        return Outcome(**document)
