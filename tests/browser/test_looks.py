"""What every page keeps to: no accessibility violation, no sideways scroll, no inline script or style."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Request, Response, expect

from sagas.facts import RunFacts
from tests.browser.conftest import OpenAs
from tests.browser.places import Places
from tests.conftest import Simulator

PHONE = {"viewport": {"width": 320, "height": 640}}
PARTS = {
    "cases": (
        *("/handoffs/", "/handoffs/?group=similar&risk=low", "{case}", "{case}trail/"),
        *("{plan}", "{halfway}", "{closed}"),
    ),
    "many at once": ("/handoffs/bulk/", "{list}", "{bulk}"),
    "signoffs and runs": ("/signoffs/", "{sheet}", "/runs/", "{run}", "{run}stop/"),
    "the rest": (
        *("/workflows/", "/workflows/orders/", "/tools/", "/tools/send_notice/", "/system/"),
        *("/freeze/", "/account/", "/help/", "/nowhere/", "/login/"),
    ),
}
"""Every page; see `tests.browser.places` for what stands in braces."""
ALL = pytest.mark.looks
"""On what `make looks` plays beyond the sample that is part of `make test`."""
SAMPLE = (("maya", "light", "/handoffs/"), ("maya", "dark", "{case}?act=escalate"))
WHOLE = tuple(
    pytest.param(who, scheme, path, marks=[] if (who, scheme, path) in SAMPLE else ALL)
    for who in ("maya", "lin")
    for scheme in ("light", "dark")
    for part in PARTS.values()
    for path in part
)
TONGUES = {"maya": "en-GB", "lin": "zh-CN"}
"""What a browser asks for before anybody is known: the language of the login page."""
LIGHT = 150_000
"""Bytes that a page and everything it brings along may weigh."""
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.fixture
def places(workplace: Simulator) -> Places:
    return Places(workplace)


def leave(page: Page) -> None:
    """The same page for somebody who has not logged in, which is the login page."""
    page.context.clear_cookies()
    page.reload()
    expect(page.locator("input[name=password]")).to_be_visible()


def faults(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds wrong on the page as it stands."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [(rule["id"], [node["html"][:160] for node in rule["nodes"]]) for rule in found]


@pytest.mark.parametrize("part", [pytest.param(part, marks=[] if part == "cases" else ALL) for part in PARTS])
def test_b26_no_page_scrolls_sideways_at_320_pixels(open_as: OpenAs, places: Places, part: str) -> None:
    page = open_as("maya", "/help/", **PHONE)
    base = page.url.removesuffix("/help/")
    wide = []
    for path in PARTS[part]:
        page.goto(base + places.address(path))
        if path == "/login/":
            leave(page)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(path)
    assert wide == []


@pytest.mark.parametrize(("who", "scheme", "path"), WHOLE)
def test_b25_axe_finds_nothing(open_as: OpenAs, places: Places, who: str, scheme: str, path: str) -> None:
    page = open_as(who, places.address(path), color_scheme=scheme, locale=TONGUES[who])
    if path == "/login/":
        leave(page)
    expect(page.get_by_role("main")).to_be_visible()

    assert faults(page) == []


def test_b29_pages_come_under_a_strict_policy_and_weigh_little(open_as: OpenAs, case: str) -> None:
    page = open_as("maya", "/login/")

    answer, weight = weighed(page, page.url.replace("/handoffs/", case))

    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    expect(page.locator("[style], script:not([src]), style")).to_have_count(0)
    assert sum(weight.values()) < LIGHT, weight


def test_b29_a_queue_of_fifty_rows_weighs_little(
    open_as: OpenAs, unknown_notice: RunFacts, many: Callable[[], None]
) -> None:
    many()
    page = open_as("maya", "/account/")

    __, weight = weighed(page, page.url.replace("/account/", "/handoffs/"))

    expect(page.locator("tbody tr")).to_have_count(50)
    assert sum(weight.values()) < LIGHT, weight


def weighed(page: Page, address: str) -> tuple[Response, dict[str, int]]:
    """Open a page as somebody who has never been here; bytes over the wire of everything that it brings along.

    Static files are counted as production sends them: compressed when they were collected.
    """
    page.goto("about:blank")
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    asked: list[Request] = []
    page.on("requestfinished", lambda one: asked.append(one))
    answer = page.goto(address)
    assert answer is not None
    weight = {}
    for one in asked:
        answered = one.response()
        assert answered is not None
        static = urlsplit(one.url).path.startswith("/static/")
        weight[one.url] = len(gzip.compress(answered.body())) if static else one.sizes()["responseBodySize"]
    assert any("htmx" in url for url in weight)
    assert weight[address] > 1000
    return answer, weight


def test_the_page_speaks_the_readers_language(open_as: OpenAs, case: str) -> None:
    page = open_as("lin", case)

    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.get_by_role("heading", name="当前事实")).to_be_visible()
    expect(page.locator(".keys")).to_contain_text("Asia/Shanghai")


def test_the_help_sheet_opens_on_a_question_mark_and_gives_focus_back(open_as: OpenAs) -> None:
    page = open_as("maya", "/handoffs/")

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.locator("dialog[open]")).to_have_count(0)
