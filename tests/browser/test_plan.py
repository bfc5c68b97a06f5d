"""The recovery plan in a browser: the ladder, the order under its digest, a pause, a step left out, a half-way stop."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sagas import api
from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs, now_open, ref_in
from tests.browser.test_looks import ALL, RULES
from tests.conftest import Simulator
from tests.integration.workbench import flows, tried
from tests.integration.workbench.conftest import REFUSED, ref_of
from workbench.commands import find_plan

REASON = "The customer has called the order off by phone."
WHY = "The parcel is in the van already, the carrier keeps it."


def tick(page: Page) -> None:
    page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")


def plan_in(page: Page, case: str) -> str:
    page.wait_for_url("**/plan/pl_*/")
    found = re.search(r"/plan/(pl_\w+)/", page.url)
    assert found is not None
    plan = find_plan(found[1], handoff_ref=ref_in(case))
    assert plan is not None
    return plan.digest


@pytest.mark.requirement("S2-10", "S0-36")
def test_b18_b20_a_plan_shows_its_order_runs_under_its_digest_and_can_be_paused(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts
) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("m")
    now_open(page, "compensate")
    page.get_by_role("link", name="Open full plan").click()
    digest = plan_in(page, refused_case)

    expect(page.locator("[data-digest]")).to_have_attribute("data-digest", digest)
    order = page.locator(".lrow:not(.hd) .ord").all_inner_texts()
    assert order == ["2", "1", "none"]
    expect(page.get_by_text("2 of 2 preconditions hold")).to_be_visible()
    expect(page.get_by_text("Not offered by this tool")).to_have_count(2)

    page.keyboard.press("s")
    page.locator("#f-reason").fill("too short")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#f-reason")).to_have_value("too short")

    page.locator("#f-reason").fill(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#progress-says")).to_have_text("0 verified, 0 in flight, 2 to go")
    expect(page.locator("#result")).to_be_focused()
    page.locator("#pause button").click()
    expect(page.locator("#paused-by")).to_contain_text("Maya Okafor paused it at")
    assert api.run_facts(rejected_notice.ref).paused_by == "Maya Okafor"

    page.locator("#f-reason").fill(REASON)
    page.locator("#go button").click()
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    flows.drive_until_still(rejected_notice.ref)
    tick(page)

    expect(page.locator(".chead .pill")).to_have_text("Compensated")
    expect(page.locator("#progress-says")).to_have_text("2 verified, 0 in flight, 0 to go")
    expect(page.locator("#rung-create_shipment .u")).to_contain_text("verified")
    expect(page.locator(".feed li").first).to_contain_text("closed the run")


@pytest.mark.requirement("S3-15")
def test_a_step_is_left_out_with_a_reason_and_that_is_another_plan_without_javascript_too(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("priya", f"{refused_case}plan/", java_script_enabled=False)
    whole = plan_in(page, refused_case)

    page.locator("#leave summary").click()
    page.get_by_label("create_shipment (create_shipment)").check()
    page.get_by_role("button", name="Make this plan").click()
    expect(page.locator("#f-why_left_out-error")).to_contain_text("at least 15 characters")
    page.locator("#f-why_left_out").fill(WHY)
    page.get_by_role("button", name="Make this plan").click()

    expect(page.locator("#left-out")).to_contain_text(WHY)
    part = page.locator("[data-digest]").get_attribute("data-digest")
    assert part != whole
    expect(page.locator("#rung-create_shipment .u")).to_contain_text("Left out")
    expect(page.locator(".pstep")).to_have_count(1)
    page.locator("#f-reason").fill(REASON)
    page.get_by_role("button", name="Compensate 1 step").click()
    expect(page.locator("#result")).to_contain_text("Accepted at")


def test_b18_a_plan_is_void_once_the_case_has_changed_and_the_reason_goes_on_into_a_new_one(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", f"{refused_case}plan/")
    first = plan_in(page, refused_case)
    page.locator("#f-reason").fill(REASON)
    assert flows.Desk("lin").run("claim", ref_in(refused_case), "meanwhile").accepted
    assert flows.Desk("lin").run("release", ref_in(refused_case), "free-again").accepted

    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("Nothing was sent.")
    expect(page.locator(".chead .pill")).to_have_text("Plan void, nothing was sent")
    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.get_by_role("button", name="Make a new plan").click()
    expect(page.locator(".chead .pill")).to_have_text("Plan, nothing sent yet")
    expect(page.locator("#f-reason")).to_have_value(REASON)
    expect(page.locator("[data-digest]")).not_to_have_attribute("data-digest", first)


@pytest.mark.parametrize("who", ["maya", pytest.param("lin", marks=ALL)])
def test_b25_b26_a_plan_and_a_half_way_stop_keep_to_the_rules_of_every_page(
    open_as: OpenAs, workplace: Simulator, who: str
) -> None:
    workplace.plan(REFUSED, {"tool": "release_stock", "mode": "refuse"})
    planned, stopped = (flows.drive_until_still(flows.start()) for _ in range(2))
    assert flows.Desk("maya").run("compensate", ref_of(stopped), "c-0", reason=REASON).accepted
    stopped = flows.drive_until_still(stopped.ref)
    page = open_as(who, f"/handoffs/{ref_of(planned)}/plan/", color_scheme="dark")

    for address in (page.url, f"{page.url.partition('/handoffs/')[0]}/handoffs/{ref_of(stopped)}/"):
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(address)
        expect(page.locator(".ladder")).to_be_visible()
        found = Axe().run(page, options=RULES).response["violations"]
        assert [(rule["id"], [node["html"][:160] for node in rule["nodes"]]) for rule in found] == []
        page.set_viewport_size({"width": 320, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.requirement("S0-70")
def test_b20_a_compensation_that_stops_half_way_counts_three_worlds(
    open_as: OpenAs, workplace: Simulator
) -> None:
    workplace.plan(REFUSED, {"tool": "release_stock", "mode": "refuse"})
    facts = flows.drive_until_still(flows.start())
    assert flows.Desk("maya").run("compensate", ref_of(facts), "c-0", reason=REASON).accepted
    facts = flows.drive_until_still(facts.ref)

    page = open_as("maya", f"/handoffs/{ref_of(facts)}/")

    expect(page.locator("h1")).to_have_text("Compensation stopped half-way")
    expect(page.locator(".chead .pill")).to_have_text("1 compensated, 0 not known, 1 still in effect")
    expect(page.locator("#halfway")).to_contain_text("Both directions are now incomplete.")
    assert page.locator(".lrow:not(.hd) .ord").all_inner_texts() == ["2", "1", "none"]
    row = page.locator(".matrix tbody tr", has_text="reserve_stock")
    expect(row).to_contain_text("Compensation failed")
    expect(row).to_contain_text("still in effect")
    expect(page.locator(".matrix tbody tr", has_text="create_shipment")).to_contain_text("Compensated")
    expect(page.get_by_text("Must be gone by")).to_be_visible()
    expect(page.get_by_role("heading", name="Decide")).to_be_visible()


def test_a_plan_says_which_test_mode_accepts_which_refuses_and_where_there_is_none(
    open_as: OpenAs, workplace: Simulator
) -> None:
    workplace.plan({"tool": "book_flight", "mode": "refuse"})
    case = f"/handoffs/{ref_of(tried.trip())}/"
    page = open_as("maya", f"{case}?act=compensate")
    expect(page.locator("#run")).to_contain_text(
        "Dry run of cancel_hotel: Accepted by the provider’s test mode"
    )

    page.get_by_role("link", name="Open full plan").click()
    plan_in(page, case)
    expect(page.get_by_text("Dry run: 1 accepted, 1 not offered")).to_be_visible()
    expect(page.locator(".pstep .side").nth(0)).to_contain_text("Accepted by the provider’s test mode")
    expect(page.locator(".pstep .side").nth(1)).to_contain_text("Not offered by this tool")

    workplace.plan({"tool": "try_cancel_hotel", "mode": "refuse"})
    page.goto(page.url.partition("/handoffs/")[0] + f"{case}plan/")
    expect(page.get_by_text("As things stand the first call would not be sent")).to_be_visible()
    expect(page.locator(".pstep .side").nth(0)).to_contain_text("Refused by the provider’s test mode")
