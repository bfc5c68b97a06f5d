"""What must hold after any fault, read from the laws and the world's own ledger; no table of expected outcomes.

Judges one case: what took effect outside, how often, in which order, against what the record says of each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sagas.facts import ActionFacts, RunFacts
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, RunState
from workbench.labs.chaos.cells import Cell, slot_of

FAULTS = ("lost", "doubled", "false-confirmed", "false-rejected", "stuck", "disordered", "unregistered")

type Records = Sequence[dict[str, Any]]

_CLEAR = frozenset({400, 422, 429})
"""Answers by which these contracts say that nothing happened."""


@dataclass
class Verdict:
    """What is wrong with one case; nothing, when it is empty."""

    faults: list[tuple[str, str]] = field(default_factory=list)

    def add(self, fault: str, detail: str) -> None:
        """Note a fault, one of `FAULTS`."""
        assert fault in FAULTS  # noqa: S101  a word of ours
        self.faults.append((fault, detail))


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What the world's ledger says of one step."""

    done: int
    undone: int
    doubtful: int

    @property
    def net(self) -> int:
        """How often the step's effect stands."""
        return self.done - self.undone


def judge(cell: Cell, facts: RunFacts | None, about: str, records: Records) -> Verdict:
    """Weigh a case that has come to rest, or that should have."""
    verdict = Verdict()
    if facts is None:
        verdict.add("lost", "there is no such run")
        return verdict
    steps = {action.step: action for action in facts.actions}
    for number in range(1, cell.steps + 1):
        seen = _outside(records, slot_of(about, number))
        _judge_step(verdict, cell, steps[f"s{number}"], seen, struck=number == cell.place)
    _judge_end(
        verdict, cell, facts, sum(_outside(records, slot_of(about, n)).net for n in range(1, cell.steps + 1))
    )
    _judge_rest(verdict, cell, facts)
    _judge_order(verdict, facts, about, records)
    return verdict


def _outside(records: Records, slot: str) -> Outside:
    own = [record for record in records if record["business"] == slot]
    effects = [record["direction"] for record in own if record["kind"] == "effect"]
    answers = {record["call"]: record["status"] for record in own if record["kind"] == "replied"}
    calls = [r["call"] for r in own if r["kind"] == "arrived" and r["direction"] in ("do", "compensate")]
    return Outside(
        done=effects.count("do"),
        undone=effects.count("compensate"),
        doubtful=sum(answers.get(call) not in _CLEAR for call in calls),
    )


def _judge_step(verdict: Verdict, cell: Cell, action: ActionFacts, seen: Outside, *, struck: bool) -> None:
    """Laws 3, 4 and 7 for one step: nothing twice, and what the record says is what is there."""
    step, state = action.step, action.state
    if seen.done > 1 or seen.undone > 1 or seen.net not in (0, 1):
        verdict.add(
            "doubled", f"{step} took effect {seen.done} times and was made up for {seen.undone} times"
        )
    if struck and not cell.of.settles:
        # Neither key nor query: whoever called once and got no clear answer may not call again (law 4).
        calls = 1 + (seen.done if cell.back else 0)
        if seen.doubtful > calls:
            verdict.add("doubled", f"{step} was called {seen.doubtful} times without a clear answer before")
    match state:
        case ActionState.CONFIRMED if seen.done == 0:
            verdict.add("false-confirmed", f"{step} is confirmed and never took effect")
        case ActionState.CONFIRMED if seen.net != 1 and not _compensation_open(action):
            verdict.add("false-confirmed", f"{step} is confirmed and is there {seen.net} times")
        case ActionState.COMPENSATED if seen.net != 0:
            verdict.add("false-confirmed", f"{step} is compensated and is there {seen.net} times")
        case ActionState.REJECTED | ActionState.SKIPPED | ActionState.NOT_STARTED | ActionState.PREPARED if (
            seen.done
        ):
            verdict.add("false-rejected", f"{step} is {state} and took effect {seen.done} times")
        case _:
            pass


def _compensation_open(action: ActionFacts) -> bool:
    """Whether nobody claims to know what became of the compensation."""
    return action.compensation is not None and action.compensation.state is CompensationState.UNKNOWN


def _judge_end(verdict: Verdict, cell: Cell, facts: RunFacts, net: int) -> None:
    """Law 7: an end state is about effects left in the world."""
    match facts.state:
        case RunState.COMPLETED if net != cell.steps:
            verdict.add("false-confirmed", f"completed with {net} of {cell.steps} effects")
        case RunState.COMPENSATED | RunState.FAILED_CLEAN if net != 0:
            verdict.add("false-rejected", f"{facts.state} with {net} effects left")
        case RunState.CLOSED_ACCEPTED:
            verdict.add("stuck", "closed as accepted, which nobody did")
        case _:
            pass


def _judge_rest(verdict: Verdict, cell: Cell, facts: RunFacts) -> None:
    """V1 and V11: every run ends, or stands with a person for a reason that no machine could have settled."""
    if facts.state in FINAL_RUN_STATES:
        return
    if facts.state is not RunState.HANDOFF or facts.handoff is None:
        verdict.add("stuck", f"left {facts.state}")
        return
    if not any(_needs_a_person(cell, action) for action in facts.actions):
        verdict.add("stuck", f"handed over ({facts.handoff.reason}) though it could be settled")


def _needs_a_person(cell: Cell, action: ActionFacts) -> bool:
    """Whether this step is where the machine's means end."""
    if action.step != f"s{cell.place}":
        return False
    made_up = action.compensation
    unsettled = ActionState.UNKNOWN if not cell.back else CompensationState.UNKNOWN
    found = action.state if not cell.back else made_up and made_up.state
    if found == unsettled:
        if cell.of.asked:
            return False
        if not cell.of.honours_key:
            return True
        # A repeat under its key that gets no clear answer settles nothing, and one that is refused says nothing of the
        # call before it. Either way it has to have been made before a person is asked (law 4).
        tries = made_up.attempts if cell.back and made_up else action.attempts
        return (cell.does.silent or cell.does.refuses) and len(tries) > 1
    if cell.back:
        given_up = made_up is not None and made_up.state is CompensationState.FAILED
        return given_up and (cell.does.refuses or cell.does.silent)
    # A blind tool can be made up for only blindly; its compensation is answered clearly here.
    return False


def _judge_order(verdict: Verdict, facts: RunFacts, about: str, records: Records) -> None:
    """V5: compensations took effect in strictly the reverse order of confirmation. V2: registered before the call."""
    confirmed = {slot_of(about, int(a.step[1:])): a.confirm_seq or 0 for a in facts.actions if a.confirm_seq}
    order = [
        confirmed.get(record["business"], 0)
        for record in records
        if record["kind"] == "effect"
        and record["direction"] == "compensate"
        and record["business"].startswith(about)
    ]
    if order != sorted(order, reverse=True):
        verdict.add("disordered", f"made up for in the order of confirmations {order}")
    called = {
        record["business"]
        for record in records
        if record["kind"] == "arrived" and record["direction"] == "do"
    }
    for action in facts.actions:
        if slot_of(about, int(action.step[1:])) in called and action.compensation is None:
            verdict.add("unregistered", f"{action.step} was called with no compensation on record")
