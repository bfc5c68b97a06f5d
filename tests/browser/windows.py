"""Windows of the browser that are used by one test after the other: opening one costs more than what most tests do in it.

What a test leaves in one must not be seen by the next: cookies, storage, routes, listeners and size are put back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urljoin

from playwright.sync_api import Browser, Error, Page, ViewportSize

WIDE: ViewportSize = {"width": 1440, "height": 900}
PATIENCE_MS = 45_000
"""Ends what hangs, on a machine however busy."""
EMPTY = "() => { sessionStorage.clear(); localStorage.clear(); }"


class Windows:
    """Opens windows of the kinds that are asked for and keeps them for whoever asks next."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[Page]] = {}

    def take(self, **options: Any) -> Window:
        """A window that knows nobody; `options` are those of a browser's context."""
        options = {"viewport": WIDE, **options}
        free = self._free.setdefault(json.dumps(options, sort_keys=True), [])
        page = free.pop() if free else self._browser.new_context(**options).new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.set_viewport_size(cast("ViewportSize", options["viewport"]))
        return Window(page, free, storing=bool(options.get("java_script_enabled", True)))

    def close(self) -> None:
        """Close those that are kept."""
        for free in self._free.values():
            for page in free:
                page.context.close()


class Window:
    """One that is in use."""

    def __init__(self, page: Page, free: list[Page], *, storing: bool) -> None:
        self.page, self._free, self._storing = page, free, storing
        self._listening: list[tuple[Any, Callable[..., Any]]] = []

    def listen(self, event: Any, listener: Callable[..., Any]) -> None:
        """Have something done at every event of this kind until the window is left."""
        self.page.on(event, listener)
        self._listening.append((event, listener))

    def leave(self, *, used_up: bool) -> None:
        """Give it back, empty; one that cannot be emptied, or is used up, is closed."""
        page, context = self.page, self.page.context
        for event, listener in self._listening:
            page.remove_listener(event, listener)
        try:
            if used_up or context.pages != [page]:
                raise Error("not to be used again")
            page.unroute_all(behavior="ignoreErrors")
            if self._storing and page.url.startswith("http"):
                # A page of the same place that does nothing: one that is just being left would never answer.
                page.goto(urljoin(page.url, "/livez"))
                page.evaluate(EMPTY)
            page.goto("about:blank")
            context.clear_cookies()
        except Error:
            context.close()
        else:
            self._free.append(page)
