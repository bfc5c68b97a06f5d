"""Stopped at any moment, by a person or by the agent that started it: nothing new goes out, the rest is made up for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from sagas import api
from sagas.executor import drive, perform
from sagas.facts import RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Run
from sagas.orders import Call
from sagas.states import ActionState, Direction, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from tools.world import World, boot_time
from workbench.commands import Result, dispatch, make_preview
from workbench.errors import Answer, Refused


class Worker:
    """A worker of our own that can be held before and after a call."""

    def __init__(self) -> None:
        self.owner, self.world = workers.enrol("slow"), World(settings.TOOL_SYSTEMS)

    def take(self, run_ref: str) -> tuple[Any, Any]:
        claimed = ledger.claim_run(Run.objects.get(ref=run_ref).pk, self.owner)
        assert claimed is not None
        claim, order = claimed
        # However slow this machine is: the window runs from now.
        return claim, replace(order, committing_since=boot_time()) if isinstance(order, Call) else order

    def close(self) -> None:
        workers.sign_off(self.owner)
        self.world.close()


@pytest.fixture
def worker(workplace: Simulator) -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def stop(who: str, run_ref: str, command_id: str = "s-1") -> Result:
    desk = Desk(who)
    preview = make_preview(
        actor=desk.actor, person=desk.person, facts=api.run_facts(run_ref), verb="stop_and_compensate"
    )
    return dispatch(
        actor=desk.actor,
        person=desk.person,
        verb="stop_and_compensate",
        run_ref=run_ref,
        command_id=command_id,
        arguments={"reason": REASON},
        preview_id=preview.id,
        door="test",
    )


def effects(workplace: Simulator, run_ref: str) -> list[str]:
    return [r["tool"] for r in workplace.ledger(kind="effect") if run_ref in r["key"]]


@pytest.mark.requirement("S4-17", "S2-10")
def test_a_call_in_flight_is_waited_for_and_made_up_for(workplace: Simulator, worker: Worker) -> None:
    ref = flows.start()
    claim, call = worker.take(ref)
    assert isinstance(call, Call)

    done = stop("maya", ref)
    while_flying = api.run_facts(ref)
    in_time = replace(call, committing_since=boot_time())
    order = ledger.advance(claim, perform(in_time, worker.world))
    drive(claim, order, worker.world)
    facts = flows.drive_until_still(ref)

    assert (done.status, done.scheduled) == (Answer.ACCEPTED, True)
    assert while_flying.direction is Direction.UNDO
    assert while_flying.action("reserve_stock").state is ActionState.SENT
    assert facts.state is RunState.COMPENSATED
    assert effects(workplace, ref) == ["reserve_stock", "release_stock"]
    skipped = {action.step for action in facts.actions if action.state is ActionState.SKIPPED}
    assert skipped == {"create_shipment", "send_notice"}


@pytest.mark.requirement("S2-10")
def test_a_worker_that_was_held_before_its_first_byte_sends_nothing_after_a_stop(
    workplace: Simulator, worker: Worker
) -> None:
    ref = flows.start()
    claim, call = worker.take(ref)
    assert isinstance(call, Call)
    stop("maya", ref)

    held = perform(replace(call, committing_since=call.committing_since - 60), worker.world)
    drive(claim, ledger.advance(claim, held), worker.world)
    facts = flows.drive_until_still(ref)

    assert facts.state is RunState.FAILED_CLEAN
    assert facts.action("reserve_stock").state is ActionState.SKIPPED
    assert workplace.ledger(tool="reserve_stock") == []


def test_a_send_that_waits_for_its_time_never_goes_out(
    workplace: Simulator, worker: Worker, clock_of_tests: Clock
) -> None:
    workplace.plan({"tool": "create_shipment", "mode": "throttle", "retry_after_s": 600})
    ref = flows.start()
    claim, order = worker.take(ref)
    drive(claim, order, worker.world)
    assert api.run_facts(ref).action("create_shipment").state is ActionState.PREPARED

    assert stop("maya", ref).accepted
    clock_of_tests.put_forward(601)
    facts = flows.drive_until_still(ref)

    assert facts.state is RunState.COMPENSATED
    assert effects(workplace, ref) == ["reserve_stock", "release_stock"]


@pytest.mark.requirement("S3-4", "S2-10")
def test_what_is_unknown_is_settled_first(unknown_notice: RunFacts, workplace: Simulator) -> None:
    assert stop("maya", unknown_notice.ref).accepted
    before = effects(workplace, unknown_notice.ref)
    facts = flows.drive_until_still(unknown_notice.ref)

    assert facts.action("send_notice").state is ActionState.UNKNOWN
    assert facts.state is RunState.HANDOFF
    assert effects(workplace, unknown_notice.ref) == before


def test_the_second_is_told_who_was_first_and_when(rejected_notice: RunFacts, workplace: Simulator) -> None:
    ref = ref_of(rejected_notice)
    first = Desk("maya").run("stop_and_compensate", ref, "m-1", reason=REASON)
    with pytest.raises(Refused) as told:
        stop("jonas", rejected_notice.ref)

    assert first.accepted
    assert told.value.refusal.code == "stopped_already"
    assert "Maya Okafor" in str(told.value.refusal.sentence)
    assert flows.drive_until_still(rejected_notice.ref).state is RunState.COMPENSATED


@pytest.mark.requirement("S4-1")
def test_under_a_freeze_the_stop_counts_and_the_compensations_wait(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    Desk("lin").run("freeze", "", "f-1", scope="writes", reason="The warehouse moves today.")

    done = stop("maya", rejected_notice.ref)
    before = len(effects(workplace, rejected_notice.ref))

    assert done.accepted
    assert api.run_facts(rejected_notice.ref).direction is Direction.UNDO
    assert len(effects(workplace, rejected_notice.ref)) == before


@pytest.mark.requirement("S4-21")
def test_an_agent_stops_its_own_run_over_rest_and_nobody_elses(
    workplace: Simulator, worker: Worker, agent_client: Client
) -> None:
    ref = flows.start()
    claim, order = worker.take(ref)
    drive(claim, ledger.advance(claim, perform(order, worker.world), last=True), worker.world)
    url = f"/api/v1/runs/{ref}/commands/stop_and_compensate"
    body, key = {"reason": "The customer has called it off."}, {"Idempotency-Key": "stop-1"}

    short = agent_client.post(url, {"reason": "no"}, content_type="application/json", headers=key)
    done = agent_client.post(url, body, content_type="application/json", headers=key)
    again = agent_client.post(url, body, content_type="application/json", headers=key)
    other = agent_client.post(
        url.replace(ref, "run_nobodys"), body, content_type="application/json", headers=key
    )
    verb = agent_client.post(
        url.replace("stop_and_compensate", "retry"), body, content_type="application/json", headers=key
    )
    facts = flows.drive_until_still(ref)

    assert short.status_code == 422
    assert done.status_code == 202, done.json()
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert (other.status_code, verb.status_code) == (404, 404)
    assert facts.state is RunState.COMPENSATED
    (turned,) = [entry for entry in api.entries(ref) if entry.name == "run.turned_back"]
    assert (turned.actor_kind, turned.reason) == ("agent", body["reason"])


def test_an_operator_stops_a_run_from_its_page_without_scripts(workplace: Simulator) -> None:
    ref = flows.start()
    client = Client()
    client.force_login(flows.person("maya"))

    page = client.get(f"/runs/{ref}/").content.decode()
    shown = client.get(f"/runs/{ref}/stop/")
    form = dict(
        part.split('" value="')
        for part in shown.content.decode().replace("\n", " ").split('name="')[1:]
        if '" value="' in part[:120]
        for part in [part.split('">')[0]]
    )
    short = client.post(f"/runs/{ref}/act/", {**form, "reason": "no"})
    done = client.post(f"/runs/{ref}/act/", {**form, "reason": REASON})

    assert f"/runs/{ref}/stop/" in page
    assert "send_notice" in shown.content.decode()
    assert short.status_code == 422
    assert (done.status_code, done.headers.get("Location")) == (302, f"/runs/{ref}/")
    assert api.run_facts(ref).direction is Direction.UNDO
    assert f"/runs/{ref}/stop/" not in client.get(f"/runs/{ref}/").content.decode()
