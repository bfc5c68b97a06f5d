"""The queue in a browser: rows, keys, claims by two people, live news that moves nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from sagas import api
from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from workbench.commands.people import set_preferences

NAMES = ("ok", "failed", "unknown", "irreversible", "compensable")


def test_b1_the_unknown_step_is_visible_in_the_queue(open_as: OpenAs, unknown_notice: RunFacts) -> None:
    page = open_as("maya", "/handoffs/")

    row = page.locator(f"#row-{ref_of(unknown_notice)}")
    expect(row.locator(".strip")).to_contain_text("3. send_notice: unknown, irreversible")


def test_b5_five_counts_equal_the_strip(open_as: OpenAs, unknown_notice: RunFacts) -> None:
    page = open_as("maya", "/handoffs/")

    row = page.locator(f"#row-{ref_of(unknown_notice)}")
    counts = {name: int(row.locator(f"[data-l={name}]").inner_text().strip("·\n ") or 0) for name in NAMES}
    strip = row.locator(".strip li").all_inner_texts()
    assert counts["ok"] == sum("confirmed" in mark for mark in strip) == 2
    assert counts["unknown"] == sum("unknown" in mark for mark in strip) == 1
    assert counts["failed"] == 0
    assert counts["irreversible"] == sum("irreversible" in mark for mark in strip)
    assert counts["compensable"] == sum(", compensable" in mark for mark in strip)


@pytest.mark.requirement("S3-4")
def test_b4_unknown_is_shown_with_no_failed_mark_word_or_count(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", "/handoffs/")
    expect(page.locator("tbody .i-bad, tbody .i-compfailed")).to_have_count(0)
    expect(page.locator("tbody [data-l=failed]")).to_have_text("·0")

    page.goto(page.url.replace("/handoffs/", case))
    step = page.locator("#step-send_notice")
    expect(step.locator("summary .st")).to_have_text("Unknown")
    expect(step.locator("summary .i-unk")).to_be_visible()
    expect(page.locator("#facts .i-bad, #facts .i-compfailed")).to_have_count(0)


def test_keys_move_and_open_but_never_write(open_as: OpenAs, unknown_notice: RunFacts) -> None:
    page = open_as("maya", "/handoffs/")

    page.keyboard.press("j")
    expect(page.locator("tr.cur .ttl")).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("tr.cur .lnk")).to_be_focused()
    expect(page.locator("tr.cur .c-owner")).to_contain_text("Unclaimed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/handoffs/{ref_of(unknown_notice)}/")


def test_b24_keys_do_nothing_in_a_field_and_can_be_switched_off(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    page.keyboard.press("f")
    page.keyboard.type("jjc?")
    expect(page.locator("#filter")).to_have_value("jjc?")
    expect(page.locator("dialog[open]")).to_have_count(0)

    page.goto(page.url.partition("/handoffs/")[0] + "/account/")
    page.get_by_label("Single keys pick and move").uncheck()
    page.get_by_role("button", name="Keep these preferences").click()
    expect(page.get_by_text("Your preferences are kept.")).to_be_visible()
    page.goto(page.url.partition("/account/")[0] + "/handoffs/")
    page.keyboard.press("j")

    expect(page.locator("tr.cur")).to_have_count(0)


def test_b13_of_two_who_claim_one_wins_and_the_other_reads_who_and_when(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    first, second = open_as("maya", "/handoffs/"), open_as("jonas", "/handoffs/")

    for page in (first, second):
        page.get_by_role("button", name="Claim").click()
    for page in (first, second):
        expect(page.locator("tbody .c-owner")).to_contain_text(re.compile("You|claimed it at"))

    won = first.locator("tbody [role=alert]").count() == 0
    loser, winner = (second, "Maya Okafor") if won else (first, "Jonas Brandt")
    expect(loser.locator("tbody [role=alert]")).to_contain_text(
        re.compile(rf"{winner} claimed it at \d\d:\d\d")
    )
    expect(loser.locator("tbody .c-owner .own")).to_contain_text(winner)
    claims = [entry for entry in api.entries(unknown_notice.ref) if entry.name == "human.handoff.claimed"]
    assert [entry.actor_name for entry in claims] == [winner]


def ask_for_news(page: Page) -> None:
    """What the page does by itself every ten seconds."""
    with page.expect_response("**/handoffs/changes*"):
        page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")


def rows(page: Page) -> list[str]:
    found: list[str] = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.id)")
    return found


def test_b15_news_waits_in_a_pill_and_rows_stay_where_they_are(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    ref = ref_of(unknown_notice)
    page = open_as("maya", "/handoffs/")
    before = rows(page)
    page.keyboard.press("j")
    page.keyboard.press("x")

    flows.drive_until_still(flows.start())
    ask_for_news(page)

    expect(page.locator("#pill")).to_contain_text("1 new")
    assert rows(page) == before
    expect(page.locator("tr.cur .ttl")).to_be_focused()
    expect(page.locator(f"#x-{ref}")).to_be_checked()
    page.evaluate("ref => { document.getElementById(`row-${ref}`).mine = true }", ref)
    page.keyboard.press("u")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator(f"#x-{ref}")).to_be_checked()
    expect(page.locator("#pill")).to_be_empty()
    expect(page.locator("tr.cur .ttl")).to_be_focused()
    assert page.evaluate("ref => document.getElementById(`row-${ref}`).mine", ref), "it is another row"


def test_b15_rows_selection_and_focus_stay_while_fifty_changes_arrive(
    open_as: OpenAs, unknown_notice: RunFacts, many: Callable[[], None]
) -> None:
    ref = ref_of(unknown_notice)
    page = open_as("maya", "/handoffs/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(f"#x-{ref}")).to_be_checked()
    before, where = rows(page), page.locator(f"#row-{ref}").bounding_box()
    ticket = page.locator(f"#x-{ref}").input_value()

    flows.Desk("jonas").run("claim", ref, "jonas-takes-it")
    many()
    ask_for_news(page)

    # Fifty rows are a page: one of the fifty-one would stand on the next.
    expect(page.locator("#pill")).to_contain_text("49 new")
    assert rows(page) == before
    assert page.locator(f"#row-{ref}").bounding_box() == where
    expect(page.locator(f"#row-{ref} .c-owner")).to_contain_text("Jonas Brandt")
    expect(page.locator(f"#t-{ref}")).to_be_focused()
    expect(page.locator(f"#x-{ref}")).to_be_checked()
    expect(page.locator(f"#x-{ref}")).not_to_have_value(ticket)
    expect(page.locator("#tabs a").first).to_contain_text("51")

    page.keyboard.press("u")
    expect(page.locator("tbody tr")).to_have_count(50)
    expect(page.locator(f"#x-{ref}")).to_be_checked()
    assert page.evaluate("document.activeElement !== document.body")


def test_rows_are_selected_by_key_cleared_and_handed_on_as_seen(
    open_as: OpenAs, unknown_notice: RunFacts, many: Callable[[], None]
) -> None:
    many()
    page = open_as("lin", "/handoffs/")
    expect(page.locator(".bulk")).to_be_hidden()

    for key in ("j", "x", "j", "j", "Shift+X"):
        page.keyboard.press(key)
    expect(page.locator("input[name=case]:checked")).to_have_count(3)
    expect(page.locator("#selected")).to_contain_text("3")
    page.keyboard.press("Escape")
    expect(page.locator("input[name=case]:checked")).to_have_count(0)
    expect(page.locator(".bulk")).to_be_hidden()

    page.keyboard.press("x")
    page.keyboard.press("q")
    expect(page.locator("#bulk-query")).to_be_focused()
    with page.expect_request("**/handoffs/bulk/") as posted:
        page.keyboard.press("Enter")
    assert re.search(r"case=HF-C?\d+%3A\d+", posted.value.post_data or "")
    assert "verb=query_status" in (posted.value.post_data or "")


def test_b24_no_single_key_writes_and_without_them_the_tab_order_is_whole(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.method))
    page.keyboard.press("j")
    for key in "xcuf":
        page.keyboard.press(key)
        page.evaluate("document.activeElement.blur()")

    assert "POST" not in sent
    set_preferences(person=flows.person("maya"), language="en", time_zone="UTC", single_keys=False)
    page.reload()
    expect(page.locator("tbody a[tabindex='-1']")).to_have_count(0)


def test_a_list_that_cannot_be_refreshed_says_so_and_switches_actions_off(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    page.route("**/handoffs/changes*", lambda route: route.fulfill(status=403, body="no"))
    ask_for_news(page)

    expect(page.locator("#stale")).to_contain_text("The list could not be refreshed. You see it as it was at")
    claim = page.get_by_role("button", name="Claim")
    expect(claim).to_have_attribute("aria-disabled", "true")
    claim.click(force=True)
    expect(page.locator("tbody .c-owner")).to_contain_text("Unclaimed")

    page.unroute("**/handoffs/changes*")
    ask_for_news(page)
    expect(page.locator("#stale")).to_be_hidden()
    claim.click()
    expect(page.locator("tbody .c-owner")).to_contain_text("You")


def test_rows_that_take_their_time_are_shown_as_such_and_never_over_data(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")
    held: list[Route] = []
    page.route("**/handoffs/?*", lambda route: held.append(route))

    page.locator("select[name=state]").select_option("any")
    expect(page.locator("#cases.slow")).to_have_attribute("aria-busy", "true")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()

    expect(page.locator("#cases.slow")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/handoffs/\?state=any$"))
    expect(page.locator("#tabs [aria-current]")).to_contain_text("This filter")


def test_a_group_is_unfolded_and_folded_and_says_which(
    open_as: OpenAs, unknown_notice: RunFacts, many: Callable[[], None]
) -> None:
    many()
    page = open_as("maya", "/handoffs/?group=similar")
    toggle = page.locator(".fold")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    expect(page.locator("tr.kid")).to_have_count(2)

    toggle.click()

    expect(page.locator(".fold")).to_have_attribute("aria-expanded", "false")
    expect(page.locator("tr.kid")).to_have_count(0)
    expect(page.locator(".fold")).to_be_focused()
    expect(page.locator(".grph")).to_contain_text("first of 51")


def test_a_group_is_folded_without_javascript_and_the_focus_stays_on_it(
    open_as: OpenAs, unknown_notice: RunFacts, many: Callable[[], None]
) -> None:
    many()
    page = open_as("maya", "/handoffs/?group=similar", java_script_enabled=False)

    page.locator(".fold").click()

    expect(page.locator(".fold")).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".fold:focus")).to_have_count(1)


def test_filters_and_saved_views_work_without_javascript(open_as: OpenAs, unknown_notice: RunFacts) -> None:
    page = open_as("maya", "/handoffs/", java_script_enabled=False)

    page.locator("select[name=tool]").select_option("send_notice")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_text("+ Save view").click()
    page.get_by_label("Name of this view").fill("Notices")
    page.get_by_role("button", name="Save view").click()

    expect(page.locator("#tabs [aria-current]")).to_contain_text("Notices")
    expect(page.locator("#tabs [aria-current]")).to_contain_text("1")


def test_an_unchanged_queue_answers_204(open_as: OpenAs, unknown_notice: RunFacts) -> None:
    page = open_as("maya", "/handoffs/")

    with page.expect_response("**/handoffs/changes*") as answered:
        page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")

    assert answered.value.status == 204
    expect(page.locator("#live")).to_contain_text("Live, checked at")


def test_a_filter_is_in_the_address_and_says_what_it_searched(
    open_as: OpenAs, unknown_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/")

    page.locator("#filter").fill("no such order")

    expect(page.get_by_role("heading", name="Nothing matches “no such order”")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/handoffs/\?q=no\+such\+order$"))


def test_the_first_run_is_told_from_an_empty_view(open_as: OpenAs) -> None:
    page = open_as("maya", "/handoffs/")

    expect(page.get_by_role("heading", name="No handoffs yet")).to_be_visible()
