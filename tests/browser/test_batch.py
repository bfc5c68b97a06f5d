"""A call over many in a browser: the refused parts by name, a retry of those that are picked, the rest untouched."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sagas import api
from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs, now_open
from tests.browser.test_looks import RULES
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tools.reader import read_definition
from workbench.labs import cast

REASON = "The lock on these articles was released at 10:35."
REFUSED = ("ART-3", "ART-7", "ART-11")
SIZE = 20


@pytest.fixture
def batch(workplace: Simulator) -> RunFacts:
    """Three of twenty articles are locked; the others carry the new label."""
    api.publish_definition(read_definition(flows.ROOT / "examples" / "batch_relabel.toml"), actor=cast.SYSTEM)
    workplace.plan({"tool": "relabel_items", "mode": "ok", "items": list(REFUSED), "item_state": "locked"})
    started = api.start_run(
        actor=flows.AGENT,
        definition="batch_relabel",
        input={
            "batch": "B-418",
            "label": "summer",
            "items": [{"id": f"ART-{number}"} for number in range(1, SIZE + 1)],
        },
        start_key="batch-418",
        intent="New labels before the shop opens",
    )
    return flows.drive_until_still(started.run_ref)


def states(run_ref: str) -> dict[str, str]:
    return {item.item: item.state.value for item in api.run_facts(run_ref).action("relabel").items}


def shown(page: Page) -> list[str]:
    return page.locator("#items tbody th").all_inner_texts()


def fine(page: Page) -> None:
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(rule["id"], [node["html"][:160] for node in rule["nodes"]]) for rule in found] == []


@pytest.mark.requirement("S0-56")
def test_the_queue_shows_a_batch_as_a_bar_and_counts_its_items(open_as: OpenAs, batch: RunFacts) -> None:
    page = open_as("maya", "/handoffs/")
    row = page.locator(f"#row-{ref_of(batch)}")

    expect(row.get_by_role("img", name="17 confirmed, 3 rejected of 20")).to_be_visible()
    assert [cell.strip() for cell in row.locator(".cnt").all_inner_texts()][:2] == ["17", "3"]
    fine(page)


@pytest.mark.requirement("S0-56", "S1-16")
def test_the_refused_items_that_are_picked_go_out_again_and_no_others(
    open_as: OpenAs, batch: RunFacts, workplace: Simulator
) -> None:
    page = open_as("maya", f"/handoffs/{ref_of(batch)}/")
    assert shown(page) == list(REFUSED)
    expect(page.locator("#items")).to_contain_text("The other 17 items are settled (17 confirmed)")

    page.keyboard.press("r")
    now_open(page, "retry", "relabel")
    expect(page.locator("#run .call")).to_contain_text("3 items go out, none else is touched.")
    fine(page)
    page.get_by_label("ART-11").uncheck()
    page.locator("#f-reason").fill(REASON)
    workplace.plan({"tool": "relabel_items", "mode": "ok"})
    page.get_by_role("button", name="Retry the picked items").click()

    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    facts = flows.drive_until_still(batch.ref)
    assert {name: state for name, state in states(batch.ref).items() if state != "confirmed"} == {
        "ART-11": "rejected"
    }
    again = workplace.ledger(tool="relabel_items", kind="arrived")
    assert len(again) == 2
    assert again[0]["key"] != again[1]["key"]

    page.goto(page.url.partition("/handoffs/")[0] + f"/handoffs/{ref_of(facts)}/")
    assert shown(page) == ["ART-11"]


def test_a_retry_of_nothing_sends_nothing(open_as: OpenAs, batch: RunFacts, workplace: Simulator) -> None:
    page = open_as("maya", f"/handoffs/{ref_of(batch)}/?act=retry.relabel")
    now_open(page, "retry", "relabel")
    for name in REFUSED:
        page.get_by_label(name, exact=False).uncheck()
    page.locator("#f-reason").fill(REASON)

    page.get_by_role("button", name="Retry the picked items").click()

    expect(page.locator("#result")).to_contain_text("Pick at least one item.")
    expect(page.locator("#run input[type=checkbox]:checked")).to_have_count(0)
    assert len(workplace.ledger(tool="relabel_items", kind="arrived")) == 1


@pytest.mark.requirement("S0-56", "S1-16")
def test_one_refused_item_is_accepted_and_its_row_says_who_did(open_as: OpenAs, batch: RunFacts) -> None:
    page = open_as("maya", f"/handoffs/{ref_of(batch)}/?act=accept_items.relabel")
    now_open(page, "accept_items", "relabel")
    expect(page.locator("#run input[type=checkbox]:checked")).to_have_count(0)

    page.get_by_label("ART-7").check()
    page.locator("#f-reason").fill(REASON)
    page.get_by_role("button", name="Accept the picked items").click()

    expect(page.locator("#result")).to_contain_text("The items stay as they are.")
    assert shown(page) == ["ART-3", "ART-11", "ART-7"]
    expect(page.locator("#items tbody tr").last).to_contain_text("accepted by Maya")
    expect(page.locator("#acts")).to_contain_text("Retry 2 items of relabel_items")
    fine(page)


@pytest.mark.requirement("S0-23", "S0-24", "S0-25")
def test_accepting_the_rest_says_what_it_opens_and_leads_there(open_as: OpenAs, batch: RunFacts) -> None:
    page = open_as("maya", f"/handoffs/{ref_of(batch)}/")
    expect(page.locator("#a-mark_acceptable + label .tag")).to_have_text("1 write")

    page.keyboard.press("a")
    now_open(page, "mark_acceptable")
    expect(page.locator("#run")).to_contain_text("Opens: Open a task for the articles that are left")
    page.get_by_label("Acceptable end state").select_option("rest_by_hand")
    page.locator("#f-reason").fill(REASON)
    page.get_by_role("button", name="Accept and close").click()

    opened = page.get_by_role("link", name="Opened run")
    expect(opened).to_be_visible()
    opened.click()
    expect(page.get_by_role("link", name=f"Remedy for run {batch.ref}")).to_be_visible()
    fine(page)


def test_the_run_page_shows_the_parts_too(open_as: OpenAs, batch: RunFacts) -> None:
    page = open_as("maya", f"/runs/{batch.ref}/", viewport={"width": 390, "height": 844})

    expect(page.get_by_role("heading", name="Items of relabel_items")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    fine(page)
