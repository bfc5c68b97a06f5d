"""`python -m workbench.labs.shots [URL] --into DIR`: pictures of every screen of a demo, or of its own.

Light, dark, Chinese and phone, named like the screens, so that a person can lay them beside the design. Logs in as
the demo's people and reads pages; what it posts is the login form, a language, and a selection that is looked at and
not started. With `--act`, and on a demo of its own, people then act for what stands only meanwhile.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from workbench.labs import acted, demo

QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}

type Screens = Mapping[str, str]


def operator_screens(page: Page) -> Screens:
    """What an operator sees: the queue, one case of each kind, a run, the rest."""
    cases = kinds(page)
    screens = {
        "01-queue": "/handoffs/",
        "01-queue-closed": "/handoffs/?view=closed",
        "01-queue-empty": "/handoffs/?q=nothing+like+this",
        **{f"02-case-{name}": path for name, path in cases.items()},
        **set_up(page),
        "08-freeze": "/freeze/",
        "09-account": "/account/",
        "09-keys": "/help/",
        "09-not-found": "/nowhere/",
    }
    for name, path in cases.items():
        if name.startswith("relabel"):
            screens[f"02-case-{name}-retry"] = f"{path}?act=retry.relabel"
            screens[f"02-case-{name}-accept"] = f"{path}?act=mark_acceptable"
    if cases:
        first = next(iter(cases.values()))
        page.goto(f"{address(page)}{first}")
        run = path_of(page.locator(".meta a.plain").get_attribute("href"))
        screens |= {"05-trail": f"{first}trail/?show=every", "06-run": run, "06-run-stop": f"{run}stop/"}
    return {**screens, **settled(page), **plans(page, cases)}


def settled(page: Page) -> Screens:
    """The last case that somebody closed."""
    page.goto(f"{address(page)}/handoffs/?view=closed")
    case = page.locator("tbody .ttl").first
    return {"02-case-closed": path_of(case.get_attribute("href"))} if case.count() else {}


def plans(page: Page, cases: Screens) -> Screens:
    """The plan of a case that can be compensated, if possible as a whole, and one that was carried out."""
    found: dict[str, str] = {}
    for __, path in sorted(cases.items(), key=lambda one: one[0].endswith("compfailed")):
        page.goto(f"{address(page)}{path}plan/")
        if "/plan/pl_" in page.url:
            found["03-plan-preview"] = path_of(page.url)
            break
    page.goto(f"{address(page)}/handoffs/?view=closed")
    for path in [path_of(link.get_attribute("href")) for link in page.locator("tbody .ttl").all()]:
        page.goto(f"{address(page)}{path}")
        ran = page.locator("#case-body a[href*='/plan/pl_']")
        if ran.count():
            found["03-plan-ran"] = path_of(ran.first.get_attribute("href"))
            break
    return found


def lead_screens(page: Page) -> Screens:
    """What a lead sees of many cases at once: the bulks, and a list that was frozen and not started."""
    page.goto(f"{address(page)}/handoffs/")
    for box in page.locator("tbody input[name=case]").all()[:5]:
        box.check()
    page.locator("#bulk-query").click()
    page.wait_for_url("**/handoffs/bulk/*/")
    return {"01-queue-bulk": path_of(page.url), "01-queue-bulks": "/handoffs/bulk/"}


def set_up(page: Page) -> Screens:
    """Runs, workflows, tools and the system: the lists, and of each one that has something to show."""
    page.goto(f"{address(page)}/runs/?workflow=device_rollout")
    long_run = page.locator(".rl .ttl").first
    of_many = {"06-run-long": path_of(long_run.get_attribute("href"))} if long_run.count() else {}
    return {
        "06-runs": "/runs/",
        "06-runs-of-workflow": "/runs/?workflow=order_fulfilment",
        **of_many,
        "06-workflows": "/workflows/",
        "06-workflow": "/workflows/bank_opening/",
        "06-tools": "/tools/",
        "06-tool": "/tools/send_notice/",
        "08-system": "/system/",
    }


def approver_screens(page: Page) -> Screens:
    """What an approver sees: the list, the first sheet, and what it asks for before it is rejected."""
    screens = {"04-signoffs": "/signoffs/"}
    page.goto(f"{address(page)}/signoffs/")
    sheets = page.locator("main a[href^='/signoffs/']").all()
    addresses = [path_of(sheet.get_attribute("href")) for sheet in sheets]
    found = next((one for one in addresses if one.strip("/").count("/") == 1), None)
    return {**screens, "04-signoff": found, "04-signoff-reject": f"{found}#reject"} if found else screens


@dataclass(frozen=True, kw_only=True)
class Look:
    """How screens are looked at: by whom, which of them, in which light and language, how wide."""

    who: str
    screens: Callable[[Page], Screens]
    suffix: str = ""
    size: Mapping[str, int]
    scheme: str = "light"
    full: bool = False
    language: str = ""
    """One that its person does not read; put back afterwards."""
    door: bool = False
    """Whether the login page is taken too."""


def _looks(
    who: str, screens: Callable[[Page], Screens], *, own: str = "en", door: bool = False
) -> tuple[Look, ...]:
    """Every look at the screens of one person, whose own language is `own`."""
    in_english, in_chinese = ("", "zh-hans") if own == "en" else ("en", "")
    given: dict[str, Any] = {"who": who, "screens": screens, "door": door}
    return (
        Look(**given, size=DESK, language=in_english),
        Look(**given, size=DESK, suffix="-full", full=True, language=in_english),
        Look(**given, size=DESK, suffix="-dark", scheme="dark", language=in_english),
        Look(**given, size=DESK, suffix="-zh", language=in_chinese),
        Look(**given, size=PHONE, suffix="-phone", full=True, language=in_english),
    )


LOOKS = (
    *_looks("maya", operator_screens, door=True),
    *_looks("priya", approver_screens),
    *_looks("lin", lead_screens, own="zh-hans"),
)


def kinds(page: Page) -> dict[str, str]:
    """One case of each kind in the queue, named by its title and why it needs a person."""
    page.goto(f"{address(page)}/handoffs/")
    found: dict[str, str] = {}
    for row in page.locator("tbody tr").all():
        link = row.locator(".ttl")
        name = "-".join(re.findall(r"[a-z]+", link.inner_text().lower())[:3])
        steps = row.locator(".c-steps").inner_html()
        trouble = next(
            (word for word in ("compfailed", "unk", "bad") if f'"{word}' in steps or f"m-{word}" in steps), ""
        )
        found.setdefault(
            "-".join(part for part in (name, trouble) if part), path_of(link.get_attribute("href"))
        )
    return found


def path_of(href: str | None) -> str:
    """The path of an address."""
    return urlsplit(href or "").path


def address(page: Page) -> str:
    """Where the demo is."""
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}"


def take(url: str, folder: Path, *, act: bool = False) -> list[Path]:
    """Every screen in every look, and what stands only while people act; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    written: list[Path] = []
    with sync_playwright() as playwright:
        options: dict[str, Any] = {"executable_path": executable} if executable else {}
        browser = playwright.chromium.launch(args=list(QUIET), chromium_sandbox=os.getuid() != 0, **options)
        known: dict[str, Screens] = {}
        for look in LOOKS:
            written += look_at(browser, url.rstrip("/"), folder, look, known)
        if act:
            written += _act(browser, url.rstrip("/"), folder)
        browser.close()
    return written


