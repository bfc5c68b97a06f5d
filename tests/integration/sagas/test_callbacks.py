"""Answers that come by themselves: on time, doubled, forged, late, early, never (FT-14)."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Evidence
from sagas.states import ActionState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, drain, settle
from tools import callbacks
from tools.outcome import Verdict

SECRET = "a-secret-of-the-jobs-system"
LINE = {"customer": "C-31", "product": "dsl-50", "customer_mail": "c@example.org", "text": "Your line works."}


@pytest.fixture
def accepted(settings: Settings, drained: Callable[..., RunFacts], simulator: Simulator) -> RunFacts:
    """A run whose line was only accepted: the world tells nobody and is asked by nobody yet."""
    settings.CALLBACK_SECRETS = {"jobs": SECRET}
    settings.CALLBACK_URL = ""
    started = api.start_run(actor=AGENT, definition="line_activation", input=dict(LINE), start_key="line")
    drain()
    return api.run_facts(started.run_ref)


def told(facts: RunFacts, state: str, *, secret: str = SECRET, version: int = 2) -> Any:
    action = next(action for action in facts.actions if action.tool == "provision_line")
    body = json.dumps(
        {
            "key": action.key,
            "reference": action.provider_ref,
            "state": state,
            "version": version,
            "at": "2026-01-01T10:00:00+00:00",
            "result": {"job": action.provider_ref, "line": "LN-9", "state": state},
        }
    ).encode()
    return Client().post(
        "/api/v1/callbacks/provision_line",
        data=body,
        content_type="application/json",
        headers={"Webhook-Signature": callbacks.signature(secret, int(time.time()), body)},
    )


@pytest.mark.requirement("S0-7")
def test_an_accepted_call_stays_sent_until_its_answer_comes(accepted: RunFacts) -> None:
    line = next(action for action in accepted.actions if action.tool == "provision_line")

    assert line.state is ActionState.SENT
    assert line.provider_ref
    assert accepted.state is RunState.RUNNING


@pytest.mark.requirement("S0-7", "S1-9")
def test_a_callback_confirms_once_however_often_it_is_delivered(accepted: RunFacts, clock: Clock) -> None:
    first, again = told(accepted, "done"), told(accepted, "done")
    facts = settle(accepted.ref, clock)

    assert (first.status_code, again.json()["repeated"]) == (200, True)
    line = next(action for action in facts.actions if action.tool == "provision_line")
    assert line.state is ActionState.CONFIRMED
    assert Evidence.objects.filter(source="callback").count() == 1


def test_a_forged_callback_is_refused_and_keeps_nothing(accepted: RunFacts) -> None:
    answer = told(accepted, "done", secret="somebody else's")

    assert answer.status_code == 401
    assert not Evidence.objects.exists()
    assert api.run_facts(accepted.ref).version == accepted.version


@pytest.mark.requirement("S0-7", "S3-8")
def test_an_answer_that_comes_before_its_reference_is_known_is_kept_and_counts_once_it_is(
    settings: Settings, drained: Callable[..., RunFacts], simulator: Simulator
) -> None:
    settings.CALLBACK_SECRETS, settings.CALLBACK_URL = {"jobs": SECRET}, ""
    said = api.Callback(system="jobs", verdict=Verdict.FOUND, reference="J-early", result={"job": "J-early"})
    early = api.receive(said)
    taken = {"status": 202, "body": {"job": "J-early", "state": "running"}}
    simulator.plan({"tool": "provision_line", "mode": "ok", **taken})
    started = api.start_run(actor=AGENT, definition="line_activation", input=dict(LINE), start_key="early")
    drain()

    facts = api.run_facts(started.run_ref)
    line = next(action for action in facts.actions if action.tool == "provision_line")
    assert (early.run_ref, early.repeated) == ("", False)
    assert (line.state, line.settled_by) == (ActionState.CONFIRMED, "callback")
    assert api.receive(said).repeated


@pytest.mark.requirement("S3-8")
def test_an_answer_that_never_comes_becomes_unknown_and_is_asked_for(
    accepted: RunFacts, clock: Clock, simulator: Simulator
) -> None:
    clock.put_forward(11)
    facts = settle(accepted.ref, clock)

    line = next(action for action in facts.actions if action.tool == "provision_line")
    assert line.state in (ActionState.CONFIRMED, ActionState.UNKNOWN)
    assert [entry.name for entry in api.entries(facts.ref)].count("tool.execution.unknown") == 1


@pytest.mark.requirement("S4-16")
def test_news_that_contradicts_a_closed_run_opens_a_linked_handoff(accepted: RunFacts, clock: Clock) -> None:
    told(accepted, "failed")
    closed = settle(accepted.ref, clock)
    assert closed.finished_at is not None

    told(accepted, "done", version=3)
    facts = settle(accepted.ref, clock)

    assert facts.state is closed.state
    (linked,) = [handoff for handoff in facts.handoffs if handoff.linked]
    assert linked.reason == api.Reason.LATE_FACT


def test_a_callback_that_fits_no_call_for_long_is_kept_and_shown(published: None, clock: Clock) -> None:
    received = api.receive(api.Callback(system="jobs", verdict=Verdict.FOUND, reference="J-nobodys"))

    assert (received.run_ref, Evidence.objects.filter(run_id=None).count()) == ("", 1)
    assert "callback.unmatched" not in {alarm.code for alarm in api.alarms()}
    clock.put_forward(601)
    assert [alarm.count for alarm in api.alarms() if alarm.code == "callback.unmatched"] == [1]
