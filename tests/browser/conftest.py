"""Chromium against the real pages, commands and engine; the outside world is simulated."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from sagas.facts import RunFacts
from tests.browser.windows import PATIENCE_MS, Window, Windows
from tests.conftest import Simulator
from tests.integration.web.test_cost import copies
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import (
    closed_case,
    ref_of,
    rejected_notice,
    unknown_notice,
    workplace,
)

__all__ = ["closed_case", "rejected_notice", "unknown_notice", "workplace"]

# Playwright's synchronous interface runs an event loop of its own in this thread.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

QUIET = (
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--disable-gpu", "--disable-quic"),
    # Fewer processes to start for each page: nothing here is kept from anything else on the same machine.
    *("--in-process-gpu", "--disable-site-isolation-trials", "--renderer-process-limit=1"),
)
# The browser reports these answers of ours itself; they are part of what is tested.
EXPECTED = (
    "status of 403",
    "status of 404",
    "status of 409",
    "status of 410",
    "status of 422",
    "status of 423",
    "status of 428",
    "status of 429",
    "status of 500",
    "status of 503",
    # A poll gives way to what a person does, and is cut off when they leave the page.
    "htmx:afterRequest, [object HTMLDivElement]",
    "htmx:sendAbort",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What fails here is played once more (decision 0026)."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The distribution's Chromium where there is one, else the one that Playwright installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    args = {**browser_type_launch_args, "args": list(QUIET), "chromium_sandbox": os.getuid() != 0}
    return {**args, "executable_path": found} if found else args


@pytest.fixture(scope="session")
def server(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[LiveServer]:
    """The web process, in a thread; data lives only as long as a test."""
    with django_db_blocker.unblock():
        running = LiveServer("127.0.0.1")
    yield running
    running.stop()


type OpenAs = Callable[..., Page]


@pytest.fixture(scope="session")
def windows(browser: Browser) -> Iterator[Windows]:
    kept = Windows(browser)
    yield kept
    kept.close()


@pytest.fixture
def open_as(workplace: Simulator, server: LiveServer, windows: Windows) -> Iterator[OpenAs]:
    """Opens a page as one of the cast; the console has to stay empty and no request may leave this machine.

    `used_up`: what the test does to its window cannot be taken back.
    """
    opened: list[tuple[Window, bool]] = []
    heard: list[str] = []

    def listen(window: Window) -> None:
        window.listen(
            "console",
            lambda message: heard.append(message.text) if message.type in ("error", "warning") else None,
        )
        window.listen("pageerror", lambda error: heard.append(str(error)))
        window.listen(
            "request", lambda asked: None if asked.url.startswith(server.url) else heard.append(asked.url)
        )

    def open_(username: str, path: str, *, used_up: bool = False, **context: Any) -> Page:
        client = Client()
        client.force_login(flows.person(username))
        window = windows.take(**context)
        opened.append((window, used_up))
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        page = window.page
        page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": server.url}])
        listen(window)
        page.goto(server.url + path)
        return page

    expect.set_options(timeout=PATIENCE_MS)
    yield open_
    for window, used_up in opened:
        window.leave(used_up=used_up)
    assert [line for line in heard if not any(known in line for known in EXPECTED)] == []


@pytest.fixture
def case(unknown_notice: RunFacts) -> str:
    """The address of a case whose notice got no answer."""
    return f"/handoffs/{ref_of(unknown_notice)}/"


@pytest.fixture
def refused_case(rejected_notice: RunFacts) -> str:
    """The address of a case whose notice was refused."""
    return f"/handoffs/{ref_of(rejected_notice)}/"


@pytest.fixture
def many(fresh_database: str) -> Callable[[], None]:
    """Fifty cases more in one commit, half of them due before all others; copied past the guards by the owner."""

    def arrive() -> None:
        with psycopg.connect(fresh_database) as owner:
            owner.execute("SET session_replication_role = replica")
            run = {"id": "one.id + n", "ref": "'run_copy_' || n", "start_key": "'copy-' || n"}
            copies(owner, "sagas_run", 50, run)
            again = {
                "id": "one.id + n",
                "ref": "'HF-C' || n",
                "run_id": "one.run_id + n",
                "due_at": "one.due_at + (n - 25) * interval '1 minute'",
                "changed_xid": "pg_current_xact_id()::text::bigint",
            }
            copies(owner, "sagas_handoff", 50, again)

    return arrive


def ref_in(path: str) -> str:
    """The reference in a case's address."""
    return Path(path).name


def posts(page: Page, path: str, **fields: str) -> int:
    """Post a form as a person without the button would; the status of the page that comes back."""
    status: int = page.evaluate(
        """async ([path, fields]) => {
            const token = document.querySelector('[name=csrfmiddlewaretoken]').value;
            const body = new URLSearchParams({...fields, csrfmiddlewaretoken: token});
            const answer = await fetch(path, {method: 'POST', body});
            document.body.dataset.answer = await answer.text();
            return answer.status;
        }""",
        [path, fields],
    )
    return status


def answered_with(page: Page) -> str:
    """The text of the result, or of the whole page, that the last of `posts` was answered with."""
    text: str = page.evaluate(
        """() => {
            const answer = new DOMParser().parseFromString(document.body.dataset.answer, 'text/html');
            return (answer.querySelector('#result') ?? answer.body).textContent;
        }"""
    )
    return re.sub(r"\s+", " ", text).strip()


def now_open(page: Page, verb: str, step: str = "") -> None:
    """Wait until the preview of this action is shown."""
    expect(page.locator("#run input[name=verb]")).to_have_value(verb)
    expect(page.locator("#run input[name=step]")).to_have_value(step)