def look_at(browser: Browser, url: str, folder: Path, look: Look, known: dict[str, Screens]) -> list[Path]:
    """One look at its screens; `known` keeps what was chosen, so that every look has the same names."""
    tongue = "zh-CN" if look.suffix == "-zh" else "en-GB"
    context = browser.new_context(viewport=dict(look.size), color_scheme=look.scheme, locale=tongue)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/login/")
    door = [_picture(page, folder / f"09-login{look.suffix}.png", look)] if look.door else []
    _log_in(page, look.who)
    own = _read(page, url, look.language) if look.language else ""
    try:
        return door + _pictures(page, url, folder, look, known)
    finally:
        if own:
            _read(page, url, own)
        context.close()


def _act(browser: Browser, url: str, folder: Path) -> list[Path]:
    """People act, in English as far as they read it; each state is taken without another load of its page."""

    def person(who: str) -> Page:
        page = browser.new_context(viewport=DESK, locale="en-GB").new_page()  # type: ignore[arg-type]
        page.goto(f"{url}/login/")
        _log_in(page, who)
        return page

    def taken(page: Page, name: str) -> list[Path]:
        files = []
        for look in (one for one in LOOKS if one.who == "maya" and one.suffix in ("", "-dark", "-phone")):
            page.set_viewport_size(look.size)  # type: ignore[arg-type]
            page.emulate_media(color_scheme=look.scheme)  # type: ignore[arg-type]
            files.append(_picture(page, folder / f"{name}{look.suffix}.png", look))
        page.set_viewport_size(DESK)  # type: ignore[arg-type]
        return files

    maya, jonas, lin, ada = (person(who) for who in ("maya", "jonas", "lin", "ada"))
    cases = kinds(maya)
    stale = next(path for name, path in cases.items() if name.endswith("-bad"))
    files = acted.conflict(maya, jonas, f"{url}{stale}", taken)
    plan = plans(maya, cases).get("03-plan-preview")
    if plan:
        files += acted.void(maya, jonas, f"{url}{plan}", taken)
        files += acted.running(maya, f"{url}{plans(maya, cases)['03-plan-preview']}", taken)
    files += acted.many(lin, url, taken)
    ada.goto(f"{url}/tools/")
    files += taken(ada, "09-forbidden")
    return files + acted.frozen(maya, lin, ada, url, taken)


