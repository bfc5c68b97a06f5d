"""The pictures that are laid beside the design: every screen that the product has just now is found and taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from tests.browser.places import Places
from tests.conftest import Simulator
from workbench.labs import shots
from workbench.labs.shots import Look, Screens

WANTED = ("01-queue", "02-case-closed", "06-run-stop", "04-signoffs", "04-signoff", "04-signoff-reject")


def only(screens: Callable[[Page], Screens]) -> Callable[[Page], Screens]:
    """A few of these screens; the others take long and are no different."""
    return lambda page: {name: path for name, path in screens(page).items() if name in WANTED}


def test_the_login_page_a_closed_case_a_stop_and_a_rejection_are_taken_too(
    workplace: Simulator, server: LiveServer, browser: Browser, tmp_path: Path
) -> None:
    places = Places(workplace)
    for path in ("{closed}", "{case}", "{sheet}"):
        places.address(path)
    operator = Look(who="maya", screens=only(shots.operator_screens), size=shots.PHONE, door=True)
    approver = Look(who="priya", screens=only(shots.approver_screens), size=shots.DESK, suffix="-dark")

    taken = [
        file
        for look in (operator, approver)
        for file in shots.look_at(browser, server.url, tmp_path, look, {})
    ]

    assert [file.stem for file in taken] == [
        *("09-login", "01-queue", "06-run-stop", "02-case-closed"),
        *("04-signoffs-dark", "04-signoff-dark", "04-signoff-reject-dark"),
    ]
    assert (tmp_path / "04-signoff-reject-dark.png").read_bytes() != (
        tmp_path / "04-signoff-dark.png"
    ).read_bytes()
