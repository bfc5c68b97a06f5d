"""The order flow against the simulated world, judged by its ledger."""

from collections.abc import Callable
from typing import Any

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, RunState
from tests.conftest import Simulator
from tests.integration.sagas.conftest import effects


def test_a_run_in_which_everything_answers_is_completed(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    facts = drained("order_fulfilment", order)

    assert facts.state is RunState.COMPLETED
    assert [action.state for action in facts.actions] == [ActionState.CONFIRMED] * 3
    assert effects(simulator, "reserve_stock") == 1
    assert effects(simulator, "send_notice") == 1
    names = [entry.name for entry in api.entries(facts.ref)]
    assert names[0] == "run.started"
    assert names[-1] == "run.completed"
