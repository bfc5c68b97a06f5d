"""A person at the pages, without JavaScript: follows links, fills forms, reads what comes back. Plain HTTP only."""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin

_VOID = {"input", "br", "img", "meta", "link", "hr"}


@dataclass
class Form:
    """A form as it stands on a page: where it goes, what its fields hold and which of its boxes are ticked."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    ticked: dict[str, list[str]] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Page:
    """What a person sees: status, address, forms by id (or address), texts by id, actions and why some are off."""

    status: int
    url: str
    forms: dict[str, Form] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    @property
    def result(self) -> str:
        """The result line, "" if there is none."""
        return self.texts.get("result", "")


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self._form: Form | None = None
        self._open: list[tuple[str, str]] = []
        self._area: str = ""
        self._select: str = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in _VOID:
            self._open.append((tag, given.get("id", "")))
        if tag == "form":
            self._form = Form(action=given.get("action", ""))
            name = given.get("id") or given.get("action") or f"form{len(self.page.forms)}"
            several = name in self.page.forms
            self.page.forms[f"{name} {len(self.page.forms)}" if several else name] = self._form
        elif tag == "a" and given.get("href"):
            self.page.links.append(given["href"])
        self._handle_field(tag, given)

    def _handle_field(self, tag: str, given: dict[str, str]) -> None:
        name = given.get("name", "")
        if tag == "input" and name == "act":
            self.page.acts.append(given.get("value", ""))
        if self._form is None or (not name and tag != "option"):
            return
        if tag == "input":
            if given.get("type") in ("radio", "checkbox") and "checked" not in given:
                return
            if given.get("type") == "checkbox":
                self._form.ticked.setdefault(name, []).append(given.get("value", "on"))
            else:
                self._form.fields[name] = given.get("value", "")
        elif tag == "textarea":
            self._area = name
            self._form.fields[name] = ""
        elif tag == "select":
            self._select = name
            self._form.choices[name] = []
        elif tag == "option" and self._select:
            value = given.get("value", "")
            self._form.choices[self._select].append(value)
            if "selected" in given or self._select not in self._form.fields:
                self._form.fields[self._select] = value

    def handle_endtag(self, tag: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == tag:
                del self._open[index:]
                break
        if tag == "form":
            self._form = None
        elif tag == "textarea":
            self._area = ""
        elif tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._area and self._form is not None:
            self._form.fields[self._area] += data
        for _, name in self._open:
            if name:
                self.page.texts[name] = f"{self.page.texts.get(name, '')} {data}".strip()


def read(text: str, *, status: int, url: str) -> Page:
    """What a person sees of a page of HTML."""
    page = Page(status=status, url=url)
    _Reader(page).feed(text)
    return page


class Visitor:
    """One person with a session."""

    def __init__(self, web_url: str) -> None:
        self._url = web_url
        self._jar = http.cookiejar.CookieJar()
        cookies = urllib.request.HTTPCookieProcessor(self._jar)
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)

    def get(self, path: str) -> Page:
        """Open a page; a refusal is a page too."""
        return self._open(urllib.request.Request(urljoin(self._url, path)))  # noqa: S310  our own loopback

    def post(self, form: Form, **filled: str) -> Page:
        """Send a form with some fields filled in."""
        pairs = [
            *({**form.fields, **filled}).items(),
            *((name, box) for name in form.ticked for box in form.ticked[name]),
        ]
        body = urlencode(pairs).encode()
        request = urllib.request.Request(  # noqa: S310  our own loopback
            urljoin(self._url, form.action), data=body, headers={"Referer": self._url}
        )
        return self._open(request)

    def log_in(self, username: str, password: str) -> Page:
        """Log in through the page. Raises `PermissionError` if that is refused."""
        page = self.get("login/")
        form = next(iter(page.forms.values()))
        form.action = form.action or "/login/"
        page = self.post(form, username=username, password=password)
        if page.url.partition("?")[0].rstrip("/").endswith("login"):
            raise PermissionError(f"{username} could not log in")
        return page

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Use the REST interface in this session: status and document. A refusal is an answer too."""
        csrf = next((cookie.value or "" for cookie in self._jar if cookie.name.endswith("csrftoken")), "")
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(  # noqa: S310  our own loopback
            urljoin(self._url, path),
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Referer": self._url, "X-CSRFToken": csrf, **given},
            method=method,
        )
        try:
            answer: Any = self._opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            content = answer.read()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(content or b"null")
        return answer.status, None

    def _open(self, request: urllib.request.Request) -> Page:
        answer: Any
        try:
            answer = self._opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return read(answer.read().decode(), status=answer.status, url=answer.url)
