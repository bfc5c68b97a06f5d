"""A case between people: one asks for it and the other hands it over; a closed one is reopened as a new one."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from sagas import api
from sagas.facts import RunFacts
from sagas.states import PermitState
from tests.browser.conftest import OpenAs, now_open, ref_in
from tests.browser.test_case import tick
from tests.conftest import Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import REFUSED, ref_of
from workbench.models import User

NOTE = "I have the carrier on the phone."
PLAIN: dict[str, Any] = {"java_script_enabled": False}


def test_whoever_reads_along_asks_for_the_case_and_the_holder_hands_it_over(
    open_as: OpenAs, refused_case: str
) -> None:
    assert flows.Desk("maya").run("claim", ref_in(refused_case), "c-1").accepted
    holder, other = open_as("maya", refused_case), open_as("jonas", refused_case)

    other.get_by_text("Ask for hand-over…").click()
    other.locator("#f-note").fill(NOTE)
    other.get_by_role("button", name="Ask for hand-over").click()
    expect(other.locator("#result")).to_contain_text("nothing has changed hands")
    expect(other.locator("#asked")).to_contain_text("You asked Maya Okafor at")

    tick(holder)
    expect(holder.locator("#asked")).to_contain_text("Jonas Brandt asked you at")
    expect(holder.locator("#asked blockquote")).to_have_text(NOTE)
    expect(holder.locator("#feed")).to_contain_text("asked for the case to be handed over")
    holder.get_by_role("link", name="Hand over to Jonas Brandt…").click()
    now_open(holder, "assign")
    expect(holder.locator("#f-person")).to_have_value("jonas")
    holder.locator("#f-reason").fill("Jonas has the carrier on the phone.")
    holder.keyboard.press("Control+Enter")
    expect(holder.locator("#result")).to_contain_text("Handed over at")
    expect(holder.locator("#asked")).to_have_text("")

    tick(other)
    expect(other.locator("#holder")).to_contain_text("Yours since")


def test_a_lead_takes_a_case_over_and_nobody_else_is_offered_it(open_as: OpenAs, refused_case: str) -> None:
    assert flows.Desk("maya").run("claim", ref_in(refused_case), "c-1").accepted
    User.objects.filter(username="lin").update(language="en")
    other, lead = open_as("jonas", refused_case), open_as("lin", refused_case)
    expect(other.locator("#holder")).to_contain_text("Maya Okafor since")
    expect(other.get_by_role("button", name="Take over")).to_have_count(0)

    lead.get_by_role("button", name="Take over").click()

    expect(lead.locator("#holder")).to_contain_text("Yours since")
    tick(other)
    expect(other.locator("#holder")).to_contain_text("Lin Qing since")


def test_whoever_asked_for_a_signature_withdraws_it_on_the_case_with_a_reason(
    open_as: OpenAs, workplace: Simulator
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by("maya")
    assert asked.run.handoff is not None
    page = open_as("maya", f"/handoffs/{asked.run.handoff.ref}/")

    page.get_by_text("Withdraw…").click()
    page.locator("#withdraw #f-reason").fill("too short")
    page.get_by_role("button", name="Withdraw the request").click()
    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#withdraw #f-reason")).to_have_value("too short")
    page.locator("#withdraw #f-reason").fill(NOTE)
    page.get_by_role("button", name="Withdraw the request").click()

    expect(page.locator("#result")).to_contain_text("Withdrawn at")
    assert api.signoff_facts(asked.permit.ref).permit.state is PermitState.WITHDRAWN


def test_the_queue_says_who_asks_for_a_case(open_as: OpenAs, refused_case: str) -> None:
    ref = ref_in(refused_case)
    assert flows.Desk("maya").run("claim", ref, "c-1").accepted
    assert flows.Desk("jonas").run("ask_for_case", ref, "w-1").accepted

    page = open_as("maya", "/handoffs/", **PLAIN)

    expect(page.locator(f"#row-{ref} .c-owner")).to_contain_text("Jonas Brandt asks for it")


def test_a_closed_case_is_reopened_with_a_reason_as_a_new_one_without_javascript_too(
    open_as: OpenAs, closed_case: RunFacts
) -> None:
    old = ref_of(closed_case)
    page = open_as("maya", f"/handoffs/{old}/", **PLAIN)

    page.get_by_text("Reopen with a reason…").click()
    page.locator("#f-reason").fill("short")
    page.get_by_role("button", name="Reopen as a new case").click()
    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#f-reason")).to_have_value("short")

    page.locator("#f-reason").fill("The customer calls: the notice never arrived.")
    page.get_by_role("button", name="Reopen as a new case").click()
    expect(page.locator("#result")).to_contain_text("Reopened at")
    new = api.run_facts(closed_case.ref).handoffs[-1].ref
    page.get_by_role("link", name=new).click()

    expect(page.locator(".chead .pill")).to_have_text("Reopened")
    expect(page.get_by_text("It goes on from")).to_contain_text(old)
    expect(page.locator("#feed")).to_contain_text(f"You reopened the case as {new}.")
