"""Many runs of the bank flow with a failure at a random step each; the simulated world's ledger is the judge (S2-14).

Every run must reach an end state that is declared and verified outside, or stand open with a person. Which of these
it reached is counted apart: a handoff is never counted as success.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sagas import api
from sagas.facts import Actor, ActorKind, RunFacts
from workbench.labs import story
from workbench.labs.arena import Arena
from workbench.labs.world import Outside

AGENT = Actor(kind=ActorKind.AGENT, id="agent:soak", name="Soak agent", role="agent")
STEPS = ("create_customer", "create_file", "allocate_limit", "send_sms", "debit_fee")
COMPENSATIONS = ("release_customer_no", "withdraw_file", "reclaim_limit", "reverse_fee")
MODES = (
    "refuse",
    "fail_before",
    "fail_after",
    "no_answer",
    "applied_no_answer",
    "garbage",
    "wrong_schema",
    "throttle",
    "slow",
    "cut",
    "reset",
    "not_found",
)
COMPENSATION_MODES = ("fail_before", "fail_after", "applied_no_answer", "throttle", "reset")
IN_FLIGHT = 8
STUCK_S = 240.0
"""Far beyond every wait that the contracts of the flow allow: a minute of "too fast", four tries of everything else."""

type Progress = Callable[[str], None]


@dataclass
class Verdict:
    """What the soak came to. Times in seconds."""

    runs: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    inconsistent: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    refused_starts: int = 0
    compensation_s: list[float] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def mean_compensation_s(self) -> float:
        """Mean time from turning back to the end of the compensation, over runs that no person touched."""
        return sum(self.compensation_s) / len(self.compensation_s) if self.compensation_s else 0.0

    @property
    def holds(self) -> bool:
        """The hard gate of S2-14 and the figures beside it."""
        errors = self.refused_starts / self.runs if self.runs else 1.0
        clean = not self.inconsistent and not self.stuck and not self.out_of_order
        return clean and self.mean_compensation_s < 3.0 and errors < 0.001

    def line(self) -> str:
        """The verdict line."""
        ends = " ".join(f"{name} {self.ends[name]}" for name in sorted(self.ends))
        bound = 3 / self.runs if self.runs else 1.0
        return (
            f"runs {self.runs} {ends} inconsistent {len(self.inconsistent)} (95 % bound {bound:.4f}) "
            f"stuck {len(self.stuck)} out of order {len(self.out_of_order)} "
            f"mean compensation {self.mean_compensation_s:.2f} s refused starts {self.refused_starts} "
            f"in {self.seconds:.0f} s: {'holds' if self.holds else 'DOES NOT HOLD'}"
        )


def soak(runs: int, *, seed: int, progress: Progress) -> Verdict:
    """Run the soak in an arena of its own."""
    chance = random.Random(seed)  # noqa: S311  replayable, not secret
    verdict, began = Verdict(runs=runs), time.monotonic()
    with Arena(workers=1, concurrency=3) as ground:
        story.publish(progress)
        waiting: dict[str, tuple[str, float]] = {}
        started = 0
        while started < runs or waiting:
            while started < runs and len(waiting) < IN_FLIGHT:
                business = f"A-{seed % 1000:03d}{started:06d}"
                ref = start_one(business, started, seed, chance, ground.outside, verdict)
                if ref:
                    waiting[ref] = (business, time.monotonic())
                started += 1
                if started % 100 == 0:
                    progress(f"{started} of {runs} started, {sum(verdict.ends.values())} at rest")
            for ref in story.resting(list(waiting)):
                business, _since = waiting.pop(ref)
                judge_one(api.run_facts(ref), business, ground.outside, verdict)
            for ref, (_business, since) in list(waiting.items()):
                if time.monotonic() - since > STUCK_S:
                    del waiting[ref]
                    verdict.stuck.append(ref)
            for notice in ground.tend():
                progress(notice)
            time.sleep(0.2)
    verdict.seconds = time.monotonic() - began
    return verdict


def start_one(
    business: str, number: int, seed: int, chance: random.Random, outside: Outside, verdict: Verdict
) -> str:
    """Plan what goes wrong and start the run that it goes wrong for; returns its reference, "" when it was refused."""
    key = f"soak:{business}"
    ref = api.run_ref(AGENT, key)
    attempts = chance.choice(([1], [1], [1, 2], None))
    rule: dict[str, object] = {"tool": chance.choice(STEPS), "mode": chance.choice(MODES), "match": ref}
    outside.plan(rule if attempts is None else {**rule, "attempts": attempts})
    if chance.random() < 0.2:
        outside.plan(
            {
                "tool": chance.choice(COMPENSATIONS),
                "mode": chance.choice(COMPENSATION_MODES),
                "match": ref,
                "attempts": [1],
            }
        )
    given = {
        "application": business,
        "name": "R. Sample",
        "id_no": f"S{seed % 1000:03d}{number:06d}",
        "limit": "500.00",
        "phone": "+49 40 555 0100",
        "fee": "20.00",
    }
    try:
        api.start_run(actor=AGENT, definition="bank_opening", input=given, start_key=key)
    except Exception:  # noqa: BLE001  whatever it was, the user saw an error; that is what is counted
        verdict.refused_starts += 1
        return ""
    api.ring(ref)
    return ref


def judge_one(facts: RunFacts, business: str, outside: Outside, verdict: Verdict) -> None:
    """Hold the record of a run that has come to rest against the world's ledger, and count how it ended."""
    state = facts.state.value
    verdict.ends[
        state if state != "handoff" or facts.handoff is None else f"open:{facts.handoff.reason}"
    ] += 1
    net = outside.net(business=business)
    wrong = _contradictions(facts, net)
    if wrong:
        verdict.inconsistent.append(f"{facts.ref} {state}: {'; '.join(wrong)}")
    if state == "compensated":
        trail = {entry.name: entry.at for entry in api.entries(facts.ref)}
        verdict.compensation_s.append((trail["run.compensated"] - trail["run.turned_back"]).total_seconds())
        done = [tool for tool in outside.effects(business=business) if tool in COMPENSATIONS]
        if done != sorted(done, key=COMPENSATIONS.index, reverse=True):
            verdict.out_of_order.append(f"{facts.ref}: {done}")


def _contradictions(facts: RunFacts, net: dict[str, int]) -> list[str]:
    """Where the record and the world differ; an end state that the definition does not declare is one too."""
    wrong = []
    for action in facts.actions:
        there = net.get(action.tool, 0)
        match action.state.value:
            case "confirmed" if there != 1:
                wrong.append(f"{action.tool} is confirmed and is there {there} times")
            case "compensated" | "rejected" | "skipped" | "not_started" if there != 0:
                wrong.append(f"{action.tool} is {action.state} and is there {there} times")
            case _ if there not in (0, 1):
                wrong.append(f"{action.tool} is there {there} times")
    left = sum(net.get(tool, 0) for tool in STEPS)
    if facts.state.value in ("compensated", "failed_clean") and left:
        wrong.append(f"{left} effects are left")
    if facts.state.value == "completed" and left != len(STEPS):
        wrong.append(f"only {left} of {len(STEPS)} effects are there")
    if facts.state.value == "closed_accepted":
        wrong.append("closed as accepted, which nobody did")
    return wrong
