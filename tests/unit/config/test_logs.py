"""Log lines as machines read them: one event a line, no secret in it wherever it came from."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.stdlib import ProcessorFormatter

from workbench.config import logs

SECRET = "sk_live_4242planted4242secret"
PASSWORD = "hunter2-planted"


class Lines:
    """A logger of our own, formatted as the configuration says."""

    def __init__(self, *, as_json: bool) -> None:
        formatter = dict(logs.configuration(as_json=as_json)["formatters"]["events"])
        assert formatter.pop("()") == "structlog.stdlib.ProcessorFormatter"
        self._out = io.StringIO()
        self.name = f"lines.{id(self)}"
        self.foreign = logging.getLogger(self.name)
        self.foreign.propagate = False
        self.foreign.setLevel(logging.INFO)
        handler = logging.StreamHandler(self._out)
        handler.setFormatter(ProcessorFormatter(**formatter))
        self.foreign.addHandler(handler)
        self.events = structlog.stdlib.get_logger(self.name)

    @property
    def text(self) -> str:
        return self._out.getvalue()

    def only(self) -> dict[str, Any]:
        (line,) = self.text.splitlines()
        read: dict[str, Any] = json.loads(line)
        return read


@pytest.fixture
def lines() -> Iterator[Lines]:
    written = Lines(as_json=True)
    yield written
    written.foreign.handlers.clear()


def test_an_event_is_one_json_object_on_one_line(lines: Lines) -> None:
    lines.events.warning("worker.dead", runs_freed=3, note="first\nsecond")

    read = lines.only()
    assert (read["event"], read["level"], read["runs_freed"]) == ("worker.dead", "warning", 3)
    assert read["logger"] == lines.name
    assert read["timestamp"].endswith("Z")


def test_lines_of_libraries_go_the_same_way(lines: Lines) -> None:
    lines.foreign.info("Task %s received", "sagas.drain")

    assert lines.only()["event"] == "Task sagas.drain received"


def test_a_planted_secret_is_masked_wherever_it_stands(lines: Lines) -> None:
    lines.events.error(
        f"refused: Bearer {SECRET}",
        url=f"postgresql://amends_app:{PASSWORD}@db/amends",
        password=PASSWORD,
        deep={"list": [{"api_key": PASSWORD}, f"token {SECRET}"]},
        odd=ValueError(f"password={PASSWORD}"),
    )

    assert SECRET not in lines.text
    assert PASSWORD not in lines.text
    assert lines.text.count("[masked]") == 6


def test_a_traceback_tells_no_local_variable_and_no_secret(lines: Lines) -> None:
    def call(argument: str) -> None:
        local_copy = argument * 2
        raise RuntimeError(f"could not use {argument}", len(local_copy))

    try:
        call(SECRET)
    except RuntimeError:
        lines.events.exception("advance.failed", run="run_1")

    read = lines.only()
    assert read["exception"][0]["exc_type"] == "RuntimeError"
    assert "local_copy" not in lines.text
    assert SECRET not in lines.text


def test_what_people_read_is_masked_too() -> None:
    written = Lines(as_json=False)

    try:
        raise RuntimeError(f"password={PASSWORD}")
    except RuntimeError:
        written.events.exception("advance.failed", token=f"Bearer {SECRET}")
    written.foreign.handlers.clear()

    assert "RuntimeError" in written.text
    assert PASSWORD not in written.text
    assert SECRET not in written.text


def test_the_number_of_a_request_is_in_its_lines(lines: Lines) -> None:
    with structlog.contextvars.bound_contextvars(request_id="req-12345678"):
        lines.events.info("command.accepted")

    assert lines.only()["request_id"] == "req-12345678"
