"""A case on paper: what is read, without what is pressed, and nothing left folded."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenAs


def test_a_printed_case_shows_every_step_unfolded_and_nothing_to_press(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", case, used_up=True)
    folded = page.locator("details.step:not([open]) .body")
    expect(folded.first).to_be_hidden()

    page.emulate_media(media="print")

    for body in folded.all():
        expect(body).to_be_visible()
    for chrome in (".rail", ".top", ".keys", "#decide"):
        expect(page.locator(chrome).first).to_be_hidden()
    expect(page.locator("main form:visible")).to_have_count(0)
    expect(page.get_by_role("heading", name="What is true now")).to_be_visible()
