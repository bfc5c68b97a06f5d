"""How much a person may order within a while: at the doors of people, told once in the trail, counted anew later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Entry
from tests.conftest import Clock
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from workbench.commands import Result, dispatch
from workbench.errors import Answer


@pytest.fixture(autouse=True)
def _two_a_minute(settings: Settings) -> None:
    settings.COMMANDS_A_MINUTE = 2


def remark(facts: RunFacts, number: int, who: str = "maya", door: str = "web") -> Result:
    desk = flows.Desk(who)
    return dispatch(
        actor=desk.actor,
        person=desk.person,
        verb="comment",
        handoff_ref=ref_of(facts),
        command_id=f"{who}-{number}",
        arguments={"text": "The carrier calls back."},
        door=door,
    )


def test_one_command_too_many_does_nothing_and_the_next_while_is_a_new_one(
    unknown_notice: RunFacts, clock_of_tests: Clock
) -> None:
    answers = [remark(unknown_notice, number).status for number in range(4)]

    assert answers == [Answer.ACCEPTED, Answer.ACCEPTED, Answer.TOO_MANY, Answer.TOO_MANY]
    assert flows.names(unknown_notice.ref).count("human.handoff.commented") == 2
    assert Entry.objects.filter(name="command.refused", after__code="too_fast").count() == 1

    clock_of_tests.put_forward(61)
    assert remark(unknown_notice, 4).status is Answer.ACCEPTED


def test_nobody_waits_for_somebody_else_and_a_bulk_has_a_pace_of_its_own(unknown_notice: RunFacts) -> None:
    for number in range(3):
        remark(unknown_notice, number)

    assert remark(unknown_notice, 9, door="bulk").status is Answer.ACCEPTED
    assert remark(unknown_notice, 9, who="jonas").status is Answer.ACCEPTED


def test_the_interface_answers_429_and_says_when_to_come_again(unknown_notice: RunFacts) -> None:
    client = Client()
    client.force_login(flows.person("maya"))

    def post(number: int) -> Any:
        return client.post(
            f"/api/v1/handoffs/{ref_of(unknown_notice)}/commands/comment",
            json.dumps({"text": "The carrier calls back."}),
            content_type="application/json",
            headers={"Idempotency-Key": f"k-{number}"},
        )

    answers = [post(number) for number in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["code"] == "too_fast"
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 60
    assert len([one for one in api.entries(unknown_notice.ref) if one.name == "human.handoff.commented"]) == 2
