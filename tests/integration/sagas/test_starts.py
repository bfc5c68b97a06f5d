"""Starts: from a list of steps, with the agent's account, once per key; and what is recorded of a change of plan."""

from typing import Any

import pytest

from sagas import api
from sagas.errors import InvalidInput, StartKeyConflict
from sagas.facts import AdHocStep, StepAccount
from sagas.states import RunState
from tests.conftest import Simulator
from tests.integration.sagas.conftest import AGENT, drain, effects

RESERVE = AdHocStep(
    id="reserve",
    tool="reserve_stock",
    args={"order": "O-77", "sku": "SKU-5", "qty": 1},
    why="the customer wants it today",
    evidence="the stock page showed four",
)
SHIP = AdHocStep(id="ship", tool="create_shipment", args={"order": "O-77", "address": "Harbour Street 4"})


@pytest.mark.requirement("S1-21", "S4-20", "S1-22")
def test_a_list_of_steps_runs_like_a_workflow_and_keeps_the_agents_account(
    simulator: Simulator, published: None
) -> None:
    started = api.start_steps(
        actor=AGENT, steps=[RESERVE, SHIP], title="Ship one", intent="Send it today", start_key="ad-hoc-1"
    )
    drain()

    facts = api.run_facts(started.run_ref)
    assert facts.state is RunState.COMPLETED
    assert facts.intent == "Send it today"
    assert (facts.actions[0].why, facts.actions[0].evidence_note) == (RESERVE.why, RESERVE.evidence)
    assert effects(simulator, "create_shipment") == 1


@pytest.mark.requirement("S1-9", "S1-6")
def test_the_same_list_under_the_same_key_starts_once_and_another_is_refused(published: None) -> None:
    first = api.start_steps(actor=AGENT, steps=[RESERVE], title="One", start_key="k")
    again = api.start_steps(actor=AGENT, steps=[RESERVE], title="One", start_key="k")

    assert (again.run_ref, again.created) == (first.run_ref, False)
    with pytest.raises(StartKeyConflict):
        api.start_steps(actor=AGENT, steps=[SHIP], title="One", start_key="k")


def test_a_list_that_the_lint_refuses_is_not_started_and_names_the_step(published: None) -> None:
    wrong = AdHocStep(id="ship", tool="no_such_tool", args={})

    with pytest.raises(InvalidInput) as refused:
        api.start_steps(actor=AGENT, steps=[RESERVE, wrong], title="Two", start_key="w")

    assert "/steps/1" in dict(refused.value.problems)


@pytest.mark.requirement("S0-6", "S1-21")
def test_a_change_of_plan_is_recorded_with_kind_and_reason(published: None, order: dict[str, Any]) -> None:
    started = api.start_run(
        actor=AGENT,
        definition="order_fulfilment",
        input=order,
        start_key="r",
        accounts={"send_notice": StepAccount(why="the customer asked for mail", evidence="profile page")},
    )

    api.record_replan(started.run_ref, actor=AGENT, kind="fallback", reason="the mail tool is slow today")

    last = api.entries(started.run_ref)[-1]
    assert (last.name, last.after["kind"], last.reason) == (
        "run.replanned",
        "fallback",
        "the mail tool is slow today",
    )
