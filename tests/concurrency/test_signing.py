"""Yes, no and too late in the same moment: one of them counts, and state, trail and world agree on which."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sagas import api
from sagas.facts import SignoffFacts
from sagas.states import FINAL_RUN_STATES, PermitState, RunState
from tests.concurrency.test_commands import at_once
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import *  # noqa: F403 - the fixtures of cases
from tests.integration.workbench.conftest import REFUSED
from tests.integration.workbench.signing import decide
from workbench.commands import Result, people
from workbench.labs import cast
from workbench.models import Receipt
from workbench.roles import Role


@pytest.fixture
def world(workplace: Simulator) -> Simulator:
    signing.publish()
    signing.newcomer("rosa", Role.APPROVER)
    workplace.plan(REFUSED)
    return workplace


def called_off(world: Simulator) -> int:
    return len(world.ledger(tool="cancel_shipment", kind="effect"))


def decisions(signoff: SignoffFacts) -> list[str]:
    return [
        entry.target
        for entry in api.entries(signoff.run.ref)
        if entry.name == "approval.settled" and entry.actor_kind == "human"
    ]


def state(signoff: SignoffFacts) -> PermitState:
    return api.signoff_facts(signoff.permit.ref).permit.state


@pytest.mark.requirement("S1-6", "S2-11")
def test_one_click_arriving_many_times_is_one_signature_and_one_call(world: Simulator) -> None:
    asked = signing.asked_by_itself()

    results = at_once(*[lambda: decide("priya", "sign", asked, "click") for _ in range(6)])

    assert Counter(result.status for result in results) == {"accepted": 1, "duplicate": 5}
    assert Receipt.objects.filter(verb="sign").count() == 1
    assert signing.drive_until_still(asked.run.ref).state is RunState.COMPENSATED
    assert called_off(world) == 1


@pytest.mark.requirement("S3-17", "S0-2")
@pytest.mark.parametrize("turn", range(3))
def test_of_two_signatures_at_once_one_is_taken_and_the_other_reads_whose(
    world: Simulator, turn: int
) -> None:
    asked = signing.asked_by_itself()

    results = at_once(lambda: decide("priya", "sign", asked), lambda: decide("rosa", "sign", asked))

    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 1}
    (loser,) = (result for result in results if not result.accepted)
    winner = api.signoff_facts(asked.permit.ref).permit.decided_by_name
    assert (loser.code, winner in str(loser.sentence)) == ("decided", True)
    assert decisions(asked) == ["granted"]
    signing.drive_until_still(asked.run.ref)
    assert called_off(world) == 1


@pytest.mark.requirement("S3-17", "S0-2")
@pytest.mark.parametrize("turn", range(4))
def test_of_yes_and_no_at_once_one_counts_and_the_world_agrees(world: Simulator, turn: int) -> None:
    asked = signing.asked_by_itself()
    acts: list[Callable[[], Result]] = [
        lambda: decide("priya", "sign", asked),
        lambda: decide("rosa", "reject", asked),
    ]

    results = at_once(*acts)

    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 1}
    facts = signing.drive_until_still(asked.run.ref)
    signed = results[0].accepted
    assert decisions(asked) == (["granted"] if signed else ["rejected"])
    assert called_off(world) == (1 if signed else 0)
    assert facts.state is (RunState.COMPENSATED if signed else RunState.HANDOFF)


@pytest.mark.requirement("S0-7")
@pytest.mark.parametrize("turn", range(5))
def test_a_signature_in_the_second_of_expiry_counts_or_does_not_but_never_both(
    world: Simulator, clock_of_tests: Clock, turn: int
) -> None:
    asked = signing.asked_by_itself()
    left = (asked.permit.expires_at - api.now()).total_seconds()
    # The turns come before, at and after the edge.
    clock_of_tests.put_forward(left - 0.08 + turn * 0.04)

    def sweep() -> Result:
        while api.run_facts(asked.run.ref).state not in (*FINAL_RUN_STATES, RunState.HANDOFF):
            signing.drive_until_still(asked.run.ref)
            time.sleep(0.02)
        return decide("rosa", "sign", asked, "late")

    first, late = at_once(lambda: decide("priya", "sign", asked), sweep)

    final = state(asked)
    assert late.code in ("decided", "request_expired")
    if first.accepted:
        assert (final, called_off(world), decisions(asked)) == (PermitState.CONSUMED, 1, ["granted"])
    else:
        assert (first.status, first.http_status) == ("expired", 410)
        assert (final, called_off(world), decisions(asked)) == (PermitState.EXPIRED, 0, [])


@pytest.mark.requirement("S0-35")
def test_a_signature_waits_for_a_right_that_is_just_being_taken(
    world: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = signing.asked_by_itself()
    priya, really = flows.person("priya"), api.void_permits_of
    looked = threading.Event()

    def void_slowly(*args: Any, **more: Any) -> tuple[str, ...]:
        found = really(*args, **more)
        looked.set()
        time.sleep(0.6)
        return found

    monkeypatch.setattr(api, "void_permits_of", void_slowly)

    def take() -> Result:
        people.take_role(actor=cast.SYSTEM, person=priya, role=Role.APPROVER, reason="Left the team")
        return decide("priya", "sign", asked, "after")

    def sign() -> Result:
        assert looked.wait(60)
        return decide("priya", "sign", asked)

    __, signed = at_once(take, sign)

    assert signed.code == "no_role"
    assert state(asked) is PermitState.REQUESTED


@pytest.mark.requirement("S0-35")
@pytest.mark.parametrize("turn", range(4))
def test_a_right_that_is_taken_while_it_is_used_leaves_no_signature_behind(
    world: Simulator, turn: int
) -> None:
    asked = signing.asked_by_itself()
    priya = flows.person("priya")

    def take() -> Result:
        people.take_role(actor=cast.SYSTEM, person=priya, role=Role.APPROVER, reason="Left the team")
        return decide("priya", "sign", asked, "after")

    signed = at_once(lambda: decide("priya", "sign", asked), take)

    assert signed[1].code in ("role", "no_role")
    assert state(asked) is (PermitState.WITHDRAWN if signed[0].accepted else PermitState.REQUESTED)
    facts = signing.drive_until_still(asked.run.ref)
    assert (facts.state, called_off(world)) == (RunState.AWAITING_APPROVAL, 0)
