"""Sign-offs in a browser: read, sign, reject, be refused; by keys, on a phone, without a script, for everybody."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sagas import api
from sagas.facts import SignoffFacts
from sagas.states import PermitState
from tests.browser.conftest import OpenAs
from tests.browser.test_looks import ALL, RULES
from tests.conftest import Clock, Simulator
from tests.integration.workbench import signing
from tests.integration.workbench.conftest import REFUSED
from tests.integration.workbench.flows import Desk
from tools.reader import contract_from_document
from workbench.labs import cast
from workbench.roles import Role

NOTE = "Seen at the carrier's desk, not picked up."
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


@pytest.fixture
def asked(workplace: Simulator) -> SignoffFacts:
    """A request of high risk that Lin asked for."""
    signing.publish()
    workplace.plan(REFUSED)
    return signing.asked_by("lin", amount="12000.00")


def sheet(signoff: SignoffFacts) -> str:
    return f"/signoffs/{signoff.permit.ref}/"


def state(signoff: SignoffFacts) -> PermitState:
    return api.signoff_facts(signoff.permit.ref).permit.state


def tick(page: Page) -> None:
    page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")


@pytest.mark.requirement("S0-35")
def test_from_the_list_to_a_signature_that_is_seen_to_run(
    open_as: OpenAs, asked: SignoffFacts, workplace: Simulator
) -> None:
    page = open_as("priya", "/")
    expect(page.get_by_role("heading", name="Sign-offs")).to_be_visible()
    page.get_by_role("link", name=f"Review {asked.permit.ref}").click()

    expect(page.locator(".digest")).to_contain_text(asked.permit.digest[:8])
    expect(page.locator(".diff")).to_contain_text("booked")
    page.get_by_label("Note").fill(NOTE)
    page.get_by_role("button", name="Sign and start").click()

    expect(page.locator("#result")).to_contain_text("Signed at")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#decide")).to_contain_text("You signed at")
    signing.drive_until_still(asked.run.ref)
    tick(page)
    expect(page.locator("#decide")).to_contain_text("The compensation is now: Compensated.")
    assert len(workplace.ledger(tool="cancel_shipment", kind="effect")) == 1


def test_b10_a_signature_without_its_note_is_told_at_the_field(open_as: OpenAs, asked: SignoffFacts) -> None:
    page = open_as("priya", sheet(asked))

    page.get_by_role("button", name="Sign and start").click()

    expect(page.locator("#result")).to_contain_text(
        "The risk is high: write at least 15 characters as a note."
    )
    expect(page.locator("#f-reason")).to_have_attribute("aria-invalid", "true")
    assert state(asked) is PermitState.REQUESTED


def test_rejecting_asks_for_a_reason_keeps_it_and_hands_over(open_as: OpenAs, asked: SignoffFacts) -> None:
    page = open_as("priya", sheet(asked))
    dialog = page.get_by_role("dialog", name="Reject this request")

    page.get_by_role("link", name="Reject…").first.click()
    code = dialog.get_by_label("Reason code")
    expect(code).to_be_focused()
    dialog.get_by_role("textbox").fill("not now")
    dialog.get_by_role("button", name="Reject it").click()
    expect(dialog).to_contain_text("Choose one of the codes.")
    expect(dialog).to_contain_text("Write at least 15 characters as the reason.")
    expect(dialog.get_by_role("textbox")).to_have_value("not now")
    expect(code).to_be_focused()
    page.keyboard.press("ArrowDown")
    dialog.get_by_role("button", name="Reject it").click()
    expect(dialog).not_to_contain_text("Choose one of the codes.")
    expect(code).to_have_value("evidence_not_enough")
    expect(dialog.get_by_role("textbox")).to_be_focused()

    dialog.get_by_role("textbox").fill("Keep the shipment, the customer takes it after all.")
    dialog.get_by_role("button", name="Reject it").click()
    expect(page.locator("#result")).to_contain_text("Rejected at")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#decide")).to_contain_text("You rejected it at")
    expect(page.locator("#decide .tag")).to_have_text("Evidence is not enough")
    assert state(asked) is PermitState.REJECTED


@pytest.mark.requirement("S0-35")
@pytest.mark.parametrize(
    ("who", "why"),
    [("lin", "由你申请，须由他人签核。"), ("jonas", "You worked on it, someone else must sign.")],
)
def test_b17_who_asked_or_worked_on_it_cannot_sign_by_the_page_and_not_by_a_forged_request(
    open_as: OpenAs, workplace: Simulator, who: str, why: str
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by("lin", worked="jonas", amount="12000.00")
    signing.grant(who, Role.APPROVER)
    page = open_as(who, sheet(asked))

    expect(page.locator("#decide [aria-disabled=true]")).to_be_visible()
    expect(page.locator("#why-not")).to_contain_text(why)
    expect(page.locator("form#run")).to_have_count(0)
    told = page.evaluate(
        """async ([given, why]) => {
          const cookie = document.querySelector("input[name=csrfmiddlewaretoken]").value;
          const body = new URLSearchParams({...given, csrfmiddlewaretoken: cookie});
          const answer = await fetch(location.pathname + "sign/", {method: "POST", body});
          return [answer.status, (await answer.text()).includes(why)];
        }""",
        [
            {
                "digest": asked.permit.digest,
                "command_id": "forged-1",
                "reason": NOTE,
                "saw_version": str(asked.run.version),
            },
            why,
        ],
    )
    assert told == [403, True]
    assert state(asked) is PermitState.REQUESTED


def test_b18_a_request_decided_meanwhile_says_by_whom_and_keeps_the_note(
    open_as: OpenAs, asked: SignoffFacts
) -> None:
    signing.newcomer("rosa", Role.APPROVER)
    page = open_as("priya", sheet(asked))
    page.get_by_label("Note").fill(NOTE)

    signing.decide("rosa", "reject", asked)
    tick(page)
    expect(page.locator("#pill")).to_contain_text("Something has changed")
    expect(page.get_by_label("Note")).to_have_value(NOTE)
    page.get_by_role("button", name="Sign and start").click()

    expect(page.locator("#result")).to_contain_text("Rosa rejected this at")
    expect(page.locator("#result")).to_contain_text("No signature was taken.")


def test_b18_the_digest_is_the_stored_one_and_a_withdrawn_request_takes_no_signature(
    open_as: OpenAs, asked: SignoffFacts
) -> None:
    page = open_as("priya", sheet(asked))
    page.get_by_label("Note").fill(NOTE)
    shown = re.sub(r"\s", "", page.locator(".digest").inner_text())
    assert shown == asked.permit.digest == api.signoff_facts(asked.permit.ref).permit.digest

    assert asked.run.handoff is not None
    withdrawn = Desk("lin").run("withdraw_signoff", asked.run.handoff.ref, "w-1", reason=NOTE)
    assert withdrawn.accepted, withdrawn
    page.get_by_role("button", name="Sign and start").click()

    expect(page.locator("#result")).to_contain_text("No signature was taken.")
    expect(page.locator("form#run")).to_have_count(0)
    assert state(asked) is PermitState.WITHDRAWN


@pytest.mark.requirement("S0-35")
def test_b18_a_call_whose_rules_have_changed_voids_the_request_and_another_is_asked_for(
    open_as: OpenAs, asked: SignoffFacts, workplace: Simulator
) -> None:
    page = open_as("priya", sheet(asked))
    page.get_by_label("Note").fill(NOTE)
    rules = api.tool("cancel_shipment").contract.document
    publish = contract_from_document({**rules, "version": rules["version"] + 1, "level": "high"})
    api.publish_contract(publish, actor=cast.SYSTEM)

    page.get_by_role("button", name="Sign and start").click()
    expect(page.locator("#result")).to_contain_text("No signature was taken.")
    expect(page.locator("form#run")).to_have_count(0)
    assert state(asked) is PermitState.WITHDRAWN
    signing.drive_until_still(asked.run.ref)
    assert workplace.ledger(tool="cancel_shipment", kind="effect") == []

    page.reload()
    newer = api.signoff_facts(asked.permit.ref).newest
    page.locator("#decide").get_by_role("link", name=newer).click()
    page.wait_for_url(f"**/signoffs/{newer}/")
    expect(page.locator("form#run")).to_have_count(1)
    assert newer != asked.permit.ref
    assert re.sub(r"\s", "", page.locator(".digest").inner_text()) == api.signoff_facts(newer).permit.digest


def test_news_leaves_a_reason_to_reject_alone(open_as: OpenAs, asked: SignoffFacts) -> None:
    page = open_as("priya", sheet(asked))
    page.get_by_role("link", name="Reject…").first.click()
    dialog = page.get_by_role("dialog", name="Reject this request")
    dialog.get_by_label("Reason code").select_option("wrong_time")
    dialog.get_by_role("textbox").fill("not now")

    assert asked.run.handoff is not None
    assert Desk("lin").run("withdraw_signoff", asked.run.handoff.ref, "w-1", reason=NOTE).accepted
    tick(page)

    expect(page.locator("#pill")).to_contain_text("Something has changed")
    expect(dialog.get_by_label("Reason code")).to_have_value("wrong_time")
    expect(dialog.get_by_role("textbox")).to_have_value("not now")
    expect(dialog.get_by_role("textbox")).to_be_focused()


def test_what_waits_in_the_pill_is_read_with_u_on_the_list_and_on_a_sheet(
    open_as: OpenAs, asked: SignoffFacts
) -> None:
    sheet_page, page = open_as("priya", sheet(asked)), open_as("priya", "/signoffs/")
    expect(page.get_by_role("link", name=f"Review {asked.permit.ref}")).to_be_visible()
    sheet_page.get_by_label("Note").fill(NOTE)

    assert asked.run.handoff is not None
    assert Desk("lin").run("withdraw_signoff", asked.run.handoff.ref, "w-1", reason=NOTE).accepted
    for one in (page, sheet_page):
        tick(one)
        expect(one.locator("#pill")).to_contain_text("Something has changed")
        one.locator("#main").focus()
        one.keyboard.press("u")

    expect(page.get_by_role("link", name=f"Review {asked.permit.ref}")).to_have_count(0)
    expect(sheet_page.locator("#decide")).to_contain_text("This request is void.")


@pytest.mark.requirement("S0-35")
@pytest.mark.parametrize("script", [True, False])
def test_b10_b27_an_old_login_is_asked_who_it_is_and_the_note_is_kept(
    open_as: OpenAs, workplace: Simulator, clock_of_tests: Clock, script: bool
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    page = open_as("priya", "/signoffs/", java_script_enabled=script)
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status) if "/sign/" in answer.url else None)
    clock_of_tests.put_forward(10 * 60)
    asked = signing.asked_by("lin", amount="12000.00")
    page.goto(page.url.removesuffix("/signoffs/") + sheet(asked))
    password = page.get_by_label("Your password")
    expect(password).to_have_count(0)
    page.get_by_label("Note").fill(NOTE)

    clock_of_tests.put_forward(6 * 60)
    page.get_by_role("button", name="Sign and start").click()
    told = page.locator("#result")
    expect(told).to_contain_text("Confirm it is you")
    expect(told).to_contain_text("No signature was taken.")
    assert statuses[-1] == 428
    expect(page.get_by_label("Note")).to_have_value(NOTE)
    if script:
        expect(told).to_be_focused()

    password.fill("not her password")
    page.get_by_role("button", name="Sign and start").click()
    expect(page.locator("#f-password-error")).to_contain_text("This is not your password.")
    assert statuses[-1] == 422
    expect(password).to_have_value("")
    expect(page.get_by_label("Note")).to_have_value(NOTE)
    assert state(asked) is PermitState.REQUESTED

    password.fill("demo-priya")
    page.get_by_role("button", name="Sign and start").click()
    expect(page.locator("#result")).to_contain_text("Signed at")


def test_b24_keys_pick_the_signature_the_rejection_and_the_digest_and_run_nothing(
    open_as: OpenAs, asked: SignoffFacts
) -> None:
    page = open_as("priya", sheet(asked))

    page.keyboard.press("s")
    expect(page.get_by_role("button", name="Sign and start")).to_be_focused()
    page.keyboard.press("d")
    selected = page.evaluate("getSelection().toString().replace(/\\s/g, '')")
    page.keyboard.press("x")
    expect(page.get_by_role("link", name="Reject…").first).to_be_focused()
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("dialog#reject")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#reject")).to_be_hidden()
    expect(page.get_by_role("link", name="Reject…").first).to_be_focused()

    assert selected == asked.permit.digest
    assert state(asked) is PermitState.REQUESTED


def test_b26_on_a_phone_the_bar_is_there_and_large_enough(open_as: OpenAs, asked: SignoffFacts) -> None:
    page = open_as("priya", sheet(asked), **PHONE)
    bar = page.locator(".signbar .btn")

    for button in bar.all():
        expect(button).to_be_in_viewport()
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.get_by_label("Note").fill(NOTE)
    bar.filter(has_text="Sign and start").tap()
    expect(page.locator("#result")).to_contain_text("Signed at")


def test_without_a_script_the_same_two_answers_can_be_given(open_as: OpenAs, asked: SignoffFacts) -> None:
    page = open_as("priya", sheet(asked), java_script_enabled=False)

    page.get_by_role("link", name="Reject…").first.click()
    expect(page.locator("dialog#reject")).to_be_visible()
    page.get_by_role("link", name="Keep reading").click()
    expect(page.locator("dialog#reject")).to_be_hidden()
    page.get_by_label("Note").fill(NOTE)
    page.get_by_role("button", name="Sign and start").click()

    expect(page.locator("#result")).to_contain_text("Signed at")


@pytest.mark.parametrize(
    ("who", "scheme", "size"),
    [
        ("priya", "dark", "wide"),
        ("lin", "light", "phone"),
        pytest.param("priya", "light", "wide", marks=ALL),
        pytest.param("lin", "light", "wide", marks=ALL),
        pytest.param("priya", "light", "phone", marks=ALL),
    ],
)
def test_b25_axe_finds_nothing_on_the_list_and_on_the_sheet(
    open_as: OpenAs, asked: SignoffFacts, who: str, scheme: str, size: str
) -> None:
    more = PHONE if size == "phone" else {}
    page = open_as(who, "/signoffs/", color_scheme=scheme, **more)
    base = page.url.removesuffix("/signoffs/")
    found: list[Any] = []

    for path in ("/signoffs/", sheet(asked)):
        page.goto(base + path)
        expect(page.get_by_role("main")).to_be_visible()
        found += Axe().run(page, options=RULES).response["violations"]
    if who == "priya" and size == "wide":
        page.get_by_role("link", name="Reject…").first.click()
        found += Axe().run(page, options=RULES).response["violations"]

    assert [(rule["id"], [node["html"][:160] for node in rule["nodes"]]) for rule in found] == []
