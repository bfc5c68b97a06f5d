"""The freeze page without a browser: what it would stop follows what is filled in."""

from __future__ import annotations

import pytest
from django.test import Client

from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.test_plans import plan_of, run_plan

NOTHING = "There is no such place: this would stop nothing."


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def told(client: Client, scope: str, where: str) -> str:
    asked = {"scope": scope, "applies_to": where}
    return client.get("/freeze/", asked, headers={"HX-Request": "true"}).content.decode()


def runs(number: int) -> str:
    return (
        f"{number} run{' stops' if number == 1 else 's stop'}. 0 calls are in flight and cannot be stopped."
    )


@pytest.mark.requirement("S4-1")
def test_what_a_freeze_would_stop_follows_where_and_how_much_it_holds_back(
    maya: Client, rejected_notice: RunFacts
) -> None:
    for where, number in (
        ("all", 1),
        ("tool:send_notice", 1),
        ("tool:release_stock", 0),
        ("tool:book_hotel", 0),
        ("workflow:orders", 1),
        ("workflow:order_fulfilment", 0),
    ):
        assert told(maya, "forward", where) == runs(number), where
    assert told(maya, "writes", "tool:release_stock") == runs(1), "it makes up for a step of this run"
    for nowhere in ("tool:no_such_tool", "planet:mars", "\x00", "tool:"):
        assert told(maya, "forward", nowhere) == NOTHING

    assert run_plan("maya", plan_of("maya", rejected_notice)).accepted

    assert told(maya, "forward", "all") == runs(0), "compensations go on"
    for scope in ("writes", "everything"):
        assert told(maya, scope, "all") == runs(1)


def test_it_is_counted_again_without_javascript_and_sends_nothing(
    maya: Client, rejected_notice: RunFacts
) -> None:
    draft = {"scope": "writes", "applies_to": "tool:release_stock", "reason": "Duplicates are reported."}

    answer = maya.post("/freeze/", {**draft, "command_id": "c-1"})

    assert answer.status_code == 200
    shown = answer.context["freeze"]
    assert shown.stops == runs(1)
    assert {field.name: field.value for field in shown.freeze_fields} == draft
    assert not shown.in_force
    assert maya.post("/freeze/", {**draft, "applies_to": "tool:none"}).context["freeze"].stops == NOTHING
    wrong = maya.get("/freeze/?applies_to=tool:none&scope=none").context["freeze"]
    assert {field.name: field.value for field in wrong.freeze_fields} == {
        "scope": "forward",
        "applies_to": "all",
        "reason": "",
    }
