"""Pages of a long run: what needs a look is told, the rest in numbers, and a look for news reads no step."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tools.reader import definition_from_document
from workbench.labs import cast
from workbench.labs.bench.long_run import definition

STEPS = 400
WEIGHT = 150_000


def in_handoff(name: str, steps: int) -> RunFacts:
    """So many reservations, the second of which was refused and came to a person."""
    document: Any = definition(name, steps, refused=False)
    document["steps"] = [{**step, "on_rejected": "handoff"} for step in document["steps"]]
    api.publish_definition(definition_from_document(document), actor=cast.SYSTEM)
    started = api.start_run(actor=flows.AGENT, definition=name, input={"order": "O-1"}, start_key=name)
    facts = flows.drive_until_still(started.run_ref)
    assert facts.handoff is not None
    return facts


@pytest.fixture
def long_case(workplace: Simulator) -> RunFacts:
    """A case of four hundred steps."""
    workplace.plan({"tool": "reserve_stock", "match": "SKU-2", "mode": "refuse"})
    return in_handoff("long", STEPS)


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def test_a_long_case_tells_what_needs_a_look_and_leads_to_the_rest(maya: Client, long_case: RunFacts) -> None:
    page = maya.get(f"/handoffs/{ref_of(long_case)}/")
    text = page.content.decode()

    assert len(page.content) < WEIGHT
    assert len(page.context["case"].steps) == 50
    assert 'id="step-s2"' in text
    assert "350 steps more" in text
    assert f'href="/runs/{long_case.ref}/"' in text
    assert page.context["case"].lede.startswith("1 of 400 steps")


def test_the_page_of_a_long_run_pages_by_key(maya: Client, long_case: RunFacts) -> None:
    seen: list[str] = []
    address = f"/runs/{long_case.ref}/"
    while address:
        page = maya.get(address)
        assert len(page.content) < WEIGHT
        shape = page.context["run"].shape
        seen += [box.step for box in shape.boxes]
        address = shape.next_url

    assert seen == [f"s{number}" for number in range(1, STEPS + 1)]


def test_a_look_for_news_of_a_long_case_reads_none_of_its_steps(maya: Client, long_case: RunFacts) -> None:
    ref = ref_of(long_case)
    version, seq = api.handoff_stamp(ref)

    with CaptureQueriesContext(connection) as asked:
        answer = maya.get(f"/handoffs/{ref}/changes/?v={version}&seq={seq}")

    assert answer.status_code == 204
    assert not [query for query in asked.captured_queries if "sagas_action" in query["sql"]]


def test_the_pages_of_a_long_run_ask_as_many_questions_as_those_of_a_short_one(
    maya: Client, long_case: RunFacts
) -> None:
    short_case = in_handoff("short", 20)

    def questions(path: str) -> int:
        maya.get(path)
        with CaptureQueriesContext(connection) as asked:
            assert maya.get(path).status_code == 200
        return len(asked)

    for pages in ("/handoffs/{handoff}/", "/runs/{run}/", "/handoffs/{handoff}/trail/"):
        short, long = (
            questions(pages.format(handoff=ref_of(case), run=case.ref)) for case in (short_case, long_case)
        )
        assert short == long, pages
