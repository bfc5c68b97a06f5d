"""The world as these tests use it: new for every test, reached by plain HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.unit.simulator.wire import Heard, OwnProcess, ask


class Commanded(Protocol):
    """What the shared simulator process offers."""

    systems: dict[str, str]
    admin_url: str

    def reset(self) -> None: ...


class Outside:
    """The simulated world from outside: its systems and its admin port."""

    def __init__(self, process: Commanded) -> None:
        self.systems, self.admin_url = process.systems, process.admin_url

    def call(self, system: str, method: str, path: str, body: Any = None, **more: Any) -> Heard:
        return ask(self.systems[system], method, path, body, **more)

    def plan(self, *rules: dict[str, Any], **more: Any) -> None:
        answer = ask(self.admin_url, "POST", "/plan", {"rules": list(rules), **more})
        assert answer.status == 200, answer.raw

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        answer = ask(self.admin_url, method, path, body)
        assert answer.status == 200, answer.raw
        return answer.json

    def records(self, **filters: str) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        records: list[dict[str, Any]] = self.admin("GET", f"/ledger?{query}")["records"]
        return records

    def effects(self, business: str) -> dict[str, dict[str, int]]:
        net: dict[str, dict[str, int]] = self.admin("GET", f"/effects?business={business}")["effects"]
        return net

    def balanced(self) -> bool:
        return bool(self.admin("GET", "/books")["balanced"])


@pytest.fixture
def outside(simulator_process: Commanded) -> Outside:
    """The shared simulator process with nothing on record."""
    simulator_process.reset()
    return Outside(simulator_process)


@pytest.fixture
def own_process(tmp_path: Path) -> Iterator[OwnProcess]:
    """A simulator of the test's own, started and ready to be killed."""
    process = OwnProcess(tmp_path)
    process.start()
    yield process
    process.kill()
