"""One stage for a whole module: many runs side by side against one simulated world, settled together.

What the tests of the module look at is played once; each test then judges its own run by the outside ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from pytest_django import DjangoDbBlocker

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Run
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, drain

INPUTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "order_fulfilment": lambda n: {
        "order": f"O-{n}",
        "customer": f"C-{n}",
        "amount": "86.40",
        "sku": "SKU-118",
        "qty": 2,
        "address": "Harbour Street 4",
    },
    "bank_opening": lambda n: {
        "application": f"A-{n}",
        "name": "Ada Example",
        "id_no": f"ID{n}",
        "limit": "500.00",
        "fee": "20.00",
        "phone": "+4900000",
    },
    "ticket_crm_notice": lambda n: {
        "customer_id": f"C-{n}",
        "subject": f"Address of C-{n}",
        "fields": {"street": "Harbour Street 4"},
        "customer_mail": f"c{n}@example.org",
        "text": f"Dear C-{n}, your address was changed.",
    },
    "refund_crm": lambda n: {
        "order": f"O-{n}",
        "customer": f"C-{n}",
        "payment": f"PAID-{n}",
        "amount": "86.40",
        "reason": "Parcel lost",
    },
}
INPUTS["patient_orders"] = INPUTS["order_fulfilment"]
"""The input of a run by workflow and number. The number has seven digits: it is what a plan's `match` picks."""


STEP_S = 0.5
"""The clock goes on by this much more than the first wait, so that waits that end close together end at once."""


class Stage:
    """Starts runs under numbers of their own and settles them together."""

    def __init__(self, simulator: Simulator, clock: Clock, owner: psycopg.Connection[Any]) -> None:
        self.simulator, self.clock, self.owner = simulator, clock, owner
        self.records: list[dict[str, Any]] = []
        self._refs: dict[int, str] = {}

    def start(self, definition: str, number: int) -> str:
        """Start the run with this number; what it is called and what its calls carry contain the number."""
        started = api.start_run(
            actor=AGENT, definition=definition, input=INPUTS[definition](number), start_key=f"run-{number}"
        )
        self._refs[number] = started.run_ref
        return started.run_ref

    def know(self, number: int, ref: str) -> None:
        """Take in a run that was started otherwise."""
        self._refs[number] = ref

    def settle(self) -> None:
        """Drain until every run is with a person or at its end, the clock put forward over the waits."""
        for _ in range(200):
            drain()
            waiting = Run.objects.exclude(state="handoff").exclude(due_at=None).order_by("due_at")
            first = waiting.values_list("due_at", flat=True).first()
            if first is None:
                return
            self.clock.put_forward(max((first - api.now()).total_seconds(), 0.0) + STEP_S)
        raise AssertionError("The runs do not come to rest.")

    def remember(self) -> None:
        """Keep what the outside ledger holds by now in `records`, for many looks at it."""
        self.records = self.simulator.ledger()

    def run(self, number: int) -> Run:
        return Run.objects.get(ref=self._refs[number])

    def clear(self) -> None:
        """Empty the stage of runs and of what became of them; what is published stays."""
        self.simulator.reset()
        self._refs.clear()
        rows = self.owner.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'sagas\\_%' "
            "AND tablename NOT IN ('sagas_contractversion', 'sagas_definitionversion', 'sagas_legal_move')"
        )
        script = ";".join(f'DELETE FROM "{name}"' for (name,) in rows.fetchall())
        self.owner.execute(f"BEGIN; {script}; COMMIT")

    def facts(self, number: int) -> RunFacts:
        return api.run_facts(self._refs[number])

    def ref(self, number: int) -> str:
        return self._refs[number]


@pytest.fixture(scope="module")
def stage(
    empty_tables: Callable[[], None],
    shelf: Callable[[], None],
    simulator_process: Simulator,
    clock_of_tests: Clock,
    fresh_database: str,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Stage]:
    """The shipped contracts and workflows published, the simulated world new, for all tests of the module."""
    simulator_process.reset()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "TOOL_SYSTEMS", simulator_process.systems)
        patch.setenv("AMENDS_SYSTEMS", json.dumps(simulator_process.systems))
        shelf()
        with psycopg.connect(fresh_database, autocommit=True) as owner:
            owner.execute("SET session_replication_role = replica")
            yield Stage(simulator_process, clock_of_tests, owner)
        connections.close_all()
    empty_tables()


@pytest.fixture
def clear_stage(stage: Stage) -> Stage:
    """The module's stage without any run: for tests that look at all there is."""
    connections.close_all()
    stage.clear()
    return stage
