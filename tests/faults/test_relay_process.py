"""The relay as a process: killed again and again in the middle of its work, with the broker gone for a while."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import pytest
from redis import Redis

from sagas import api, relay
from sagas.ledger.desk import opened
from sagas.models import Entry, Outbox, Run
from sagas.relay import broker
from tests.faults.conftest import Processes, wait_until
from tests.integration.sagas.conftest import OPERATOR
from tests.integration.sagas.stage import Stage

pytestmark = [pytest.mark.requirement("S4-19"), pytest.mark.timeout(600)]

RUNS, COMMITS = 6, 14


@pytest.fixture
def stream(stage: Stage) -> Iterator[Redis]:
    client = broker()
    client.delete(relay.STREAM)
    yield client
    client.close()


def test_a_relay_that_is_killed_loses_nothing_skips_nothing_and_keeps_the_order_of_each_run(
    stage: Stage, processes: Processes, stream: Redis
) -> None:
    refs = [stage.start("order_fulfilment", number) for number in range(4_100_001, 4_100_001 + RUNS)]
    first = processes.relay()
    wait_until(
        lambda: stream.xlen(relay.STREAM) >= RUNS,
        "the relay is at work",
        meanwhile=processes.all_well,
    )
    for round_ in range(COMMITS):
        for ref in refs:
            _commit(ref)
        if round_ == COMMITS // 2:
            processes.kill(first)
    second = processes.relay()
    wait_until(lambda: not Outbox.objects.filter(published_at=None).exists(), "all is published")
    processes.kill(second)

    sent: list[dict[str, str]] = [fields for _, fields in cast("Any", stream.xrange(relay.STREAM))]
    ids = [fields["id"] for fields in sent]
    expected = {f"{e.run_ref}:{e.seq}" for e in Entry.objects.filter(run_ref__in=refs)}
    assert {i for i in ids if i.rpartition(":")[0] in refs} == expected
    for ref in refs:
        numbers = [json.loads(fields["data"])["seq"] for fields in sent if fields["subject"] == ref]
        # At least once: a number may come again after a crash, and goes on from there without a gap.
        assert all(later <= sooner + 1 for sooner, later in pairwise(numbers)), numbers
        assert numbers[-1] == Run.objects.get(ref=ref).seq


def test_a_relay_without_a_broker_waits_and_marks_nothing(stage: Stage, processes: Processes) -> None:
    ref = stage.start("order_fulfilment", 4_100_101)
    alone = processes.relay(REDIS_URL="unix:///nonexistent/valkey.sock")
    wait_until(lambda: "relay.outage" in processes.log("relay"), "the relay has noticed")

    pending = Outbox.objects.filter(run_id=Run.objects.get(ref=ref).pk)
    assert [(row.published_at, row.parked_at, row.tries) for row in pending] == [(None, None, 0)]
    assert alone.poll() is None
    processes.kill(alone)


def _commit(ref: str) -> None:
    with api.transaction(), opened(Run.objects.get(ref=ref).pk) as desk:
        desk.say("human.handoff.commented", actor=OPERATOR)
        desk.close(release=False)
