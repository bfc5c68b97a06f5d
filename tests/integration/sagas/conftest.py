"""Published contracts and definitions, and a driver that drains in this very process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sagas import api
from sagas.executor import Drain
from sagas.facts import Actor, ActorKind, RunFacts
from tests.conftest import Simulator
from tools.reader import read_contract, read_definition

ROOT = Path(__file__).resolve().parents[3]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:shop", name="Shop agent", role="agent")
OPERATOR = Actor(kind=ActorKind.HUMAN, id="user:1", name="Maya", role="operator")


@pytest.fixture
def published(db_clean: None, simulator: Simulator) -> None:
    """The shipped catalogue and the example definitions."""
    for path in sorted((ROOT / "tools" / "catalog").glob("*.toml")):
        api.publish_contract(read_contract(path), actor=OPERATOR)
    for name in ("order_fulfilment.toml", "bank_opening.toml", "ticket_crm_notice.json"):
        api.publish_definition(read_definition(ROOT / "examples" / name), actor=OPERATOR)


@pytest.fixture
def drained(published: None) -> Callable[..., RunFacts]:
    """Start a run, drain until nothing is due for a moment, and return the facts."""

    def start(
        definition: str, given: dict[str, object], *, key: str = "k1", linger_s: float = 0.3
    ) -> RunFacts:
        started = api.start_run(actor=AGENT, definition=definition, input=given, start_key=key)
        drain(linger_s=linger_s)
        return api.run_facts(started.run_ref)

    return start


def drain(*, linger_s: float = 0.3, seconds: float = 30.0) -> None:
    """Drain in this process until nothing has been due for `linger_s`."""
    drainer = Drain("test")
    try:
        drainer.run(seconds=seconds, linger_s=linger_s)
    finally:
        drainer.close()


@pytest.fixture
def order() -> dict[str, object]:
    """The input of one order."""
    return {
        "order": "O-20931",
        "customer": "C-88",
        "amount": "86.40",
        "sku": "SKU-118",
        "qty": 2,
        "address": "Harbour Street 4",
        "text": "Your parcel is on its way.",
    }
