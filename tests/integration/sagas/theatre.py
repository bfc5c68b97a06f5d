"""All failure cases of the imported chains, played side by side against `tests.downstream` and brought to their rest.

What happens is what the source injects; what comes of it is judged elsewhere.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.request import Request

import pytest
from django.conf import settings
from django.db import connections
from pytest_django import DjangoDbBlocker

from sagas import api
from sagas.executor import Drain, perform
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.start import run_ref
from sagas.models import Run
from sagas.orders import Ask, Call, Claim, Order
from tests.conftest import DIRECTLY, PUBLISHER, Clock
from tests.integration.sagas.conftest import AGENT, ROOT, drain
from tests.integration.sagas.imported import Chain, chains
from tools import lint
from tools.reader import contract_from_document, definition_from_document
from tools.world import World
from workbench.labs import children

PRIYA = Actor(kind=ActorKind.HUMAN, id="user:2", name="Priya", role="approver")
CHAINS = chains()
FIRST = 3_000_001
LINT_ONLY = "undo-wired-to-wrong-tool"
"""This one is about a registry, not about a run."""


@dataclass(frozen=True)
class Case:
    """One failure case of a source, with the number of the run that plays it."""

    source: str
    name: str
    inject: dict[str, Any]
    expect: dict[str, Any]
    number: int

    @property
    def chain(self) -> Chain:
        return CHAINS[self.source]

    @property
    def step(self) -> str:
        """The step that the failure comes to."""
        return str(self.inject.get("step") or self.inject.get("after"))

    @property
    def run_ref(self) -> str:
        return run_ref(AGENT, f"imported-{self.number}")


def _cases() -> list[Case]:
    cases: list[Case] = []
    for source, chain in CHAINS.items():
        for case in chain.source["failure_cases"]:
            expect = case.get("expect", {})
            cases.append(Case(source, case["case"], case.get("inject", {}), expect, FIRST + len(cases)))
    return cases


CASES = _cases()
PLAYED = [case for case in CASES if case.name != LINT_ONLY]


# --- Playing ----------------------------------------------------------------------------------------------------


@dataclass
class Theatre:
    """The downstream, the world that reaches it, and what was seen on the way."""

    url: str
    clock: Clock
    records: list[dict[str, Any]] = field(default_factory=list)
    glimpses: dict[int, RunFacts] = field(default_factory=dict)
    signed: int = 0

    def ask(self, name: str, body: Any = None) -> Any:
        request = Request(f"{self.url}/_/{name}", json.dumps(body or []).encode())  # noqa: S310 - our own
        with DIRECTLY.open(request, timeout=60) as answer:
            return json.loads(answer.read())

    def sign_all(self) -> int:
        """Have another person sign whatever waits for it; returns how many."""
        signed = 0
        while refs := [row.ref for row in api.signoffs().rows]:
            for ref in refs:
                with api.transaction(), api.signoff_desk(ref, actor=PRIYA, reason="I have seen it") as desk:
                    desk.sign(ref)
                signed += 1
        self.signed += signed
        return signed

    def settle(self) -> None:
        """Drain until every run is with a person or at its end; sign what asks for it, put the clock forward."""
        for _ in range(200):
            drain()
            if self.sign_all():
                continue
            waiting = Run.objects.exclude(state="handoff").exclude(due_at=None).order_by("due_at")
            first = waiting.values_list("due_at", flat=True).first()
            if first is None:
                return
            # A little further, so that what is due nearly together is driven together.
            self.clock.put_forward(max((first - api.now()).total_seconds(), 0.0) + 1.0)
        raise AssertionError("The runs do not come to rest.")

    def facts(self, case: Case) -> RunFacts:
        return api.run_facts(case.run_ref)


@pytest.fixture(scope="module")
def downstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("downstream")
    announcement, log = folder / "announce.json", folder / "log"
    with log.open("wb") as output:
        process = children.start(
            [sys.executable, "-m", "tests.downstream", announcement], output=output, cwd=ROOT
        )
    try:
        deadline = time.monotonic() + 60
        while not announcement.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield str(json.loads(announcement.read_text())["url"])
    finally:
        children.stop(process, signal.SIGTERM)


@pytest.fixture(scope="module")
def theatre(
    downstream: str,
    empty_tables: Callable[[], None],
    clock_of_tests: Clock,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Theatre]:
    """Every imported chain published, its tools known to the downstream."""
    systems = {one["system"] for chain in CHAINS.values() for one in chain.contracts}
    made = Theatre(downstream, clock_of_tests)
    made.ask("tools", [tool for chain in CHAINS.values() for tool in chain.tools()])
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "TOOL_SYSTEMS", {name: f"{downstream}/{name}" for name in systems})
        for chain in CHAINS.values():
            for document in chain.contracts:
                api.publish_contract(contract_from_document(document), actor=PUBLISHER)
            _publish(chain)
        yield made
        connections.close_all()
    empty_tables()


def _publish(chain: Chain) -> None:
    definition = definition_from_document(chain.definition)
    contracts = {one["tool"]: contract_from_document(one) for one in chain.contracts}
    blocked = {finding.code for finding in lint.check(definition, contracts) if lint.blocks([finding])}
    # The chain's own message cannot be asked about: that is what two of its cases are about.
    waivers = [lint.Waiver(code=code, reason="its failure cases are about that") for code in sorted(blocked)]
    assert blocked <= {"W104"}
    api.publish_definition(definition, actor=PUBLISHER, waivers=waivers)


@pytest.fixture(scope="module")
def played(theatre: Theatre) -> Theatre:
    """Every case, side by side, to its rest."""
    theatre.ask("plan", [rule for case in PLAYED for rule in _rules(case)])
    for case in PLAYED:
        api.start_run(
            actor=AGENT,
            definition=case.chain.name,
            input=case.chain.given(case.number),
            start_key=f"imported-{case.number}",
        )
    for case in PLAYED:
        _before_the_drain(theatre, case)
    _together(*[_answer_the_bell] * 3)
    theatre.settle()
    theatre.records = theatre.ask("ledger")
    return theatre


def _rules(case: Case) -> list[dict[str, Any]]:
    """What the downstream does to the calls of this case's run; every key carries the run, every argument its number."""
    rules: list[dict[str, Any]] = []

    def rule(contract: dict[str, Any], mode: str, **more: Any) -> None:
        match = [case.run_ref, str(case.number)]
        where = {"system": contract["system"], "operation": contract["operation"], "match": match}
        rules.append({**where, "mode": mode, **more})

    mode = case.inject.get("mode")
    if mode in MODES and "step" in case.inject:
        named, once = MODES[mode]
        asked = case.expect.get("then") != "no query exists"
        again = "same idempotency key" in str(case.expect.get("result")) or not asked
        rule(case.chain.of_step(case.step), named, **({"attempts": [1]} if once or again else {}))
    if case.inject.get("status_query") == "unavailable":
        query = case.chain.of_step(case.step)["status_query"]["tool"]
        rule(case.chain.contract(query), "unavailable")
    if compensated := case.inject.get("compensation_of"):
        for_good = case.inject["compensation_mode"] == "rejected"
        more = {"error": case.inject["error_type"]} if "error_type" in case.inject else {}
        more |= {} if for_good else {"attempts": list(range(1, case.inject["times"] + 1))}
        rule(
            case.chain.compensation_of(compensated),
            "rejected" if for_good else "unavailable",
            **more,
        )
    return rules


