"""The case in a browser: decide with a preview and a reason, prove the result, meet other people."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from sagas import api
from sagas.facts import EntryFacts, RunFacts
from sagas.ledger import workers
from tests.browser.conftest import OpenAs, answered_with, now_open, posts, ref_in
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of

REASON = "The carrier confirmed by phone that it went out."


def tick(page: Page) -> None:
    page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")


def entries_of(case: str) -> tuple[EntryFacts, ...]:
    return api.entries(api.handoff_facts(ref_in(case)).ref)


def effects(world: Simulator, tool: str) -> int:
    return sum(record["kind"] == "effect" for record in world.ledger(tool=tool))


@pytest.mark.requirement("S0-40")
def test_b2_the_first_screen_answers_every_question(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case)

    for name in ("What is true now", "Why it needs you", "Acceptable when", "Decide"):
        expect(page.get_by_role("heading", name=name)).to_be_in_viewport()
    for act in page.locator("#decide .act").all():
        expect(act).to_be_in_viewport()
    expect(page.locator("#go button[type=submit]")).to_be_in_viewport()
    expect(page.locator("#facts b")).to_have_text("Not known: did the customer get the notice?")


@pytest.mark.requirement("S3-4", "S3-8")
def test_b19_done_appears_only_after_it_was_read_back(
    open_as: OpenAs, case: str, unknown_notice: RunFacts, workplace: Simulator
) -> None:
    page = open_as("maya", case)
    now_open(page, "query_status", "send_notice")

    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#step-send_notice summary .st")).to_have_text("Unknown")

    workplace.plan({"tool": "query_notice", "mode": "ok"})
    flows.drive_until_still(unknown_notice.ref)
    tick(page)
    expect(page.locator("#result")).to_contain_text("send_notice is Confirmed")
    expect(page.locator(".chead")).to_contain_text("Settled, waits for you")


def test_a_silent_provider_leaves_unknown_and_says_so(
    open_as: OpenAs, case: str, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", case)
    now_open(page, "query_status", "send_notice")

    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    flows.drive_until_still(unknown_notice.ref)
    tick(page)

    expect(page.locator("#result")).to_contain_text("No answer from notify. The outcome is not known.")
    expect(page.locator("#step-send_notice summary .st")).to_have_text("Unknown")


@pytest.mark.requirement("S0-46")
def test_b6_a_switched_off_action_can_be_focused_and_its_reason_is_visible(
    open_as: OpenAs, case: str
) -> None:
    page = open_as("maya", case)

    switched_off = page.locator("#decide [aria-disabled=true]").all()
    assert switched_off
    for off in switched_off:
        off.focus()
        expect(off).to_be_focused()
        expect(off.locator(".why")).to_be_visible()
        expect(off.locator(".why")).not_to_be_empty()


@pytest.mark.requirement("S0-46")
def test_b7_the_reason_beside_an_action_is_what_a_forced_post_is_answered(
    open_as: OpenAs, case: str, workplace: Simulator
) -> None:
    page = open_as("maya", case)
    shown = page.locator("#decide [id='a-retry.send_notice'] .why").inner_text()
    before = len(workplace.ledger(tool="send_notice"))

    status = posts(
        page,
        f"{case}act/",
        verb="retry",
        step="send_notice",
        reason=REASON,
        command_id="forced",
        preview_id="none",
    )

    assert status == 409
    assert answered_with(page) == f"Nothing was sent. {shown}"
    assert len(workplace.ledger(tool="send_notice")) == before


def test_b8_what_runs_is_what_the_preview_showed(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    page = open_as("maya", refused_case)
    expect(page.locator("#run")).to_have_count(0)
    page.keyboard.press("m")
    now_open(page, "compensate")
    shown = page.locator("#run").get_by_text(re.compile(r"^Key \S+$")).all_inner_texts()
    before = len(workplace.ledger(kind="effect"))

    page.locator("#f-reason").fill(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    flows.drive_until_still(rejected_notice.ref)

    ran = [f"Key {record['key']}" for record in workplace.ledger(kind="effect")[before:]]
    assert len(ran) == 2
    assert ran == [key for key in shown if key in ran]


@pytest.mark.requirement("S2-11")
def test_b9_a_preview_says_what_cannot_be_taken_back_and_when_it_is_nothing(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", refused_case)
    stays = page.locator("#run .bx").filter(has=page.get_by_role("heading", name="Cannot be taken back"))

    page.keyboard.press("r")
    now_open(page, "retry", "send_notice")
    expect(stays).to_contain_text("A message reaches the customer")
    expect(stays).not_to_contain_text("Nothing")

    page.keyboard.press("e")
    now_open(page, "escalate")
    expect(stays).to_contain_text("Nothing")


@pytest.mark.requirement("S2-11")
def test_b10_a_write_needs_a_reason(open_as: OpenAs, refused_case: str, workplace: Simulator) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("r")
    now_open(page, "retry", "send_notice")
    expect(page.locator("#run .call code").first).to_contain_text("POST notify")
    sent = len(workplace.ledger(tool="send_notice"))
    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#f-reason")).to_have_attribute("aria-invalid", "true")
    assert len(workplace.ledger(tool="send_notice")) == sent


def test_b10_a_reason_that_is_too_short_keeps_what_was_written(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("e")
    now_open(page, "escalate")

    page.locator("#f-reason").fill("too short")
    page.keyboard.press("Control+Enter")

    expect(page.locator("#result a")).to_have_text(re.compile("at least 15 characters"))
    expect(page.locator("#f-reason")).to_have_value("too short")


@pytest.mark.requirement("S0-36", "S2-10")
def test_steps_are_compensated_and_the_page_shows_it_once_it_is_proved(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts
) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("m")
    now_open(page, "compensate")
    calls = page.locator("#run .call code").all_inner_texts()
    assert next(line for line in calls if "POST" in line or "DELETE" in line).count("shipping") == 1

    page.locator("#f-reason").fill(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")
    flows.drive_until_still(rejected_notice.ref)
    tick(page)

    expect(page.locator("#result")).to_contain_text("The run is now: Compensated.")
    expect(page.locator("#step-reserve_stock summary .st")).to_have_text("Compensated")


@pytest.mark.requirement("S1-6", "S3-17")
def test_b11_two_posts_with_one_id_are_one_effect(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    page = open_as("maya", refused_case, java_script_enabled=False)
    page.goto(f"{page.url}?act=retry.send_notice")
    page.locator("#f-reason").fill(REASON)
    before = [entry.name for entry in api.entries(rejected_notice.ref)]

    page.get_by_role("button", name="Retry send_notice").click()
    expect(page.locator("#result")).to_contain_text("Accepted at")
    page.reload()

    expect(page.locator("#result")).to_contain_text("It ran once.")
    after = [entry.name for entry in api.entries(rejected_notice.ref)]
    assert after.count("tool.retry.scheduled") == before.count("tool.retry.scheduled") + 1


def test_a_double_click_sends_one_request(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case)
    now_open(page, "query_status", "send_notice")
    posted: list[str] = []
    page.on("request", lambda asked: posted.append(asked.url) if asked.method == "POST" else None)

    page.locator("#go button[type=submit]").dblclick()
    expect(page.locator("#result")).to_contain_text("It is being carried out.")

    assert len(posted) == 1


def test_b12_a_stale_page_sends_nothing_shows_what_changed_and_keeps_the_draft(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", refused_case)
    page.route(re.compile("/changes/"), lambda route: route.fulfill(status=204))  # it hears of nothing
    page.keyboard.press("e")
    now_open(page, "escalate")
    page.locator("#f-reason").fill(REASON)
    other = open_as("jonas", refused_case)
    other.locator("[data-verb=claim]").click()
    expect(other.locator("#holder")).to_contain_text("Yours since")
    other.locator("[data-verb=release]").click()
    expect(other.locator("#holder")).to_contain_text("Unclaimed")

    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text(
        "This case changed while you were reading. Nothing was sent."
    )
    expect(page.locator("#result")).to_contain_text(re.compile(r"Jonas Brandt, \d\d:\d\d:\d\d"))
    expect(page.locator("#f-reason")).to_have_value(REASON)
    expect(page.locator("#go [aria-disabled=true]")).to_be_visible()
    page.locator("#result [data-key=use]").click()
    now_open(page, "escalate")
    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("Escalated at")


def test_news_around_a_draft_leaves_the_draft_alone(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", refused_case)
    page.keyboard.press("e")
    now_open(page, "escalate")
    page.locator("#f-reason").fill(REASON)
    assert (
        flows.Desk("jonas").run("comment", ref_in(refused_case), "remark", text="I am on the phone.").accepted
    )

    tick(page)

    expect(page.locator("#feed")).to_contain_text("I am on the phone.")
    expect(page.locator("#f-reason")).to_have_value(REASON)
    expect(page.locator("#f-reason")).to_be_focused()


def test_an_action_works_from_the_moment_it_is_seen(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", refused_case)
    page.evaluate("""document.body.addEventListener("htmx:afterSwap", () => queueMicrotask(
        () => document.getElementById("a-escalate").click()), { once: true })""")

    page.locator("[data-verb=claim]").click()

    expect(page.locator("#holder")).to_contain_text("Yours since")
    now_open(page, "escalate")


def test_b14_an_action_after_losing_the_claim_is_refused(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", refused_case)
    page.locator("[data-verb=claim]").click()
    expect(page.locator("#holder")).to_contain_text("Yours since")
    page.keyboard.press("e")
    now_open(page, "escalate")
    page.locator("#f-reason").fill(REASON)
    assert flows.Desk("lin").run("claim", ref_in(refused_case), "taken-over").accepted

    page.keyboard.press("Control+Enter")

    expect(page.locator("#result")).to_contain_text("Nothing was sent.")
    expect(page.locator("#result")).to_contain_text("Lin Qing works on this since")
    expect(page.locator("#f-reason")).to_have_value(REASON)
    expect(page.locator("[id='a-retry.send_notice'] .why")).to_contain_text("Lin Qing works on this since")
    assert "human.handoff.escalated" not in [entry.name for entry in entries_of(refused_case)]


def test_a_comment_is_kept_and_shown(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case)

    page.keyboard.press("n")
    page.keyboard.type("Customer care has no call yet.")
    page.get_by_role("button", name="Comment").click()

    expect(page.locator("#feed .say").last).to_have_text("Customer care has no call yet.")
    expect(page.locator("#result")).to_contain_text("Your comment was kept")


@pytest.mark.requirement("S1-20")
def test_b22_agent_text_is_inert_and_labelled(open_as: OpenAs, workplace: Simulator) -> None:
    workplace.plan({"tool": "send_notice", "mode": "refuse"})
    number = "O-77001"
    started = api.start_run(
        actor=flows.AGENT,
        definition="orders",
        input={"order": number, "sku": "SKU-1", "qty": 1, "address": "1 Quay", "amount": "1.00"},
        start_key=number,
        intent="<img src=x onerror=alert(1)> [click](/login/) \x1b[31mretry \u202eeverything",
    )
    facts = flows.drive_until_still(started.run_ref)

    page = open_as("maya", f"/handoffs/{ref_of(facts)}/")

    agent = page.locator(".agent")
    expect(agent).to_contain_text("Not verified, not used to decide.")
    expect(agent).to_contain_text("<img src=x onerror=alert(1)>")
    expect(agent.locator("img, a, button, input")).to_have_count(0)
    expect(agent.locator(".vis")).to_have_text(["ESC", "U+202E"])


@pytest.mark.requirement("S4-1")
def test_b21_a_freeze_stops_writes_but_not_queries_and_is_seen_without_a_reload(
    open_as: OpenAs, case: str
) -> None:
    page = open_as("maya", case)
    frozen = flows.Desk("ada").run(
        "freeze", "", "freeze-now", scope="forward", applies_to="all", reason="Provider reports duplicates."
    )
    assert frozen.accepted

    tick(page)

    expect(page.locator(".freeze")).to_contain_text("All forward calls are frozen")
    page.reload()
    expect(page.locator("[id='a-retry.send_notice'] .why")).to_contain_text("Provider reports duplicates.")
    now_open(page, "query_status", "send_notice")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("It is being carried out.")


def test_b28_case_trail_and_run_tell_who_when_why_what_they_saw_and_what_changed(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts
) -> None:
    seen = api.handoff_facts(ref_in(refused_case)).version
    maya = flows.Desk("maya")
    assert maya.run("escalate", ref_in(refused_case), "up", saw_version=seen, reason=REASON).accepted

    page = open_as("oskar", f"{refused_case}trail/?show=people")

    entry = page.locator(".trail > li", has_text="escalated the case")
    expect(entry).to_contain_text("Maya Okafor")
    expect(entry.locator("q")).to_have_text(REASON)
    expect(entry).to_contain_text(f"saw version {seen}")
    expect(entry.locator("time")).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    base = page.url.partition("/handoffs/")[0]
    for path in (refused_case, f"/runs/{rejected_notice.ref}/"):
        page.goto(base + path)
        told = page.locator("#feed li, table.ev tbody tr").filter(has_text=REASON)
        expect(told).to_contain_text("escalated the case")
        expect(told).to_contain_text(re.compile(r"\d\d:\d\d.*(You|Maya Okafor|Maya)", re.DOTALL))


def test_a_session_that_has_ended_leads_to_the_login_page(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case)
    page.context.clear_cookies()

    tick(page)

    page.wait_for_url(f"**/login/?next=*{ref_in(case)}*")


def test_two_browsers_decide_at_once_and_one_wins(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    first, second = open_as("maya", refused_case), open_as("jonas", refused_case)
    for page in (first, second):
        page.keyboard.press("m")
        now_open(page, "compensate")
        page.locator("#f-reason").fill(REASON)
    before = len(workplace.ledger(kind="effect"))

    for page in (first, second):
        page.keyboard.press("Control+Enter")
    for page in (first, second):
        expect(page.locator("#result")).to_contain_text(
            re.compile("It is being carried out|Nothing was sent")
        )

    won = "It is being carried out" in first.locator("#result").inner_text()
    loser, winner = (second, "Maya Okafor") if won else (first, "Jonas Brandt")
    told = loser.locator("#result")
    expect(told).to_contain_text("Nothing was sent.")
    expect(told).to_contain_text(winner)
    expect(told).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(loser.locator("#f-reason")).to_have_value(REASON)
    flows.drive_until_still(rejected_notice.ref)
    assert len(workplace.ledger(kind="effect")) == before + 2
    ordered = [entry for entry in api.entries(rejected_notice.ref) if entry.name == "run.turned_back"]
    assert [entry.actor_name for entry in ordered] == [winner]


@pytest.mark.requirement("S4-1")
def test_b21_pages_that_nothing_polls_hear_of_a_freeze_and_of_work_that_stands_still(
    open_as: OpenAs, workplace: Simulator, clock_of_tests: Clock
) -> None:
    workers.enrol("sweep")
    page = open_as("maya", "/account/")
    pulse = "document.querySelector('#pulse').dispatchEvent(new CustomEvent('amends:pulse'))"
    expect(page.locator(".freeze")).to_have_count(0)

    why = "Provider reports duplicates."
    assert flows.Desk("ada").run("freeze", "", "f", scope="forward", applies_to="all", reason=why).accepted
    page.evaluate(pulse)
    expect(page.locator(".freeze")).to_contain_text(why)

    clock_of_tests.put_forward(60)
    page.evaluate(pulse)
    expect(page.locator(".still")).to_contain_text("Automatic work stands still")
    with page.expect_response("**/banners/*") as answered:
        page.evaluate(pulse)
    assert answered.value.status == 204
