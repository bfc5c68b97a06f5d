"""B16: the set is frozen, a case that joins later is untouched, and the first cases stop the rest when one fails."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.bulking import REASON, Lead, attempts, cases, go_through, look
from tests.integration.workbench.conftest import REFUSED
from workbench.labs import cast

PLAIN: dict[str, Any] = {"java_script_enabled": False}
OK = {"tool": "send_notice", "mode": "ok"}


@pytest.fixture
def three(workplace: Simulator) -> list[RunFacts]:
    """Three cases whose notice was refused, and a lead who reads English."""
    lin = flows.person("lin")
    lin.language, lin.time_zone = "en", "UTC"
    lin.save(update_fields=["language", "time_zone"])
    assert cast.LIN.username == "lin"
    workplace.plan(REFUSED)
    found = cases(3)
    workplace.plan(OK)
    return found


def start(page: Page, number: str) -> None:
    page.locator("#f-reason").fill(REASON)
    page.locator("#f-count").fill(number)
    page.get_by_role("button", name=re.compile("first 2 now")).click()
    expect(page.locator("#bulk-body")).to_contain_text("Started by Lin Qing")


def test_b16_a_case_that_joins_later_is_counted_and_untouched(
    open_as: OpenAs, three: list[RunFacts], workplace: Simulator
) -> None:
    ref = Lead().freeze("retry", three)
    page = open_as("lin", f"/handoffs/bulk/{ref}/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("3 of 3 cases")
    workplace.plan(REFUSED)
    (late,) = cases(1)
    workplace.plan(OK)

    start(page, "3")
    go_through(ref, three)

    # The page looks for itself every two seconds; nobody presses anything.
    expect(page.locator("#bulk-body")).to_contain_text("3 verified.")
    expect(page.locator("#bulk-arrived")).to_contain_text("1 similar case came after the list was frozen.")
    expect(page.locator("#bulk-cases tbody tr")).to_have_count(3)
    expect(page.locator("#announce")).to_contain_text("3 verified.")
    assert attempts(late) == 1


def test_b16_the_first_two_stop_the_rest_when_one_is_not_verified(
    open_as: OpenAs, three: list[RunFacts], workplace: Simulator
) -> None:
    ref = Lead().freeze("retry", three)
    page = open_as("lin", f"/handoffs/bulk/{ref}/")
    workplace.plan(REFUSED)

    start(page, "3")
    look()
    expect(page.locator("#bulk-body")).to_contain_text("The first cases are being proved.")
    go_through(ref, three)

    expect(page.locator("#bulk-why")).to_contain_text("was not verified. Nothing else was sent.")
    expect(page.locator("#bulk-body")).to_contain_text("2 not done, 1 untouched.")
    assert attempts(three[2]) == 1


def test_news_leaves_the_form_alone_that_pauses_it(
    open_as: OpenAs, three: list[RunFacts], clock_of_tests: Clock
) -> None:
    ref = Lead().freeze("retry", three)
    page = open_as("lin", f"/handoffs/bulk/{ref}/")
    start(page, "3")
    expect(page.locator("#bulk-progress")).to_have_js_property("value", 0)

    page.locator("#bulk-hold summary").click()
    page.locator("#f-reason").fill(REASON)
    look()
    for one in three[:2]:
        flows.drive_until_still(one.ref)
    clock_of_tests.put_forward(2)
    look()

    expect(page.locator("#bulk-progress")).to_have_js_property("value", 2)
    expect(page.locator("#f-reason")).to_be_focused()
    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#bulk-body")).to_contain_text("Paused at")
    expect(page.locator("#f-reason")).to_have_value("")


def test_the_line_above_the_queue_is_told_anew_around_whoever_is_at_it(
    open_as: OpenAs, three: list[RunFacts], clock_of_tests: Clock
) -> None:
    ref = Lead().freeze("retry", three)
    assert Lead().start(ref).accepted
    page = open_as("lin", "/handoffs/")
    line, link = page.locator(f"#line-{ref}"), page.locator(f"#line-{ref} a").first
    expect(line).to_contain_text("3 waiting.")
    link.focus()
    page.evaluate("ref => { document.getElementById(`line-${ref}`).mine = true }", ref)

    look()
    for one in three[:2]:
        flows.drive_until_still(one.ref)
    clock_of_tests.put_forward(2)
    look()
    expect(line).to_contain_text("2 verified")
    expect(link).to_be_focused()
    go_through(ref, three)

    # It asks again by its new address, until there is nothing further to tell.
    expect(line).to_contain_text("3 verified.")
    expect(link).to_be_focused()
    assert page.evaluate("ref => document.getElementById(`line-${ref}`).mine", ref), "it is another element"


def test_the_whole_way_without_javascript(open_as: OpenAs, three: list[RunFacts]) -> None:
    ref = Lead().freeze("query_status", three)
    page = open_as("lin", f"/handoffs/bulk/{ref}/", **PLAIN)
    expect(page.locator("main")).to_contain_text("3 are left out")
    expect(page.locator("main")).to_contain_text("It is possible for none of these cases.")

    page.get_by_role("button", name="Retry a step (3)").click()
    page.locator("#f-reason").fill("soon")
    page.locator("#f-count").fill("2")
    page.get_by_role("button", name=re.compile("first 2 now")).click()
    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#f-reason")).to_have_value("soon")
    start(page, "3")

    page.locator("#bulk-hold summary").click()
    page.locator("#f-reason").fill(REASON)
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#bulk-body")).to_contain_text("Paused at")
    page.locator("#f-reason").fill(REASON)
    page.get_by_role("button", name="Continue", exact=True).click()
    go_through(ref_in(page), three)
    page.reload()

    expect(page.locator("#bulk-body")).to_contain_text("3 verified.")


def ref_in(page: Page) -> str:
    return page.url.rstrip("/").rpartition("/")[2]