MODES = {
    "rejected": ("rejected", False),
    "response_lost_after_effect": ("answer_lost", False),
    "request_lost_before_effect": ("request_lost", True),
}
"""By a source's word: what the downstream does, and whether to the first attempt only."""


def _before_the_drain(theatre: Theatre, case: Case) -> None:
    mode = case.inject.get("mode")
    if "kill_worker" in case.inject:
        _drive(theatre, case, until=lambda call: call.compensation_id is not None)
    elif mode == "kill_worker_after_effect_before_result_saved":
        _drive(theatre, case, until=lambda call: call.compensation_id is None)
    elif mode == "same action taken by two workers":
        _two_workers(case)
    elif mode == "workflow_time_limit":
        _drive(theatre, case, until=_call_of(case, case.step), end="time is up")
    elif paused := case.inject.get("pause_in_undo_of"):
        tool = case.chain.compensation_of(paused)["tool"]
        _drive(theatre, case, until=lambda call: call.contract.tool == tool, end="look and go on")


def _call_of(case: Case, step: str) -> Callable[[Call], bool]:
    tool = case.chain.of_step(step)["tool"]
    return lambda call: call.contract.tool == tool


def _drive(
    theatre: Theatre, case: Case, *, until: Callable[[Call], bool], end: str = "die without a word"
) -> None:
    """Drive one run, signed where it asks, to the first such call; then the worker ends in the way that is named."""
    owner = workers.enrol("alone")
    world = World(settings.TOOL_SYSTEMS)
    run = Run.objects.get(ref=case.run_ref)
    for _ in range(10):
        claimed = ledger.claim_run(run.pk, owner)
        assert claimed is not None
        claim, order = claimed
        while isinstance(order, Call | Ask):
            meant = isinstance(order, Call) and until(order)
            if meant and end == "look and go on":
                theatre.glimpses[case.number] = theatre.facts(case)
            seen = perform(order, world)
            if meant and end == "die without a word":
                workers.sign_off(owner, "killed")
                assert workers.bury(owner) == 1
                world.close()
                return
            order = ledger.advance(claim, seen, last=meant and end == "time is up")
            if meant and end != "die without a word":
                theatre.glimpses.setdefault(case.number, theatre.facts(case))
                until = _never
        if until is _never:
            workers.sign_off(owner)
            world.close()
            return
        assert theatre.sign_all()
    raise AssertionError("The call was never made.")


