"""Workflows, tools and system in a browser: by keys, without a script, and numbers that keep themselves up to date."""

from __future__ import annotations

from playwright.sync_api import expect

from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import CUT, MUTE, ref_of


def test_from_the_list_by_keys_to_a_workflow_its_tool_and_its_runs(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", name="Workflows", level=1)).to_be_visible()

    page.keyboard.press("j")
    expect(page.locator("tr.cur .ttl")).to_be_focused()
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.get_by_role("heading", name="Last 7 days")).to_be_visible()
    page.get_by_role("link", name="send_notice", exact=True).first.click()
    expect(page.get_by_role("heading", name="Ten questions")).to_be_visible()
    page.get_by_role("link", name="orders", exact=True).click()
    page.get_by_role("link", name="Its runs").click()

    expect(page.get_by_text(unknown_notice.ref)).to_be_visible()
    page.get_by_role("link", name="Runs of all workflows").click()
    expect(page).to_have_url(page.url.partition("/runs/")[0] + "/runs/")


def test_the_numbers_of_the_system_change_under_a_page_that_keeps_its_focus(
    open_as: OpenAs, workplace: Simulator
) -> None:
    page = open_as("maya", "/system/")
    unknown = page.locator(".health li", has_text="Unknown steps")
    expect(unknown).to_contain_text("every outcome is known")
    again = page.get_by_role("link", name="Read all again")
    again.focus()

    workplace.plan(CUT, MUTE)
    flows.drive_until_still(flows.start())
    page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")

    expect(unknown).to_contain_text("oldest")
    expect(again).to_be_focused()
    expect(page.locator("#live")).to_contain_text("Live, checked at")


def test_the_page_of_a_run_tells_what_is_new_and_keeps_its_focus(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", f"/runs/{unknown_notice.ref}/")
    tick = "document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))"
    failures = page.get_by_role("link", name="Only failures")
    failures.focus()

    said = flows.Desk("jonas").run("comment", ref_of(unknown_notice), "c-1", text="They call back at noon.")
    assert said.accepted
    page.evaluate(tick)

    expect(page.locator("table.ev")).to_contain_text("They call back at noon.")
    expect(failures).to_be_focused()
    with page.expect_response("**/changes/*") as answered:
        page.evaluate(tick)
    assert answered.value.status == 204


def test_the_pages_stand_without_a_script(open_as: OpenAs, workplace: Simulator) -> None:
    page = open_as("lin", "/system/", java_script_enabled=False)
    expect(page.locator(".health li")).to_have_count(8)

    page.locator(".rail").get_by_role("link", name="工具").click()
    page.get_by_role("link", name="book_hotel", exact=True).click()
    expect(page.get_by_role("heading", name="十个问题")).to_be_visible()
    page.get_by_role("link", name="冻结此工具…").click()
    expect(page.get_by_role("heading", name="冻结 tool:book_hotel")).to_be_visible()


def test_what_a_freeze_would_stop_is_counted_while_it_is_filled_in(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/freeze/")
    expect(page.locator("#stops")).to_contain_text("1 run stops.")

    where = page.locator("#f-applies_to")
    where.fill("tool:book_hotel")
    page.keyboard.press("Tab")

    expect(page.locator("#stops")).to_contain_text("0 runs stop.")
    expect(page.locator("#f-reason-code")).to_be_focused()
    where.fill("tool:send_notice")
    page.locator("#f-scope").select_option("writes")
    expect(page.locator("#stops")).to_contain_text("1 run stops.")
