"""People at the same moment, each on a connection of their own: one wins, the others are told."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, RunState
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import *  # noqa: F403 - the fixtures of cases
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import Result
from workbench.models import Receipt


def at_once(*acts: Callable[[], Result]) -> list[Result]:
    """Run each in a thread with its own connection, all let go together."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Result]) -> Result:
        try:
            barrier.wait(60)
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


@pytest.mark.parametrize("turn", range(3))
def test_of_two_who_claim_at_once_one_wins_and_the_other_reads_who(
    rejected_notice: RunFacts, turn: int
) -> None:
    ref = ref_of(rejected_notice)
    maya, jonas = Desk("maya"), Desk("jonas")

    results = at_once(lambda: maya.run("claim", ref, "m-1"), lambda: jonas.run("claim", ref, "j-1"))

    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 1}
    winner = api.handoff_facts(ref).handoff
    assert winner is not None
    (loser,) = (result for result in results if result.status == "conflict")
    assert (loser.code, winner.claimed_by_name in str(loser.sentence)) == ("held", True)
    assert "command.refused" in flows.names(rejected_notice.ref)


@pytest.mark.requirement("S3-17", "S0-2")
@pytest.mark.parametrize("turn", range(3))
def test_of_a_retry_and_a_compensation_at_once_exactly_one_runs(rejected_notice: RunFacts, turn: int) -> None:
    ref = ref_of(rejected_notice)
    maya, jonas = Desk("maya"), Desk("jonas")
    retry = maya.preview(ref, "retry", "send_notice")
    compensate = jonas.preview(ref, "compensate")

    results = at_once(
        lambda: maya.run("retry", ref, "m-1", preview_id=retry, step="send_notice", reason=REASON),
        lambda: jonas.run("compensate", ref, "j-1", preview_id=compensate, reason=REASON),
    )

    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 1}
    (loser,) = (result for result in results if result.status == "conflict")
    assert loser.code in ("stale", "held")
    assert Receipt.objects.count() == 1
    facts = api.run_facts(rejected_notice.ref)
    retried = facts.action("send_notice").state is ActionState.PREPARED
    assert retried != (facts.state is RunState.COMPENSATING)


@pytest.mark.requirement("S1-6", "S2-11")
def test_one_click_arriving_eight_times_at_once_has_one_effect(rejected_notice: RunFacts) -> None:
    ref, maya = ref_of(rejected_notice), Desk("maya")
    preview = maya.preview(ref, "compensate")

    results = at_once(
        *[lambda: maya.run("compensate", ref, "click", preview_id=preview, reason=REASON) for _ in range(8)]
    )

    assert Counter(result.status for result in results) == {"accepted": 1, "duplicate": 7}
    assert len({result.at for result in results}) == 1
    assert Receipt.objects.count() == 1
    assert flows.drive_until_still(rejected_notice.ref).state is RunState.COMPENSATED


def test_a_second_click_does_not_wait_for_ever_for_the_first(
    rejected_notice: RunFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.commands import _receipts

    monkeypatch.setattr(_receipts, "PATIENCE", "200ms")
    ref, maya = ref_of(rejected_notice), Desk("maya")
    locked, done = threading.Event(), threading.Event()

    def first() -> None:
        try:
            with api.transaction():
                _receipts.lock(maya.actor, "slow")
                locked.set()
                done.wait(60)
        finally:
            connections.close_all()

    holder = threading.Thread(target=first)
    holder.start()
    try:
        assert locked.wait(60)
        result = maya.run("comment", ref, "slow", text="Once only.")
    finally:
        done.set()
        holder.join()

    assert (result.status, result.http_status) == ("busy", 409)
    assert maya.run("comment", ref, "slow", text="Once only.").status == "accepted"


@pytest.mark.requirement("S4-1")
def test_a_freeze_that_comes_first_stops_the_retry_that_comes_with_it(rejected_notice: RunFacts) -> None:
    ref = ref_of(rejected_notice)
    maya, lin = Desk("maya"), Desk("lin")
    preview = maya.preview(ref, "retry", "send_notice")

    results = at_once(
        lambda: maya.run("retry", ref, "m-1", preview_id=preview, step="send_notice", reason=REASON),
        lambda: lin.run("freeze", "", "l-1", scope="forward", reason="The gateway sends twice"),
    )

    assert results[1].status == "accepted"
    assert results[0].status in ("accepted", "frozen")
    assert (results[0].status == "accepted") == (Receipt.objects.filter(verb="retry").count() == 1)