def _log_in(page: Page, who: str) -> None:
    page.locator("[name=username]").fill(who)
    page.locator("[name=password]").fill(f"demo-{who}")  # the demo prints these itself
    page.locator("main button").click()
    page.wait_for_url(lambda at: "/login/" not in at)


def _pictures(page: Page, url: str, folder: Path, look: Look, known: dict[str, Screens]) -> list[Path]:
    files = []
    asked = look.screens.__name__
    if asked not in known:
        known[asked] = look.screens(page)
    for name, path in known[asked].items():
        page.goto(f"{url}{path}", wait_until="load")
        opener = page.locator(f"[data-dialog='{urlsplit(path).fragment}']:visible")
        if opener.count():
            opener.first.click()
        files.append(_picture(page, folder / f"{name}{look.suffix}.png", look))
    return files


def _picture(page: Page, file: Path, look: Look) -> Path:
    page.evaluate("document.fonts.ready")
    page.screenshot(path=file, full_page=look.full)
    return file


def _read(page: Page, url: str, language: str) -> str:
    """Have the person of this page read another language; returns the one before."""
    page.goto(f"{url}/account/")
    choice = page.locator("select[name=language]")
    before = choice.input_value()
    choice.select_option(language)
    page.locator("main form button").first.click()
    page.wait_for_url("**/account/?kept=1")
    return before


@contextmanager
def of_its_own() -> Iterator[str]:
    """A demo whose story has been told, on data that go with it; its address."""
    data = Path(tempfile.mkdtemp(prefix="amends-shots-"))
    try:
        with demo.Demo(data) as running:
            from workbench.labs import cast, story

            cast.load()
            running.wait_until_ready()
            running.start_working()
            story.load(demo.say)
            yield running.web_url
    finally:
        shutil.rmtree(data, ignore_errors=True)


def main() -> int:
    """Take the pictures; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.labs.shots", description=__doc__)
    parser.add_argument("url", nargs="?", help="where a demo runs; one is started for the pictures otherwise")
    parser.add_argument("--into", type=Path, default=Path("shots"), help="the folder to write to")
    parser.add_argument("--act", action="store_true", help="let people act on the demo for more pictures")
    arguments = parser.parse_args()
    given = arguments.url
    with nullcontext(given) if given else of_its_own() as url:
        for file in take(url, arguments.into, act=arguments.act or not given):
            print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
