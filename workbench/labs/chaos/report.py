"""What a soak came to: counts, figures, invariants with their bounds, and the line that says whether it holds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.jobs import job
from workbench.labs.chaos.schedule import KILLS, schedule
from workbench.labs.chaos.watch import Figures, percentile
from workbench.labs.checker.found import Found
from workbench.labs.checker.histories import Histories

LEAST_OK = 0.9
WORKER_S, BROKER_S, FOUND_S, COMPENSATION_S = 8.0, 10.0, 15.0, 1.0
"""Limits: p99 after a killed worker, p99 after an emptied broker, p99 until it is found, mean of a compensation."""

SLOWEST = 8
"""So many recoveries that took long are told with their story."""

LEAST_CASES = 100
"""A 99th percentile of fewer cases is a maximum: it is told and not judged. Of a mean a fifth of that is enough."""

_WORDS = {
    "V1 no loss": "lost",
    "V3 at most once": "doubled",
    "V2 no phantom": "phantom",
    "V4 truth": "untrue",
    "V5 order": "out of order",
    "V6 no late orphan": "orphans",
    "V7 stop means stop": "after stop",
    "V8 authorised": "unsigned",
    "V9 audited": "unaudited",
    "V10 outbox": "unpublished",
    "V11 liveness": "stuck",
    "V12 fence": "unfenced",
    "V13 conservation": "unbalanced",
    "V14 counters": "miscounted",
}
"""What the line calls a contradiction of each invariant."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One soak, judged."""

    seed: int
    seconds: float
    kills: dict[str, int]
    histories: Histories
    found: dict[str, Found]
    figures: Figures
    settled_s: float

    @property
    def killed(self) -> int:
        """Processes that were killed."""
        return sum(count for kind, count in self.kills.items() if kind in KILLS)

    @property
    def ok(self) -> float:
        """Share of the driver's operations that succeeded in the end. A refusal is a right answer and no success."""
        said = self.histories.said
        return sum(one.outcome == "ok" for one in said) / len(said) if said else 0.0

    @property
    def void(self) -> bool:
        """A run in which too little went well proves nothing."""
        return self.ok < LEAST_OK

    @property
    def wrong(self) -> int:
        """Contradictions of all invariants."""
        return sum(len(found.wrong) for found in self.found.values())

    @property
    def replays(self) -> int:
        """Starts that were sent twice and became two runs."""
        return sum(one.outcome == "wrong" for one in self.histories.said)

    def recovery(self) -> dict[str, float]:
        """The measured figures, in seconds."""
        undisturbed = list(self._compensations())
        return {
            "worker_p99": round(percentile(self.figures.worker, 0.99), 2),
            "worker_cases": len(self.figures.worker),
            "found_p99": round(percentile(self.figures.found, 0.99), 2),
            "broker_p99": round(percentile(self.figures.broker, 0.99), 2),
            "broker_cases": len(self.figures.broker),
            "compensation_mean": round(sum(undisturbed) / len(undisturbed), 2) if undisturbed else 0.0,
            "compensation_cases": len(undisturbed),
            "settled": round(self.settled_s, 1),
        }

    def _compensations(self) -> Iterable[float]:
        """From turning back to the end, of runs in which every compensation went out once and was answered."""
        for ref, trail in self.histories.told.items():
            at = {entry.name: entry.at for entry in trail}
            names = Counter(entry.name for entry in trail)
            smooth = names["tool.compensation.started"] == names["tool.compensation.succeeded"] > 2
            alone = not any(entry.actor_kind == "human" for entry in trail)
            run = self.histories.refs[ref]
            if smooth and alone and "run.compensated" in at and run["deliveries"] == 1:
                yield (at["run.compensated"] - at["run.turned_back"]).total_seconds()

    @property
    def late(self) -> list[str]:
        """Figures beyond their limits, of those that enough cases stand behind."""
        measured = self.recovery()
        judged = {
            "worker_p99": (WORKER_S, measured["worker_cases"] >= LEAST_CASES),
            "found_p99": (FOUND_S, measured["worker_cases"] >= LEAST_CASES),
            "broker_p99": (BROKER_S, measured["broker_cases"] >= LEAST_CASES),
            "compensation_mean": (COMPENSATION_S, measured["compensation_cases"] >= LEAST_CASES / 5),
        }
        return [
            f"{name} {measured[name]} > {limit}"
            for name, (limit, enough) in judged.items()
            if enough and measured[name] > limit
        ]

    @property
    def holds(self) -> bool:
        """No contradiction, nothing late, and enough went well for that to mean something."""
        return not self.wrong and not self.replays and not self.void and not self.late

    def lines(self) -> Iterable[str]:
        """Everything but the verdict, for a person."""
        for name, found in self.found.items():
            yield f"{name:<22} {len(found.wrong)} of {found.trials} (95 % bound {found.bound:.5f})"
            yield from (f"    {wrong}" for wrong in found.wrong[:10])
        said = Counter((one.kind, one.outcome) for one in self.histories.said)
        yield "operations " + ", ".join(
            f"{kind} {outcome} {said[kind, outcome]}" for kind, outcome in sorted(said)
        )
        refused = Counter(
            f"{one.verb or one.kind} {one.detail.partition(':')[0]}"
            for one in self.histories.said
            if one.outcome == "refused"
        )
        yield "refused " + ", ".join(f"{what} {count}" for what, count in refused.most_common())
        for one in self.histories.said:
            if one.outcome not in ("ok", "refused"):
                yield f"    {one.kind} {one.verb} {one.id} {one.outcome} {one.status} {one.detail}"
        ends = Counter(row["state"] for row in self.histories.snapshot["run"])
        yield "runs " + ", ".join(f"{state} {ends[state]}" for state in sorted(ends))
        yield "seconds " + ", ".join(f"{name} {value}" for name, value in self.recovery().items())
        slowest = sorted(self.figures.slow, key=lambda one: one.taken_s, reverse=True)
        yield from (f"slow: {one}" for one in slowest[:SLOWEST])

    def verdict(self) -> str:
        """The verdict line."""
        counts = " ".join(
            f"{word} {len(self.found[name].wrong)} (< {self.found[name].bound:.4f})"
            for name, word in _WORDS.items()
        )
        measured = self.recovery()
        heal = f"heal p99 {measured['worker_p99']} s broker p99 {measured['broker_p99']} s"
        end = "VOID" if self.void else "holds" if self.holds else "DOES NOT HOLD"
        late = f" late: {'; '.join(self.late)}" if self.late else ""
        return f"kills {self.killed} {counts} {heal} ok {self.ok:.1%} seed {self.seed}{late}: {end}"

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "kills": self.kills,
            "killed": self.killed,
            **plan_of(self.seed, self.seconds),
            "ok": round(self.ok, 4),
            "void": self.void,
            "holds": self.holds,
            "figures": self.recovery(),
            "late": self.late,
            "runs": dict(Counter(row["state"] for row in self.histories.snapshot["run"])),
            "operations": dict(Counter(f"{one.kind} {one.outcome}" for one in self.histories.said)),
            "invariants": {
                name: {"trials": found.trials, "bound": found.bound, "wrong": found.wrong[:200]}
                for name, found in self.found.items()
            },
            "verdict": self.verdict(),
        }


def plan_of(seed: int, seconds: float) -> dict[str, str]:
    """What a soak of this seed does, as digests: its faults, and its first thousand jobs with what happens to them."""
    return {
        "schedule_sha256": _digest([asdict(fault) for fault in schedule(seed, seconds)]),
        "jobs_sha256": _digest([asdict(job(seed, number)) for number in range(1, 1001)]),
    }


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("file", type=Path, help="what `chaos soak --json FILE` has written")


def _tell(options: dict[str, Any], say: Say) -> bool:
    document = json.loads(options["file"].read_text())
    for name, found in document["invariants"].items():
        say(f"{name:<22} {len(found['wrong'])} of {found['trials']} (95 % bound {found['bound']:.5f})")
        for wrong in found["wrong"]:
            say(f"    {wrong}")
    for what in ("kills", "operations", "runs", "figures"):
        say(f"{what} " + ", ".join(f"{name} {value}" for name, value in document[what].items()))
    say(document["verdict"])
    return bool(document["holds"])


DOOR = Door(help="tell again what a soak came to", arguments=_arguments, run=_tell)
