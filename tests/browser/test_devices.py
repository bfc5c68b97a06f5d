"""A rollout over twelve devices in a browser: how far it came, the device that is silent, what changed meanwhile."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from sagas import api
from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs, now_open
from tests.browser.test_looks import faults
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tools.reader import definition_from_document, read_definition
from workbench.labs import cast

DEVICES = tuple(f"sw-fra2-{number:02d}" for number in range(1, 13))
SILENT = "device_08"
REASON = "The duty engineer looks at the rack at 11:00."


@pytest.fixture
def rollout(workplace: Simulator) -> RunFacts:
    """Seven of twelve devices run the new configuration; the eighth took it, and its answer never came."""
    shipped = read_definition(flows.ROOT / "examples" / "device_rollout.toml")
    api.publish_definition(
        definition_from_document({**shipped.document, "name": "rollout", "recovery_deadline_s": 0.1}),
        actor=cast.SYSTEM,
    )
    # The key of a push names its step, and only the status query carries the key: other reads are answered.
    workplace.plan(
        {"tool": "push_config", "mode": "cut", "match": [SILENT]},
        {"tool": "get_config", "mode": "query_down", "match": [SILENT]},
    )
    started = api.start_run(
        actor=flows.AGENT,
        definition="rollout",
        input={"change": "CHG-3310", "config": {"mtu": 9000}, "devices": list(DEVICES)},
        start_key="rollout",
        intent="Roll the new configuration out to the twelve switches.",
    )
    return flows.drive_until_still(started.run_ref)


@pytest.mark.requirement("S0-56")
def test_the_silent_device_is_asked_about_by_name_and_those_behind_it_were_never_called(
    open_as: OpenAs, rollout: RunFacts, workplace: Simulator
) -> None:
    page = open_as("maya", "/handoffs/")
    row = page.locator(f"#row-{ref_of(rollout)}")
    expect(row.get_by_role("img", name="7 confirmed, 1 unknown, 4 not sent of 12")).to_be_visible()

    row.locator(".ttl").click()

    rows = page.locator(".step > summary")
    expect(rows).to_have_count(len(DEVICES))
    for number, name in enumerate(DEVICES[:7]):
        expect(rows.nth(number)).to_contain_text(f"The configuration of {name} was overwritten")
        expect(rows.nth(number).locator(".st")).to_have_text("Confirmed")
    expect(page.locator(".step[open] > summary")).to_have_count(1)
    expect(page.locator(f"#step-{SILENT}[open] > summary")).to_contain_text(f"push_config · {SILENT}")
    expect(page.locator(f"#step-{SILENT} > summary .st")).to_have_text("Unknown")
    for number in range(8, 12):
        expect(rows.nth(number).locator(".st")).to_have_text("Not sent")
    table = page.locator("#alike tbody tr")
    expect(table.locator("th")).to_have_text(list(DEVICES))
    silent = table.nth(7)
    expect(silent.locator("td").nth(0)).to_contain_text("Unknown")
    expect(silent.locator("td b")).to_have_text("Not known: does the device run the new configuration?")
    expect(table.nth(0).locator("td").nth(1)).to_contain_text("device · ")
    expect(table.nth(11).locator("td").nth(1)).to_have_text("never called")
    keys = table.locator("td:last-child").all_inner_texts()
    assert len(set(keys)) == len(DEVICES)
    question = page.locator("#facts li").last
    expect(question.locator("b")).to_have_text("Not known: does the device run the new configuration?")
    expect(question.locator(".src")).to_contain_text(SILENT)
    arrived = str(workplace.ledger(tool="push_config", kind="arrived"))
    assert [name for name in DEVICES if name in arrived] == list(DEVICES[:8])
    assert faults(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_stale_page_names_the_device_that_was_asked_about_meanwhile(
    open_as: OpenAs, rollout: RunFacts, workplace: Simulator
) -> None:
    ref = ref_of(rollout)
    page = open_as("maya", f"/handoffs/{ref}/?act=escalate")
    now_open(page, "escalate")
    page.locator("#f-reason").fill(REASON)
    workplace.plan({"tool": "get_config", "mode": "ok"})
    lin = flows.Desk("lin")
    assert lin.run("query_status", ref, "asked", step=SILENT).accepted
    flows.drive_until_still(rollout.ref)
    assert lin.run("release", ref, "free-again").accepted

    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("This case changed while you were reading.")
    changed = page.locator("#result tbody tr", has_text=SILENT)
    expect(changed.locator("td").nth(1)).to_have_text("Unknown")
    expect(changed.locator("td").nth(2)).to_have_text("Confirmed")
    row = page.locator(f"#alike-{SILENT}")
    expect(row).to_contain_text("changed")
    expect(row).to_contain_text("Confirmed")
    expect(page.locator("#alike .tag", has_text="changed")).to_have_count(1)
    expect(page.locator("#f-reason")).to_have_value(REASON)
