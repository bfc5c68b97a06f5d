"""A worker dies by SIGKILL at each point of a call, forward and compensating; the sweep takes over.

Judged by the outside ledger: what took effect, how often, in which order, and that the compensation was on record before
the call arrived. All deaths are played side by side and recovered by one sweep; each is a test.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.request import urlopen

import pytest
from django.db import connection

from sagas import api
from sagas.facts import ActionFacts, RunFacts
from sagas.ledger.start import run_ref
from sagas.models import Run
from sagas.states import ActionState, CompensationState, RunState
from tests.faults.conftest import Processes, Victims, at_rest, wait_until
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import Stage

pytestmark = [
    pytest.mark.requirement("S4-8", "S4-9", "S4-16", "S4-29", "S1-6", "S3-6"),
    pytest.mark.timeout(600),
]


LOST = "call lost"
"""Dying with the call under way as well, only that this one never takes effect."""

POINTS = (
    "prepare.before_commit",
    "sent.before_commit",
    "call.before_first_byte",
    "call.awaiting_answer",
    LOST,
    "call.answered",
    "confirm.before_commit",
    "confirm.after_commit",
)


@dataclass(frozen=True)
class Kind:
    """A call to die in: what its tool does with keys, and the later step whose refusal starts the compensation."""

    name: str
    flow: str
    tool: str
    refused: str = ""
    compensating: bool = False


KINDS = (
    Kind("key-honoured", "order_fulfilment", "reserve_stock", "create_shipment"),
    Kind("key-ignored-query-by-key", "ticket_crm_notice", "create_ticket", "update_account"),
    Kind("natural-key", "bank_opening", "create_customer", "create_file"),
    Kind("irreversible", "order_fulfilment", "send_notice"),
    Kind("compensation-of-the-only-step", "order_fulfilment", "release_stock", "create_shipment", True),
    Kind("compensation-first-of-three", "bank_opening", "reclaim_limit", "send_sms", True),
    Kind("compensation-second-of-three", "bank_opening", "withdraw_file", "send_sms", True),
)


@dataclass(frozen=True)
class Death:
    """One death: in which call, at which point, with the number of the run."""

    kind: Kind
    point: str
    number: int

    @property
    def label(self) -> str:
        return f"{self.kind.name}-{self.point}"


DEATHS = [
    Death(kind, point, 3_000_001 + len(POINTS) * row + column)
    for row, kind in enumerate(KINDS)
    for column, point in enumerate(POINTS)
]


# --- Dying and recovering -----------------------------------------------------------------------------------------


@dataclass
class Aftermath:
    """What was found: how each victim ended, what it left behind, what became of it."""

    signals: dict[int, int]
    records: list[dict[str, Any]]
    clock_ahead: timedelta
    seconds: float


@pytest.fixture(scope="module")
def aftermath(stage: Stage, processes: Processes) -> Aftermath:
    stage.simulator.plan(*[rule for death in DEATHS for rule in _rules(stage, death)])
    runs = {
        death.number: Run.objects.get(ref=stage.start(death.kind.flow, death.number)).pk for death in DEATHS
    }
    victims = Victims()
    try:
        for death in DEATHS:
            victims.send(
                run_id=runs[death.number],
                point="call.awaiting_answer" if death.point == LOST else death.point,
                tool=death.kind.tool,
                direction="compensation" if death.kind.compensating else "forward",
            )
        victims.no_more()
        wait_until(lambda: victims.gone, "all victims are dead")
    finally:
        victims.close()
    refs = [stage.ref(death.number) for death in DEATHS]
    sweep = processes.sweep()
    seconds = wait_until(lambda: at_rest(refs), "the sweep has recovered every run", seconds=240)
    assert processes.end(sweep) == 0, processes.log("sweep")[-3000:]
    return Aftermath(
        signals={number: victims.signals[victims.pids[pk]] for number, pk in runs.items()},
        records=stage.simulator.ledger(),
        clock_ahead=_clock_ahead(),
        seconds=seconds,
    )


def _rules(stage: Stage, death: Death) -> list[dict[str, Any]]:
    ref, kind = run_ref(AGENT, f"run-{death.number}"), death.kind
    rules: list[dict[str, Any]] = (
        [{"tool": kind.refused, "match": ref, "mode": "refuse"}] if kind.refused else []
    )
    if death.point == LOST:
        rules.append({"tool": kind.tool, "match": ref, "mode": "no_answer", "attempts": [1]})
    return rules


def _clock_ahead() -> timedelta:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_() - clock_timestamp()")
        ahead: timedelta = cursor.fetchone()[0]
    return ahead


# --- Judging ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.label)
def test_a_worker_killed_there_leaves_no_orphan_and_nothing_twice(
    stage: Stage, aftermath: Aftermath, death: Death
) -> None:
    facts = stage.facts(death.number)

    assert aftermath.signals[death.number] == signal.SIGKILL
    assert facts.state is (RunState.COMPENSATED if death.kind.refused else RunState.COMPLETED)
    assert facts.handoff is None
    _judge_effects(aftermath, facts)
    _judge_registration(aftermath, facts)
    _judge_order(aftermath, facts)
    _judge_the_call(aftermath, facts, death)


def _judge_effects(aftermath: Aftermath, facts: RunFacts) -> None:
    """Nothing twice, and what is left in the world is what the states say."""
    effects = Counter(record["key"] for record in aftermath.records if record["kind"] == "effect")
    for action in facts.actions:
        made_up = effects[action.compensation.key] if action.compensation is not None else 0
        done = effects[action.key]
        assert (done, made_up) == {
            ActionState.CONFIRMED: (1, 0),
            ActionState.COMPENSATED: (1, 1),
            ActionState.REJECTED: (0, 0),
            ActionState.SKIPPED: (0, 0),
        }[action.state], action.step


def _judge_registration(aftermath: Aftermath, facts: RunFacts) -> None:
    """The compensation stood on record before the first call of its action arrived."""
    registered = {
        entry.step: entry.at
        for entry in reversed(api.entries(facts.ref))
        if entry.name == "tool.compensation.registered"
    }
    for action in facts.actions:
        arrivals = _of(aftermath, "arrived", action.key)
        if action.contract.compensation is None or not arrivals:
            continue
        assert registered[action.step] - aftermath.clock_ahead < datetime.fromisoformat(arrivals[0]["at"])


def _judge_order(aftermath: Aftermath, facts: RunFacts) -> None:
    """Compensations took effect in strictly the reverse order of confirmation."""
    made_up = {a.compensation.key: a for a in facts.actions if a.compensation is not None}
    order = [
        made_up[r["key"]].confirm_seq
        for r in aftermath.records
        if r["kind"] == "effect" and r["key"] in made_up
    ]
    assert order == sorted(order, key=lambda seq: -(seq or 0))
    compensated = [action for action in facts.actions if action.state is ActionState.COMPENSATED]
    assert len(order) == len(compensated)


def _judge_the_call(aftermath: Aftermath, facts: RunFacts, death: Death) -> None:
    """Before `sent` was committed the call is simply made; after it the outcome is unknown, and a query decides."""
    action = _action(facts, death.kind)
    key = action.compensation.key if death.kind.compensating and action.compensation else action.key
    arrivals = len(_of(aftermath, "arrived", key))
    word = "tool.compensation.unknown" if death.kind.compensating else "tool.execution.unknown"
    unknown = [entry for entry in api.entries(facts.ref) if (entry.name, entry.step) == (word, action.step)]
    match death.point:
        case "prepare.before_commit" | "sent.before_commit" | "confirm.after_commit":
            assert (arrivals, unknown) == (1, [])
        case "call.before_first_byte":
            assert (arrivals, len(unknown)) == (1, 1)
        case _ if death.point == LOST:
            assert (arrivals, len(unknown)) == (2, 1)
        case _:
            assert (arrivals, len(unknown)) == (1, 1)
            settled_by = action.settled_by if not death.kind.compensating else _settled_by(action)
            assert settled_by.startswith(("status query", "read"))
    if unknown:
        assert unknown[0].role in ("recovery", "validator")


def _settled_by(action: ActionFacts) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT settled_by FROM sagas_compensation WHERE action_id = %s", [action.id])
        return str(cursor.fetchone()[0])


def _action(facts: RunFacts, kind: Kind) -> ActionFacts:
    for action in facts.actions:
        tool = action.compensation.tool if kind.compensating and action.compensation else action.tool
        if tool == kind.tool:
            return action
    raise AssertionError(kind)


def _of(aftermath: Aftermath, kind: str, key: str) -> list[dict[str, Any]]:
    return [record for record in aftermath.records if record["kind"] == kind and record["key"] == key]


@pytest.mark.requirement("S2-7")
def test_nothing_is_outstanding_and_the_books_balance_after_every_death(
    stage: Stage, aftermath: Aftermath
) -> None:
    with urlopen(f"{stage.simulator.admin_url}/books", timeout=60) as books:  # noqa: S310 - our own
        answer = json.load(books)
    assert answer["balanced"] is True, answer["complaints"]
    states = {c.compensation.state for d in DEATHS for c in stage.facts(d.number).actions if c.compensation}
    assert states <= {CompensationState.CONFIRMED, CompensationState.VOIDED}
    print(f"{len(DEATHS)} kills: 0 lost, 0 twice, {aftermath.seconds:.1f} s until all had come to rest")  # noqa: T201
