"""The system page over the real engine: what is read, what cannot be, and what it costs."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from workbench.web.presenters.system import System, Tile


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def page(client: Client) -> System:
    found: System = client.get("/system/").context["system"]
    return found


def tile(found: System, name: str) -> Tile:
    (one,) = [one for one in found.panel.tiles if one.name == name]
    return one


def test_what_is_unknown_and_who_did_not_answer_is_read_from_the_tables(
    maya: Client, unknown_notice: RunFacts
) -> None:
    found = page(maya)

    assert (tile(found, "Unknown steps").icon, tile(found, "Unknown steps").value) == ("unk", "1")
    assert tile(found, "Workers").value == "0"
    assert tile(found, "Database").icon == "ok"
    assert found.providers is not None
    assert {one.name: one.icon for one in found.providers}["notify"] == "bad"
    assert {one.name: one.icon for one in found.providers}["stock"] == "ok"


@pytest.mark.requirement("S2-12")
def test_a_compensation_that_hangs_is_counted_and_is_an_alarm_with_its_remedy(
    maya: Client, workplace: Simulator, clock_of_tests: Clock
) -> None:
    workplace.plan({"tool": "send_notice", "mode": "refuse"}, {"tool": "cancel_shipment", "mode": "refuse"})
    ref = flows.drive_until_still(flows.start()).ref
    handoff = api.run_facts(ref).handoff
    assert handoff is not None
    made_up = flows.Desk("maya").run("compensate", handoff.ref, "c", reason=flows.REASON)
    assert made_up.accepted, made_up
    flows.drive_until_still(ref)
    clock_of_tests.put_forward(301)
    try:
        found = page(maya)
    finally:
        clock_of_tests.put_forward(-301)

    assert tile(found, "Outstanding compensations").icon == "compfailed"
    assert found.alarms is not None
    (alarm,) = [one for one in found.alarms if one.code == "compensation.dangling"]
    assert alarm.do == "open its case; look at its tool"


def test_a_broker_that_does_not_answer_is_said_and_hides_nothing(maya: Client, settings: Settings) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"

    found = page(maya)

    assert tile(found, "Broker wait").value == "not read"
    assert "1 part could not be read." in found.panel.summary
    assert tile(found, "Database").icon == "ok"


def test_a_question_that_the_database_does_not_answer_is_said_too(
    maya: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(api, "alarms", fails)
    monkeypatch.setattr(api, "systems_lately", fails)

    answer = maya.get("/system/")

    assert answer.status_code == 200
    assert answer.context["system"].alarms is None
    assert b"The alarms could not be read." in answer.content
    assert b"The calls could not be read." in answer.content
    assert b"statement timeout" not in answer.content


def test_the_numbers_come_alone_for_the_page_that_keeps_them_up_to_date(maya: Client) -> None:
    answer = maya.get("/system/now/", headers={"HX-Request": "true"})

    assert answer.status_code == 200
    assert answer.headers["X-Checked"]
    assert b"<html" not in answer.content
    assert answer.content.count(b"<li>") == 8


def test_a_freeze_shows_what_it_holds(maya: Client, unknown_notice: RunFacts) -> None:
    reason = "Provider reports duplicates."
    assert flows.Desk("ada").run("freeze", "", "f", scope="forward", applies_to="all", reason=reason).accepted

    found = page(maya)

    assert [(one.what, one.reason) for one in found.freezes] == [("All forward calls are frozen", reason)]
    assert found.panel.summary.startswith("1 freeze is in force.")


def test_the_page_asks_as_many_questions_however_much_there_is(maya: Client) -> None:
    def asked() -> int:
        maya.get("/system/")
        with CaptureQueriesContext(connection) as queries:
            maya.get("/system/")
        return len(queries)

    before = asked()
    for __ in range(3):
        flows.start()
    flows.drive_until_still(flows.start())

    assert asked() == before <= 36
