"""What somebody is writing or has chosen stays theirs: news, a reload and an expired preview leave it alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenAs, now_open, ref_in
from tests.browser.test_case import tick
from tests.conftest import Clock
from tests.integration.workbench.flows import Desk

REASON = "The carrier confirmed by phone that it went out."
NOTE = "I have the carrier on the phone."


def a_new_version_arrives(page: Page, case: str) -> None:
    """Somebody takes the case and gives it back; the page has heard of it."""
    for verb in ("claim", "release"):
        assert Desk("lin").run(verb, ref_in(case), f"lin-{verb}").accepted
    tick(page)
    expect(page.locator("#feed")).to_contain_text("Lin Qing released the case")


@pytest.mark.parametrize(("verb", "field"), [("assign", "person"), ("mark_acceptable", "end_state")])
def test_news_leaves_a_choice_as_it_was_made(
    open_as: OpenAs, refused_case: str, verb: str, field: str
) -> None:
    page = open_as("maya", f"{refused_case}?act={verb}")
    now_open(page, verb)
    choice = page.locator(f"#f-{field}")
    other = choice.locator("option").last.get_attribute("value")
    assert other != choice.input_value()
    choice.select_option(other)

    a_new_version_arrives(page, refused_case)

    expect(choice).to_have_value(other or "")


@pytest.mark.requirement("S1-16", "S4-25")
def test_b10_a_code_is_chosen_by_keys_survives_news_a_reload_and_a_refusal_and_stays_in_the_record(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("e")
    now_open(page, "escalate")
    code, reason = page.get_by_label("Reason code"), page.locator("#f-reason")
    reason.focus()
    page.keyboard.press("Shift+Tab")
    expect(code).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(code).to_have_value("beyond_my_limit")
    reason.fill("too short")

    a_new_version_arrives(page, refused_case)
    expect(code).to_have_value("beyond_my_limit")
    page.reload()
    now_open(page, "escalate")
    expect(code).to_have_value("beyond_my_limit")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result a")).to_have_text(re.compile("at least 15 characters"))
    expect(code).to_have_value("beyond_my_limit")
    reason.fill(REASON)
    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("Escalated at")
    expect(page.locator("#feed .tag").last).to_have_text("Beyond what I may decide")


def test_news_leaves_a_choice_that_a_link_made(open_as: OpenAs, refused_case: str) -> None:
    choice = "#f-person"
    page = open_as("maya", f"{refused_case}?act=assign")
    last = page.locator(f"{choice} option").last.get_attribute("value") or ""
    page.goto(f"{page.url.partition('?')[0]}?act=assign&to={last}")
    expect(page.locator(choice)).to_have_value(last)

    a_new_version_arrives(page, refused_case)

    expect(page.locator(choice)).to_have_value(last)


def test_news_about_a_case_leaves_the_note_that_asks_for_it_alone(open_as: OpenAs, refused_case: str) -> None:
    ref = ref_in(refused_case)
    assert Desk("maya").run("claim", ref, "c-1").accepted
    page = open_as("jonas", refused_case)
    page.get_by_text("Ask for hand-over…").click()
    note = page.locator("#f-note")
    note.fill(NOTE)

    assert Desk("lin").run("claim", ref, "taken-over").accepted
    tick(page)

    expect(page.locator("#holder")).to_contain_text("Lin Qing since")
    expect(page.locator("#feed")).to_contain_text("Lin Qing claimed the case")
    expect(note).to_be_visible()
    expect(note).to_have_value(NOTE)
    expect(note).to_be_focused()
    page.reload()
    expect(note).to_have_value(NOTE)
    page.get_by_text("Ask for hand-over…").click()
    page.get_by_role("button", name="Ask for hand-over").click()
    expect(page.locator("#asked")).to_contain_text("You asked Lin Qing at")


def test_b10_a_preview_that_has_expired_becomes_a_new_one_and_the_reason_stays(
    open_as: OpenAs, refused_case: str, clock_of_tests: Clock
) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate")
    now_open(page, "escalate")
    old = page.locator("#run [name=preview_id]").input_value()
    page.locator("#f-reason").fill(REASON)
    clock_of_tests.put_forward(6 * 60)

    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("This preview has expired")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#run [name=preview_id]")).not_to_have_value(old)
    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text(re.compile("Escalated at"))
