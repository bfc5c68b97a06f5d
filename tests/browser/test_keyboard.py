"""A case without a mouse, and what was written in it: keys pick and run, a draft stays until it is sent or left."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from sagas import api
from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs, now_open, ref_in
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of

REASON = "The carrier confirmed by phone that it went out."


def tab_to(page: Page, selector: str) -> None:
    """Reach a control as a person without a mouse does."""
    for _ in range(60):
        if page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by keyboard")


def test_b23_b24_claim_query_and_hand_over_by_keyboard(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case)
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_contain_text("You claimed this case at")
    expect(page.locator("#holder")).to_contain_text("Yours since")

    page.keyboard.press("q")
    now_open(page, "query_status", "send_notice")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")

    page.keyboard.press("h")
    now_open(page, "assign")
    tab_to(page, "#f-person")
    page.keyboard.press("ArrowDown")
    tab_to(page, "#f-reason")
    # Letters that pick actions elsewhere are letters here.
    page.keyboard.type("qrame: my shift ends, please go on")
    expect(page.locator("#run input[name=verb]")).to_have_value("assign")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("Handed over at")
    expect(page.locator("#holder")).not_to_contain_text("Yours since")


def test_b23_accept_and_compensate_by_keyboard(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts
) -> None:
    other = flows.drive_until_still(flows.start())
    page = open_as("maya", refused_case)

    page.keyboard.press("a")
    now_open(page, "mark_acceptable")
    tab_to(page, "#f-end_state")
    chosen = page.locator("#f-end_state")
    while chosen.input_value() != "notice_to_be_confirmed":
        before = chosen.input_value()
        page.keyboard.press("ArrowDown")
        expect(chosen).not_to_have_value(before)
    tab_to(page, "#f-reason")
    page.keyboard.type(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("Accepted and closed at")
    expect(page.locator(".chead .pill")).to_have_text("Closed")

    page.goto(page.url.replace(ref_in(refused_case), ref_of(other)).partition("?")[0])
    page.keyboard.press("m")
    now_open(page, "compensate")
    tab_to(page, "#f-reason")
    page.keyboard.type(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    assert api.run_facts(other.ref).turned_back_by == "Maya Okafor"


def test_drafts_are_one_persons_and_a_logout_drops_them_in_every_tab(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate")
    other = page.context.new_page()
    other.goto(page.url)
    for tab in (page, other):
        tab.locator("#f-reason").fill(REASON)
    kept = "Object.keys(sessionStorage).filter(key => key.startsWith('draft:')).length"
    assert [page.evaluate(kept), other.evaluate(kept)] == [1, 1]

    page.locator(".rail").get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login/**")

    assert page.evaluate(kept) == 0
    other.wait_for_function(f"{kept} === 0")

    page.evaluate("sessionStorage.setItem('draft:jonas:/somewhere:reason', 'not for Maya')")
    page.get_by_label("User name").fill("maya")
    page.get_by_label("Password").fill("demo-maya")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    # The queue, or the case where one of its polls had noticed the logout first.
    expect(page.locator(".rail").get_by_role("button", name="Log out")).to_be_visible()
    assert page.evaluate(kept) == 0


def test_b10_a_reason_survives_a_reload(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate")
    page.locator("#f-reason").fill(REASON)

    page.reload()

    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("Escalated at")
    page.goto(f"{page.url.partition('?')[0]}?act=escalate")
    expect(page.locator("#f-reason")).to_have_value("")
