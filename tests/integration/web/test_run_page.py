"""The page of a run over the real engine: its entries by step and by failure, and what its definition says."""

from __future__ import annotations

import pytest
from django.test import Client

from sagas import api
from sagas.errors import NotFound
from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from workbench.web.presenters.runs import Run


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def page(client: Client, path: str) -> Run:
    found: Run = client.get(path).context["run"]
    return found


def test_a_box_leads_to_the_entries_of_its_step_and_failures_stand_alone(
    maya: Client, unknown_notice: RunFacts
) -> None:
    every = page(maya, f"/runs/{unknown_notice.ref}/")
    (box,) = [one for one in every.shape.boxes if one.step == "create_shipment"]

    of_step = page(maya, box.url)
    failures = page(maya, every.filters.failures_url)

    assert {one.step for one in of_step.entries} == {"create_shipment"}
    assert [one.told.name for one in failures.entries] == ["tool.execution.unknown", "human.handoff.started"]
    assert failures.filters.failures
    assert every.counted.endswith(f" of {api.trail_of(unknown_notice.ref).entries}")


def test_the_run_says_which_version_it_is_of_and_what_the_check_finds_there(
    maya: Client, unknown_notice: RunFacts
) -> None:
    found = page(maya, f"/runs/{unknown_notice.ref}/")

    assert found.workflow_url == "/workflows/orders/v1/"
    assert found.check is not None
    assert found.check.text
    assert found.next_allowed == api.next_allowed(api.run_facts(unknown_notice.ref))
    assert found.published.endswith(("wait", "waits", "delivered"))


@pytest.mark.parametrize(
    "query", ["after=x", "after=99999999999999999999", "steps=nothing", "step=nothing", "only=x"]
)
def test_what_makes_no_sense_in_an_address_shows_the_page_all_the_same(
    maya: Client, unknown_notice: RunFacts, query: str
) -> None:
    assert maya.get(f"/runs/{unknown_notice.ref}/?{query}").status_code == 200


def test_the_trail_of_a_run_that_there_is_not_is_not_found(workplace: Simulator) -> None:
    with pytest.raises(NotFound):
        api.trail_of("run_nowhere")
