"""What a person chooses for themselves on the account page is what every page says from then on."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from workbench.labs.browser import Form, read

ELSEWHERE = "Asia/Kathmandu"
"""A quarter of an hour off every zone of the cast: no time of one is a time of the other."""


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def preferences(client: Client) -> Form:
    """The form as the page hands it out."""
    answer = client.get("/account/")
    forms = read(answer.content.decode(), status=answer.status_code, url="/account/").forms
    return next(form for form in forms.values() if "time_zone" in form.fields)


def chosen(client: Client, **choice: str) -> str:
    """Send the form with what somebody picks in it; the page that comes back."""
    form = preferences(client)
    for name, value in choice.items():
        assert value in form.choices[name]
    ticked = {name: boxes[0] for name, boxes in form.ticked.items()}
    return client.post("/account/", {**form.fields, **ticked, **choice}, follow=True).content.decode()


def test_language_and_zone_that_were_chosen_are_those_of_the_next_page(
    maya: Client, unknown_notice: RunFacts
) -> None:
    sent = unknown_notice.action("send_notice").sent_at
    assert sent is not None
    here, there = (f"{sent.astimezone(ZoneInfo(zone)):%H:%M:%S}" for zone in ("Europe/Berlin", ELSEWHERE))
    case = f"/handoffs/{ref_of(unknown_notice)}/"
    before = maya.get(case).content.decode()

    kept = chosen(maya, language="zh-hans", time_zone=ELSEWHERE)
    after = maya.get(case).content.decode()

    assert "你的偏好已保存。" in kept
    told = (
        ('<html lang="en">', "Times in Europe/Berlin", here, r"\d+ m left, due (\S+ )?\d\d:\d\d"),
        ('<html lang="zh-hans">', f"时间为 {ELSEWHERE}", there, r"剩 \d+ 分钟，(\S+ )?\d\d:\d\d 到期"),
    )
    for words, page, other in ((told[0], before, after), (told[1], after, before)):
        assert [bool(re.search(said, page)) for said in words] == [True] * 4
        assert [bool(re.search(said, other)) for said in words] == [False] * 4


def test_a_zone_that_there_is_not_is_refused_beside_the_field_and_nothing_is_kept(maya: Client) -> None:
    form = preferences(maya)

    answer = maya.post("/account/", {**form.fields, "language": "zh-hans", "time_zone": "Nowhere/Else"})

    assert answer.status_code == 422
    zone = next(field for field in answer.context["account"].fields if field.name == "time_zone")
    assert zone.error
    kept = flows.person("maya")
    assert (kept.language, kept.time_zone) == ("en", "Europe/Berlin")
