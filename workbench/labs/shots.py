"""`python -m workbench.labs.shots URL`: writes screenshots of every screen of a running demo.

Light, dark, Chinese and phone, named like the screens, so that a person can lay them beside the design.
Logs in as the cast; reads pages and never posts anything but the login form.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from workbench.labs.cast import LIN, MAYA, Member

QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How the screens are looked at: by whom, in which light, how wide."""

    suffix: str
    who: Member
    size: dict[str, int]
    scheme: str = "light"
    full: bool = False


LOOKS = (
    Look(suffix="", who=MAYA, size=DESK),
    Look(suffix="-full", who=MAYA, size=DESK, full=True),
    Look(suffix="-dark", who=MAYA, size=DESK, scheme="dark"),
    Look(suffix="-zh", who=LIN, size=DESK),
    Look(suffix="-phone", who=MAYA, size=PHONE, full=True),
)


def take(url: str, folder: Path) -> list[Path]:
    """Every screen in every look; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    written: list[Path] = []
    with sync_playwright() as playwright:
        options: dict[str, Any] = {"executable_path": executable} if executable else {}
        browser = playwright.chromium.launch(args=list(QUIET), chromium_sandbox=os.getuid() != 0, **options)
        for look in LOOKS:
            written += _look(browser, url.rstrip("/"), folder, look)
        browser.close()
    return written


def _look(browser: Browser, url: str, folder: Path, look: Look) -> list[Path]:
    context = browser.new_context(viewport=look.size, color_scheme=look.scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/login/")
    page.locator("[name=username]").fill(look.who.username)
    page.locator("[name=password]").fill(look.who.password)
    page.locator("main button").click()
    page.wait_for_url(f"{url}/handoffs/")
    files = []
    for name, path in _screens(page).items():
        page.goto(f"{url}{path}")
        page.wait_for_load_state("networkidle")
        file = folder / f"{name}{look.suffix}.png"
        page.screenshot(path=file, full_page=look.full)
        files.append(file)
    context.close()
    return files


def _screens(page: Page) -> dict[str, str]:
    """The screens by name; cases and runs are the ones that the queue shows, one of each kind."""
    screens = {
        "01-queue": "/handoffs/",
        "01-queue-closed": "/handoffs/?view=closed",
        "01-queue-empty": "/handoffs/?q=nothing+like+this",
        "06-runs": "/runs/",
        "08-freeze": "/freeze/",
        "09-account": "/account/",
        "09-keys": "/help/",
        "09-not-found": "/nowhere/",
    }
    kinds: dict[str, str] = {}
    for row in page.locator("tbody tr").all():
        address = row.locator(".ttl").get_attribute("href") or ""
        kinds.setdefault(row.locator(".why").inner_text()[-40:], urlsplit(address).path)
    for number, path in enumerate(kinds.values(), 1):
        screens[f"02-case-{number}"] = path
    if kinds:
        first = next(iter(kinds.values()))
        screens |= {"02-case-escalate": f"{first}?act=escalate", "05-trail": f"{first}trail/?show=every"}
    return screens


def main() -> int:
    """Take the screenshots; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.labs.shots", description=__doc__)
    parser.add_argument("url", help="where the demo runs")
    parser.add_argument("--into", type=Path, default=Path("shots"), help="the folder to write to")
    arguments = parser.parse_args()
    for file in take(arguments.url, arguments.into):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
