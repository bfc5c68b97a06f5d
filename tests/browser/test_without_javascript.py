"""Everything works with forms and links alone, and every refusal says its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections
from playwright.sync_api import expect
from pytest_django import Settings

from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs, answered_with, posts, ref_in
from tests.conftest import Clock
from tests.integration.workbench import flows
from workbench.commands import Result

REASON = "The carrier confirmed by phone that it went out."
PLAIN: dict[str, Any] = {"java_script_enabled": False}


def test_the_whole_way_from_the_queue_to_a_result(
    open_as: OpenAs, refused_case: str, rejected_notice: RunFacts
) -> None:
    page = open_as("maya", "/handoffs/", **PLAIN)
    page.get_by_role("button", name=f"Claim {ref_in(refused_case)}").click()
    expect(page.locator("#holder")).to_contain_text("Yours since")

    page.get_by_text("Retry send_notice", exact=True).click()
    page.get_by_role("button", name="Show what it would do").click()
    expect(page.get_by_role("heading", name="Exactly what will run")).to_be_visible()
    page.locator("#f-reason").fill(REASON)
    page.locator("#go").get_by_role("button", name="Retry send_notice").click()

    expect(page.locator("#result")).to_contain_text("Accepted at")
    flows.drive_until_still(rejected_notice.ref)
    page.goto(page.url.replace("act/", ""))
    expect(page.locator("#case-body")).to_contain_text("failed once more, the case is open again")


def test_a_short_reason_says_what_to_fix(open_as: OpenAs, refused_case: str) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate", **PLAIN)

    page.locator("#f-reason").fill("short")
    page.locator("#go").get_by_role("button", name="Escalate").click()

    expect(page.locator("#result")).to_contain_text("Nothing was sent. 1 thing to fix:")
    expect(page.locator("#f-reason")).to_have_value("short")


def test_a_stale_page_keeps_the_draft_on_the_way_to_the_new_version(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate", **PLAIN)
    page.locator("#f-reason").fill(REASON)
    assert flows.Desk("lin").run("claim", ref_in(refused_case), "meanwhile").accepted
    assert flows.Desk("lin").run("release", ref_in(refused_case), "free-again").accepted

    page.locator("#go").get_by_role("button", name="Escalate").click()
    expect(page.locator("#result")).to_contain_text("Nothing was sent.")
    page.get_by_role("button", name="Use version").click()

    expect(page.locator("#f-reason")).to_have_value(REASON)
    page.locator("#go").get_by_role("button", name="Escalate").click()
    expect(page.locator("#result")).to_contain_text("Escalated at")


@pytest.mark.requirement("S1-20")
@pytest.mark.parametrize(
    ("who", "status", "fields", "words"),
    [
        ("oskar", 403, {"verb": "escalate", "reason": REASON}, "does not include this"),
        ("maya", 409, {"verb": "resume", "reason": REASON, "preview_id": "x"}, "Nothing was sent"),
        (
            "maya",
            410,
            {"verb": "escalate", "reason": REASON, "preview_id": "gone"},
            "This preview has expired",
        ),
        ("maya", 422, {"verb": "escalate", "reason": REASON}, "Look at the preview first"),
    ],
)
def test_b27_every_refusal_says_its_words(
    open_as: OpenAs, refused_case: str, who: str, status: int, fields: dict[str, str], words: str
) -> None:
    page = open_as(who, "/account/")

    answered = posts(page, f"{refused_case}act/", command_id=f"c-{status}", **fields)

    assert answered == status
    assert words in answered_with(page)


def test_b27_a_freeze_answers_423(open_as: OpenAs, refused_case: str) -> None:
    reason = "Provider reports duplicates."
    assert flows.Desk("ada").run("freeze", "", "f", scope="forward", applies_to="all", reason=reason).accepted
    page = open_as("maya", "/account/")

    answered = posts(
        page,
        f"{refused_case}act/",
        verb="retry",
        step="send_notice",
        reason=REASON,
        command_id="c",
        preview_id="x",
    )

    assert answered == 423
    assert reason in answered_with(page)


def test_b27_a_page_that_does_not_exist_says_so(open_as: OpenAs) -> None:
    page = open_as("maya", "/handoffs/HF-0/", **PLAIN)

    expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()


def test_freeze_and_lift_with_forms(open_as: OpenAs) -> None:
    page = open_as("maya", "/freeze/", **PLAIN)
    page.locator("#f-reason").fill("Provider reports duplicate postings.")
    page.get_by_label("Where").last.fill("tool:no_such_tool")
    page.get_by_role("button", name="Count again").click()
    expect(page.locator("#stops")).to_have_text("There is no such place: this would stop nothing.")
    expect(page.locator("#f-reason")).to_have_value("Provider reports duplicate postings.")
    page.get_by_role("button", name="Freeze now").click()
    expect(page.get_by_text("No contract of a tool named no_such_tool is published.").first).to_be_visible()
    page.get_by_label("Where").last.fill("all")
    page.get_by_role("button", name="Freeze now").click()
    expect(page.locator(".freeze")).to_contain_text("All forward calls are frozen")
    expect(page.get_by_text("These roles can do it: lead, admin.")).to_be_visible()

    lead = open_as("ada", "/freeze/", **PLAIN)
    lead.locator("#f-reason").first.fill("The provider has fixed it.")
    lead.get_by_role("button", name="Ask to lift the freeze").click()
    expect(lead.get_by_text("You asked to lift this freeze.")).to_be_visible()
    expect(lead.locator(".freeze")).to_contain_text("All forward calls are frozen")

    second = open_as("lin", "/freeze/", **PLAIN)
    second.locator("#f-reason").first.fill("The provider has fixed it.")
    second.get_by_role("button", name="作为第二个人解除冻结").click()  # she reads Chinese

    expect(second.locator(".freeze")).to_have_count(0)


def test_the_login_page_refuses_without_saying_which_was_wrong(open_as: OpenAs) -> None:
    page = open_as("maya", "/handoffs/", **PLAIN)
    page.locator(".rail").get_by_role("button", name="Log out").click()
    page.get_by_label("User name").fill("maya")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("This name and password do not fit.")

    page.get_by_label("Password").fill("demo-maya")
    page.get_by_role("main").get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", name="Handoffs", level=1)).to_be_visible()


@pytest.mark.requirement("S1-20")
def test_b27_every_status_renders_its_words_through_htmx_and_focus_is_kept(
    open_as: OpenAs, refused_case: str
) -> None:
    page = open_as("maya", refused_case)
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status) if "/act/" in answer.url else None)
    ask = """async ([path, values]) => {
        const token = document.querySelector('[name=csrfmiddlewaretoken]').value;
        await htmx.ajax('POST', path, {
            target: '#case-body', swap: 'morph:innerHTML', values: {...values, csrfmiddlewaretoken: token},
        });
    }"""

    def told(words_: str, status: int, **values: str) -> None:
        page.evaluate(ask, [f"{refused_case}act/", {"reason": REASON, "command_id": f"h-{status}", **values}])
        expect(page.locator("#result").first).to_contain_text(words_)
        assert statuses[-1] == status
        expect(page.locator("body")).not_to_be_focused()

    told("Look at the preview first", 422, verb="escalate")
    told("This preview has expired", 410, verb="escalate", preview_id="gone")
    told("Nothing was sent.", 409, verb="resume", preview_id="x")
    told("does not include this", 403, verb="skip_compensation", step="create_shipment")
    frozen = "Provider reports duplicates."
    assert flows.Desk("ada").run("freeze", "", "f", scope="forward", applies_to="all", reason=frozen).accepted
    told(frozen, 423, verb="retry", step="send_notice", preview_id="x")


@pytest.mark.requirement("S1-20")
@pytest.mark.parametrize("script", [True, False])
def test_b27_whoever_orders_faster_than_hands_can_is_told_to_wait_and_keeps_the_draft(
    open_as: OpenAs, case: str, settings: Settings, clock_of_tests: Clock, script: bool
) -> None:
    settings.COMMANDS_A_MINUTE = 2
    page = open_as("maya", case, java_script_enabled=script)
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status) if "/act/" in answer.url else None)

    def remark(text: str) -> None:
        page.locator("#comment").fill(text)
        page.get_by_role("button", name="Comment").click()

    for text in ("The carrier is on the phone.", "They call back at noon."):
        remark(text)
        expect(page.locator("#feed .say").filter(has_text=text)).to_be_visible()
    remark("They have called back.")

    told = page.locator("#result")
    expect(told).to_contain_text(
        re.compile(r"Nothing was sent\. More than 2 commands within a minute\. Wait \d+ s\.")
    )
    assert statuses[-1] == 429
    expect(page.locator("#comment")).to_have_value("They have called back.")
    expect(page.locator("#feed .say").filter(has_text="They have called back.")).to_have_count(0)
    if script:
        expect(told).to_be_focused()

    clock_of_tests.put_forward(61)
    page.get_by_role("button", name="Comment").click()
    expect(page.locator("#feed .say").filter(has_text="They have called back.")).to_be_visible()


@pytest.mark.requirement("S1-20")
@pytest.mark.parametrize("script", [True, False])
def test_b27_an_error_of_our_own_has_a_number_and_nothing_that_was_written_is_lost(
    open_as: OpenAs, refused_case: str, monkeypatch: pytest.MonkeyPatch, script: bool
) -> None:
    def fails(**_order: object) -> Result:
        raise ZeroDivisionError

    page = open_as("maya", f"{refused_case}?act=escalate", java_script_enabled=script)
    page.locator("#f-reason").fill(REASON)
    monkeypatch.setattr("workbench.web.views.case.dispatch", fails)
    run = page.locator("#go").get_by_role("button", name="Escalate")
    with page.expect_response("**/act/") as answered:
        run.click()

    assert answered.value.status == 500
    told = page.locator("#result" if script else "main")
    expect(told).to_contain_text("That did not work, and we do not know why")
    expect(told).to_contain_text(re.compile(r"Error [0-9a-f]{8}\b"))
    expect(page.locator("body")).not_to_contain_text("ZeroDivisionError")
    if script:
        expect(told).to_be_focused()
        expect(page.locator("#f-reason")).to_have_value(REASON)
        page.reload()
    else:
        page.go_back()
    expect(page.locator("#f-reason")).to_have_value(REASON)

    monkeypatch.undo()
    run.click()
    expect(page.locator("#result")).to_contain_text("Escalated at")


@contextmanager
def no_database() -> Iterator[None]:
    """The address of the database leads nowhere, and whoever is connected is cut off."""
    given = connections.databases["default"]
    kept = given["HOST"]
    connection.ensure_connection()
    given["HOST"] = "/nowhere"
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        connection.close()
        yield
    finally:
        given["HOST"] = kept


@pytest.mark.requirement("S1-20")
@pytest.mark.parametrize("script", [True, False])
def test_b27_without_its_database_the_workbench_says_so_once_and_goes_on_when_it_is_back(
    open_as: OpenAs, refused_case: str, script: bool
) -> None:
    page = open_as("maya", f"{refused_case}?act=escalate", java_script_enabled=script)
    page.locator("#f-reason").fill(REASON)
    run = page.locator("#go").get_by_role("button", name="Escalate")

    with no_database():
        for _ in range(2 if script else 1):
            with page.expect_response("**/act/") as answered:
                run.click()
            assert answered.value.status == 503
        told = page.locator("#result" if script else "main")
        expect(told).to_contain_text("The database does not answer")
        expect(told).to_contain_text("read the case again before you repeat it")
        expect(told).to_contain_text(re.compile(r"Error [0-9a-f]{8}\b"))
        if script:
            expect(told).to_be_focused()
            with page.expect_response("**/changes/**"):
                page.evaluate("document.querySelector('#poll').dispatchEvent(new CustomEvent('amends:tick'))")
            expect(page.locator("#live")).to_have_class(re.compile(r"\boff\b"))
            expect(told).to_have_count(1)
    if not script:
        page.go_back()
    expect(page.locator("#f-reason")).to_have_value(REASON)

    run.click()
    expect(page.locator("#result")).to_contain_text("Escalated at")
