"""`manage.py bench pages`: what the queue and the pages of a long run cost the server and weigh (B29).

A worker brings as many orders to a person as the queue shows; the pages are then asked for in this process, as the
web server would make them. Times are processor and database together, the best and the middle of several.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sagas import api
from tools.contract import Json
from tools.reader import definition_from_document, read_contract, read_definition
from workbench.labs import cast
from workbench.labs.arena import Arena
from workbench.labs.bench.long_run import definition
from workbench.labs.chaos.door import Door, Say
from workbench.labs.story import AGENT, PUBLISHER, ROOT
from workbench.models import User

LIMIT_MS = 300
"""The most that two hundred rows may take."""
WEIGHT = 150_000
"""Bytes that a page may weigh as it comes over the wire, without what the browser keeps."""
TRIES = 7
ROWS = 200
_PATIENCE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One page: milliseconds of several tries, those of our own processor time among them, statements, bytes, and
    bytes as they are sent.
    """

    what: str
    times_ms: tuple[float, ...]
    own_ms: tuple[float, ...]
    queries: int
    size: int
    sent: int
    limit_ms: int = 0

    @property
    def holds(self) -> bool:
        """Whether time and weight are within their limits."""
        return (not self.limit_ms or median(self.times_ms) <= self.limit_ms) and self.sent <= WEIGHT

    def line(self) -> str:
        """The figures in a line."""
        limit = f" (limit {self.limit_ms})" if self.limit_ms else ""
        return (
            f"{self.what}: median {median(self.times_ms):.0f} ms, best {min(self.times_ms):.0f} ms{limit}, "
            f"{median(self.own_ms):.0f} ms of it our own processor time, "
            f"{self.queries} queries, {self.size / 1000:.0f} kB, "
            f"{self.sent / 1000:.0f} kB sent (limit {WEIGHT / 1000:.0f}): "
            f"{'holds' if self.holds else 'DOES NOT HOLD'}"
        )


def _figure(client: Client, what: str, path: str, *, limit_ms: int = 0) -> Figure:
    with CaptureQueriesContext(connection) as asked:
        client.get(path)
        queries = len(asked)
    times, own = [], []
    for _try in range(TRIES):
        began, busy = time.perf_counter(), time.process_time()
        answer = client.get(path)
        times.append(1000 * (time.perf_counter() - began))
        own.append(1000 * (time.process_time() - busy))
        if answer.status_code not in (200, 204):
            raise AssertionError(f"{path} was answered {answer.status_code}")
    return Figure(
        what=what,
        times_ms=tuple(times),
        own_ms=tuple(own),
        queries=queries,
        size=len(answer.content),
        sent=len(gzip.compress(answer.content, 6)),
        limit_ms=limit_ms,
    )


def _to_people(document: Json) -> Json:
    """The same workflow, every refusal of which comes to a person at once."""
    if not isinstance(document, dict):
        raise TypeError(document)
    steps: Any = document["steps"]
    return {
        **document,
        "recovery_deadline_s": 0.1,
        "steps": [{**step, "on_rejected": "handoff"} for step in steps],
    }


def _fill(arena: Arena, cases: int, steps: int) -> str:
    """Publish, start and wait until every run has come to a person; returns the case of the long run."""
    for path in sorted((ROOT / "tools" / "catalog").glob("*.toml")):
        api.publish_contract(read_contract(path), actor=PUBLISHER)
    orders = {**dict(read_definition(ROOT / "examples" / "order_fulfilment.toml").document), "name": "orders"}
    for document in (_to_people(orders), _to_people(definition("long", steps, refused=False))):
        api.publish_definition(definition_from_document(document), actor=PUBLISHER)
    arena.outside.plan(
        {"tool": "send_notice", "mode": "refuse"},
        {"tool": "reserve_stock", "match": "SKU-2", "mode": "refuse"},
    )
    started = [api.start_run(actor=AGENT, definition="long", input={"order": "O-1"}, start_key="long")]
    for number in range(cases):
        order = {"order": f"O-{number}", "sku": "SKU-1", "qty": 1, "address": "1 Quay", "amount": "129.00"}
        started.append(
            api.start_run(actor=AGENT, definition="orders", input=order, start_key=f"order-{number}")
        )
    for one in started:
        api.ring(one.run_ref)
    deadline = time.monotonic() + _PATIENCE_S
    while (arrived := len(_refs())) < min(len(started), 1000):
        if time.monotonic() > deadline:
            raise AssertionError(f"only {arrived} of {len(started)} runs came to a person")
        arena.tend()
        time.sleep(1.0)
    facts = api.run_facts(started[0].run_ref)
    if facts.handoff is None:
        raise AssertionError(f"{facts.ref} did not come to a person")
    return facts.handoff.ref


def _refs() -> list[str]:
    found: list[str] = []
    page = api.queue(limit=200)
    found += [row.ref for row in page.rows]
    while page.after:
        page = api.queue(limit=200, after=page.after)
        found += [row.ref for row in page.rows]
    return found


def _measure(ref: str) -> Iterator[Figure]:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="maya"))
    yield _figure(client, "queue, 50 rows", "/handoffs/")
    yield _figure(client, f"queue, {ROWS} rows", f"/handoffs/?rows={ROWS}", limit_ms=LIMIT_MS)
    run = api.handoff_facts(ref).ref
    version, seq = api.handoff_stamp(ref)
    yield _figure(client, "case of the long run", f"/handoffs/{ref}/")
    yield _figure(client, "the same, nothing new", f"/handoffs/{ref}/changes/?v={version}&seq={seq}")
    yield _figure(client, "page of the long run", f"/runs/{run}/")


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("--cases", type=int, default=210, help="orders that wait for a person")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of the long run")


def _run(options: dict[str, Any], say: Say) -> bool:
    with Arena(workers=1, sweeps=1, relays=1) as arena:
        arena.wait_until_ready()
        cast.load()
        say(f"{options['cases']} orders and a run of {options['steps']} steps come to a person")
        ref = _fill(arena, options["cases"], options["steps"])
        figures = list(_measure(ref))
    for figure in figures:
        say(figure.line())
    return all(figure.holds for figure in figures)


DOOR = Door(
    help="what the queue and the pages of a long run cost and weigh (B29)", arguments=_arguments, run=_run
)
