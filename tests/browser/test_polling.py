"""What pages ask for by themselves: nothing while nobody sees them, banners within ten seconds, and never by eval."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of

MORNING, LATER = datetime(2026, 1, 5, 8, tzinfo=UTC), datetime(2026, 1, 5, 9, tzinfo=UTC)
BEAT = "**/banners/*"
HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def stand_still(page: Page) -> None:
    """The page's time goes on only when it is told to."""
    page.clock.install(time=MORNING)
    page.reload()
    expect(page.get_by_role("main")).to_be_visible()
    with page.expect_response(BEAT):
        page.clock.pause_at(LATER)


@pytest.mark.parametrize("path", ["/handoffs/", "/handoffs/{ref}/"])
def test_a_page_that_nobody_sees_asks_for_nothing(
    open_as: OpenAs, unknown_notice: RunFacts, path: str
) -> None:
    page = open_as("maya", path.format(ref=ref_of(unknown_notice)), used_up=True)
    stand_still(page)
    page.evaluate(HIDE, True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.clock.run_for(60_000)
    assert asked == []

    with page.expect_response(BEAT):
        page.evaluate(HIDE, False)
    with page.expect_response(BEAT):
        page.clock.run_for(10_000)


@pytest.mark.requirement("S4-1")
def test_b21_a_freeze_is_on_a_page_that_nothing_else_polls_within_ten_seconds(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/account/", used_up=True)
    stand_still(page)
    why = "Provider reports duplicates."
    assert flows.Desk("ada").run("freeze", "", "f", scope="forward", applies_to="all", reason=why).accepted
    expect(page.locator(".freeze")).to_have_count(0)

    with page.expect_response(BEAT):
        page.clock.run_for(10_000)

    expect(page.locator(".freeze")).to_contain_text(why)


def test_htmx_evaluates_nothing_and_keeps_no_page_in_the_browsers_store(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    assert page.evaluate("[htmx.config.allowEval, htmx.config.historyCacheSize]") == [False, 0]

    page.locator("select[name=state]").select_option("any")
    expect(page.locator("#tabs [aria-current]")).to_contain_text("This filter")

    kept = page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage)]")
    assert "htmx-history-cache" not in kept
