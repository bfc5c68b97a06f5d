"""Workflows and tools as pages: what is published, in the reader's words, without a script."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import PUBLISHER, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import REFUSED
from tools.lint import Waiver
from tools.reader import contract_from_document, definition_from_document
from workbench.web.presenters import shares, tool_page, workflow_page
from workbench.web.presenters.tools import ToolList
from workbench.web.presenters.workflows import WorkflowList

REASON = "The customer is told first, by agreement."


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    return reader("maya")


def reader(username: str) -> Client:
    client = Client()
    client.force_login(flows.person(username))
    return client


def publish_turned(**changed: object) -> None:
    """A workflow whose irreversible step comes first, which somebody let pass."""
    document = flows._workflow().document
    first = {**document["steps"][2], "args": {"order": {"from": "input", "pointer": "/order"}}}
    turned = {**document, "name": "turned", "steps": [first, *document["steps"][:2]], **changed}
    waivers = [Waiver(code="W101", reason=REASON)]
    api.publish_definition(definition_from_document(turned), actor=PUBLISHER, waivers=waivers)


def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


@pytest.mark.requirement("S2-17")
def test_a_workflow_shows_its_errors_and_who_let_them_pass_and_why(maya: Client) -> None:
    publish_turned()

    shown: workflow_page.Workflow = maya.get("/workflows/turned/").context["workflow"]
    text = maya.get("/workflows/turned/").content.decode()

    (waived,) = [one for one in shown.findings if one.code == "W101"]
    assert (waived.steps, waived.waived_by, waived.waived_why) == ("send_notice", "Maya", REASON)
    assert shown.verdict.text.startswith("1 waived")
    assert "Move it to the end, or stage it" in text
    assert REASON in text
    assert "irreversible, and outside the last third" in text


def test_the_list_draws_an_irreversible_step_outside_the_last_third(maya: Client) -> None:
    publish_turned()

    shown: WorkflowList = maya.get("/workflows/").context["workflows"]

    (row,) = [one for one in shown.rows if one.name == "turned"]
    assert row.shape is not None
    assert [mark.icon for mark in row.shape.marks] == ["bad", "dot", "dot"]
    assert "outside the last third" in row.shape.marks[0].says
    assert shown.figures[1].off


def test_live_runs_of_a_version_lead_to_those_runs(maya: Client, unknown_notice: RunFacts) -> None:
    document = {**flows._workflow().document, "version": 2}
    api.publish_definition(definition_from_document(document), actor=PUBLISHER)
    flows.start()

    shown: workflow_page.Workflow = maya.get("/workflows/orders/v1/").context["workflow"]
    old = next(one for one in shown.versions if one.version == 1)
    runs = maya.get(old.live_url).context["runs"]

    assert shown.newest == 2
    assert old.live == "1"
    assert [row.ref for row in runs.rows] == [unknown_notice.ref]
    assert runs.only.said == "orders v1"
    assert len(maya.get("/runs/?workflow=orders").context["runs"].rows) == 2


@pytest.mark.requirement("S1-24")
def test_a_tool_that_leaves_three_questions_open_is_not_for_automatic_use(maya: Client) -> None:
    document = {**api.tool("reserve_stock").contract.document, "tool": "send_blindly"}
    document |= {"recovery_class": "retryable", "idempotency": {"support": "none"}, "retry": {}}
    for left_out in ("status_query", "compensation"):
        document.pop(left_out)
    api.publish_contract(contract_from_document(document), actor=PUBLISHER)

    shown: tool_page.Tool = maya.get("/tools/send_blindly/").context["tool"]
    listed: ToolList = maya.get("/tools/?after=send_b").context["tools"]

    assert [one.icon for one in shown.questions].count("bad") == shown.readiness.open >= 3
    assert not shown.readiness.automatic
    assert b"Not for automatic use." in maya.get("/tools/send_blindly/").content
    assert b"Not for automatic use." not in maya.get("/tools/send_notice/").content
    assert listed.rows[0].name == "send_blindly"
    assert not listed.rows[0].readiness.automatic


def test_a_tool_shows_its_calls_its_users_and_its_freeze(maya: Client, unknown_notice: RunFacts) -> None:
    reason = "Provider reports duplicates."
    frozen = flows.Desk("ada").run(
        "freeze", "", "f", scope="forward", applies_to="tool:send_notice", reason=reason
    )
    assert frozen.accepted

    shown: tool_page.Tool = maya.get("/tools/send_notice/").context["tool"]

    assert [(one.percent, one.count) for one in shown.shares] == [("0 %", "0"), ("0 %", "0"), ("100 %", "1")]
    numbers = {str(line.label): str(line.value) for line in shown.numbers}
    assert (numbers["Sent again, same key"], numbers["Handed to people"]) == ("0", "1")
    assert [one.name for one in shown.users] == ["order_fulfilment", "orders"]
    assert shown.frozen == ("Forward calls of tool:send_notice are frozen",)
    assert maya.get("/tools/reserve_stock/").context["tool"].frozen == ()
    form = maya.get(shown.freeze_url).content.decode()
    assert "Freeze tool:send_notice" in form
    prefilled = form.partition('name="applies_to"')[2].partition("</section>")[0]
    assert "tool:send_notice" in prefilled.partition("</textarea>")[0]


def test_the_last_seven_days_of_a_tool_are_what_its_calls_came_to(maya: Client, workplace: Simulator) -> None:
    notices = []
    for name, *rules in (
        ("order_fulfilment", {"tool": "send_notice", "mode": "cut", "times": 1}),
        ("order_fulfilment", {"tool": "send_notice", "mode": "throttle", "times": 1, "retry_after_s": 1}),
        ("order_fulfilment",),
        ("orders", REFUSED),
    ):
        workplace.plan(*rules)
        notices.append(flows.drive_until_still(flows.start(name)).action("send_notice"))
    went = len(workplace.ledger(tool="send_notice", kind="arrived"))
    took = [
        attempt.duration_ms
        for notice in notices
        for attempt in notice.attempts
        if attempt.answer not in ("", "unknown", "not_sent") and attempt.duration_ms is not None
    ]

    shown: tool_page.Tool = maya.get("/tools/send_notice/").context["tool"]

    assert went == sum(len(notice.attempts) for notice in notices) == 5
    assert shown.calls == "5"
    assert [(str(one.name), one.count) for one in shown.shares] == [
        ("Confirmed", "2"),
        ("Rejected", "1"),
        ("Unknown at first", "1"),
    ]
    assert {str(line.label): str(line.value) for line in shown.numbers} == {
        "Mean answer time": shares.milliseconds(round(sum(took) / len(took))),
        "Unknown, found by query": "1 of 1",
        "Sent again, same key": "1",
        "Handed to people": "1",
        "Told to slow down (429)": "1",
    }


def test_the_pages_ask_as_many_questions_of_many_as_of_one(maya: Client) -> None:
    before = {
        path: queries(maya, path) for path in ("/workflows/", "/workflows/orders/", "/tools/send_notice/")
    }
    for number in range(12):
        publish_turned(name=f"turned_{number}")
    document = flows._workflow().document
    for version in range(2, 8):
        api.publish_definition(definition_from_document({**document, "version": version}), actor=PUBLISHER)

    assert {path: queries(maya, path) for path in before} == before


@pytest.mark.parametrize(
    "path", ["/workflows/nothing/", "/workflows/orders/v9/", "/tools/nothing/", "/tools/send_notice/v9/"]
)
def test_what_is_not_published_is_not_found(maya: Client, path: str) -> None:
    assert maya.get(path).status_code == 404


def test_who_may_not_read_is_told_why(workplace: Simulator) -> None:
    answer = reader("ada").get("/tools/")

    assert answer.status_code == 403


def test_findings_are_told_in_chinese_and_the_checks_own_words_are_marked(workplace: Simulator) -> None:
    publish_turned()

    text = reader("lin").get("/workflows/turned/").content.decode()

    assert "不可逆步骤不在最后三分之一" in text
    assert '<p lang="en" class="inert">an irreversible step at position 1 of 3' in text


def test_names_that_somebody_made_up_are_shown_inert(maya: Client) -> None:
    publish_turned(title="Order <b>fast</b> \u202eand\u200b well")

    text = maya.get("/workflows/turned/").content.decode()

    assert "<b>fast</b>" not in text
    assert "U+202E" in text