def _never(call: Call) -> bool:
    return False


def _two_workers(case: Case) -> None:
    """Two workers want the same run at the same moment; the loser reads again and goes away."""
    run = Run.objects.get(ref=case.run_ref)
    barrier, won = threading.Barrier(2), list[tuple[Claim, Order]]()

    def want() -> None:
        owner = workers.enrol("rival")
        barrier.wait(60)
        if (claimed := ledger.claim_run(run.pk, owner)) is not None:
            won.append(claimed)
        connections.close_all()

    _together(want, want)
    assert len(won) == 1
    claim, order = won[0]
    world = World(settings.TOOL_SYSTEMS)
    while isinstance(order, Call | Ask):
        order = ledger.advance(claim, perform(order, world))
    world.close()


def _answer_the_bell() -> None:
    """The bell rings three times at once: three drains look for work."""
    drainer = Drain("bell")
    drainer.run(seconds=1.0)
    drainer.close()
    connections.close_all()


def _together(*acts: Callable[[], None]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


# --- The outside ledger -------------------------------------------------------------------------------------------


def _of(theatre: Theatre, case: Case, kind: str) -> list[dict[str, Any]]:
    """A call carries its run in its key, or, without a key, the run's number in its arguments."""
    ref, number = case.run_ref, str(case.number)
    return [
        record
        for record in theatre.records
        if record["kind"] == kind
        and ref in (record["key"] or ref)
        and (record["key"] or number in str(record["args"]))
    ]


def calls(
    theatre: Theatre, case: Case, contract: dict[str, Any], kind: str = "arrived"
) -> list[dict[str, Any]]:
    """The calls of a tool that reached the outside for this case, or what of them took effect."""
    meant = (contract["system"], contract["operation"])
    return [r for r in _of(theatre, case, kind) if (r["system"], r["operation"]) == meant]


def compensations(theatre: Theatre, case: Case) -> list[str]:
    """The compensations that took effect outside, in order."""
    tools = {(one["system"], one["operation"]) for one in case.chain.tools() if one["role"] == "compensate"}
    return [r["operation"] for r in _of(theatre, case, "effect") if (r["system"], r["operation"]) in tools]


def net(theatre: Theatre, case: Case, step: str) -> tuple[int, int]:
    """How often a step took effect outside, and how often that was compensated."""
    done = len(calls(theatre, case, case.chain.of_step(step), "effect"))
    if not has_compensation(case, step):
        return done, 0
    return done, len(calls(theatre, case, case.chain.compensation_of(step), "effect"))


def has_compensation(case: Case, step: str) -> bool:
    return "compensation" in case.chain.of_step(step)


def has_effect(case: Case, step: str) -> bool:
    return bool(case.chain.of_step(step)["effect_kind"] != "read_only")
