"""What is ended when: a pure function of the seed, so that a soak can be played again."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass

PER_MINUTE: dict[str, float] = {
    "database": 2.2,
    "broker": 2.2,
    "worker": 4.4,
    "web": 2.2,
    "sweep": 2.2,
    "relay": 2.2,
    "child": 27.0,
    "empty": 0.6,
    "pause": 2.2,
}
"""Faults a minute. `child` is a process that a worker has forked, `empty` empties the broker while it runs, `pause`
stops a worker with its children for longer than its lease; all others are killed."""

KILLS = frozenset({"database", "broker", "worker", "web", "sweep", "relay", "child"})
QUIET_S = 3.0
"""Seconds at the beginning without a fault."""


@dataclass(frozen=True, kw_only=True, order=True)
class Fault:
    """One fault. `pick` chooses among the processes of its kind; `down_s` is how long it lasts; `group`: children too."""

    at: float
    kind: str
    pick: float
    down_s: float
    group: bool


def schedule(seed: int, seconds: float) -> tuple[Fault, ...]:
    """All faults of a soak of so many seconds, in their order."""
    chance = random.Random(f"faults {seed}")  # noqa: S311  replayable, not secret
    return tuple(sorted(fault for kind in PER_MINUTE for fault in _of(kind, chance, seconds)))


def _of(kind: str, chance: random.Random, seconds: float) -> Iterable[Fault]:
    for _ in range(math.ceil(PER_MINUTE[kind] * seconds / 60)):
        lasts = {"pause": (7.0, 9.0), "database": (0.1, 1.0), "broker": (0.1, 1.5)}.get(kind, (0.0, 0.0))
        yield Fault(
            at=round(chance.uniform(QUIET_S, max(seconds - 1.0, QUIET_S)), 3),
            kind=kind,
            pick=chance.random(),
            down_s=round(chance.uniform(*lasts), 3),
            group=chance.random() < 0.5,
        )
