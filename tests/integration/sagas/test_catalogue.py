"""What is published, as screens list it, and how it went lately: read from real runs, paged by key, bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sagas import api, lately
from sagas.errors import NotFound
from sagas.facts import RunFacts
from tests.conftest import PUBLISHER, Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of, rejected_notice, unknown_notice, workplace
from tools.lint import Waiver
from tools.reader import definition_from_document

__all__ = ["rejected_notice", "unknown_notice", "workplace"]


def again(version: int, **changed: object) -> None:
    """Publish the next version of "orders"."""
    document = {**flows._workflow().document, "version": version, **changed}
    api.publish_definition(definition_from_document(document), actor=PUBLISHER)


def test_workflows_page_by_name_each_in_its_newest_version(workplace: Simulator) -> None:
    again(2)
    seen: list[tuple[str, int]] = []
    after = ""
    while True:
        page = api.workflows(after=after, limit=4)
        seen += [(one.definition.name, one.definition.version) for one in page.rows]
        after = page.after
        if not after:
            break

    assert [name for name, __ in seen] == sorted({name for name, __ in seen})
    assert ("orders", 2) in seen
    assert len(seen) == 18


def test_a_workflow_knows_its_versions_and_which_of_them_have_live_runs(unknown_notice: RunFacts) -> None:
    again(2)
    again(3)

    newest, old = api.workflow("orders"), api.workflow("orders", 1)
    first = api.workflow_versions("orders", limit=2)
    rest = api.workflow_versions("orders", below=int(first.after), limit=2)

    assert (newest.definition.version, old.definition.version, old.newest) == (3, 1, 3)
    assert newest.live == 1
    assert [(one.version, one.live) for one in (*first.rows, *rest.rows)] == [(3, 0), (2, 0), (1, 1)]
    assert rest.after == ""
    with pytest.raises(NotFound):
        api.workflow("orders", 4)


@pytest.mark.requirement("S2-17")
def test_a_workflow_carries_what_the_check_finds_and_who_let_it_pass(workplace: Simulator) -> None:
    steps = [*flows._workflow().document["steps"]]
    turned = definition_from_document(
        {
            **flows._workflow().document,
            "name": "turned",
            "steps": [
                {**steps[2], "args": {"order": {"from": "input", "pointer": "/order"}}},
                *steps[:2],
            ],
        }
    )
    reason = "The customer is told first, by agreement."
    api.publish_definition(turned, actor=PUBLISHER, waivers=[Waiver(code="W101", reason=reason)])

    found = api.workflow("turned")

    assert "W101" in {one.code for one in found.findings}
    assert [(one.code, one.by_name, one.reason) for one in found.waivers] == [("W101", "Maya", reason)]


def test_runs_of_the_last_seven_days_are_counted_by_their_end(
    workplace: Simulator, clock_of_tests: Clock
) -> None:
    flows.drive_until_still(flows.start())
    workplace.plan({"tool": "send_notice", "mode": "refuse"})
    flows.drive_until_still(flows.start())

    week = api.runs_lately(["orders", "order_fulfilment"])
    assert set(week) == {"orders"}
    assert (week["orders"].runs, week["orders"].completed, week["orders"].handed_over) == (2, 1, 1)
    assert week["orders"].live == 1
    assert not week["orders"].capped
    assert lately.runs_of(["orders"], newest=1)["orders"] == replace(
        week["orders"], runs=1, completed=0, capped=True
    )

    clock_of_tests.put_forward(8 * 24 * 3600)
    try:
        assert api.runs_lately(["orders"]) == {}
        assert api.calls_lately(["send_notice"]) == {}
    finally:
        clock_of_tests.put_forward(-8 * 24 * 3600)


def test_calls_are_counted_by_their_first_answer_and_by_what_a_query_found(workplace: Simulator) -> None:
    workplace.plan({"tool": "send_notice", "mode": "cut", "times": 1})
    facts = flows.drive_until_still(flows.start())
    assert facts.state == "completed", "the query found the message whose answer was cut off"

    calls = api.calls_lately(["send_notice", "reserve_stock", "query_notice"])

    assert (calls["send_notice"].calls, calls["send_notice"].unknown, calls["send_notice"].found) == (1, 1, 1)
    assert (calls["reserve_stock"].confirmed, calls["reserve_stock"].rejected) == (1, 0)
    assert calls["reserve_stock"].mean_ms is not None
    assert "query_notice" not in calls, "reads are no calls of a step"


def test_what_was_sent_again_under_its_key_and_what_came_to_people_is_counted(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    first = api.calls_lately(["send_notice"])["send_notice"]
    assert (
        flows.Desk("maya")
        .run("retry", ref_of(rejected_notice), "once-more", step="send_notice", reason=flows.REASON)
        .accepted
    )
    flows.drive_until_still(rejected_notice.ref)

    calls = api.calls_lately(["send_notice", "create_shipment"])

    assert (first.calls, first.again, first.handed_over) == (1, 0, 1)
    assert (calls["send_notice"].calls, calls["send_notice"].again) == (2, 1)
    assert calls["send_notice"].handed_over == 1, "one step, however often it came"
    assert (calls["create_shipment"].again, calls["create_shipment"].handed_over) == (0, 0)


def test_tools_page_by_name_and_know_who_uses_them(workplace: Simulator) -> None:
    first = api.tools(limit=3)
    second = api.tools(after=first.after, limit=3)

    assert [one.contract.tool for one in (*first.rows, *second.rows)] == sorted(
        one.contract.tool for one in (*first.rows, *second.rows)
    )
    assert api.tool("create_customer").newest == api.tool("create_customer", 1).newest == 2
    assert [one.version for one in api.tool_versions("create_customer").rows] == [2, 1]
    users = {one.name: one.steps for one in api.users_of("send_notice")}
    assert users == {"order_fulfilment": ("send_notice",), "orders": ("send_notice",)}
    assert api.tool("send_notice").workflows == 2
    assert {one.steps for one in api.users_of("query_notice")} == {()}
    with pytest.raises(NotFound):
        api.tool("no_such_tool")


def test_runs_of_a_workflow_page_by_key_newest_first_over_all_versions(workplace: Simulator) -> None:
    refs = [flows.start(), flows.start()]
    again(2)
    refs += [flows.start(), flows.start(), flows.start("order_fulfilment")]

    seen: list[str] = []
    after = ""
    while True:
        page = api.runs(workflow="orders", after=after, limit=3)
        seen += [row.ref for row in page.rows]
        after = page.after
        if not after:
            break

    assert seen == list(reversed(refs[:4]))
    assert [row.ref for row in api.runs(workflow="orders", version=1).rows] == [refs[1], refs[0]]
    assert api.runs(workflow="no_such_workflow").rows == ()
    with pytest.raises(ValueError, match="key of a page"):
        api.runs(workflow="orders", after="12")


def test_the_newest_calls_say_which_system_answers(unknown_notice: RunFacts) -> None:
    seen = {one.system: one for one in api.systems_lately()}

    assert seen["notify"].failures == seen["notify"].calls == 1
    assert seen["notify"].last_success is None
    assert seen["stock"].failures == 0
    assert seen["stock"].last_success is not None
