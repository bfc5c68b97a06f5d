"""A tool that can be asked neither by key nor by nature: what a person found outside is read under its reference."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState
from tests.conftest import Simulator
from tests.integration.sagas.conftest import AGENT, OPERATOR
from tests.integration.sagas.test_failures import BANK
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from workbench.errors import Answer

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def lost(workplace: Simulator) -> RunFacts:
    """A run whose customer number was given out although no answer came, by a core that cannot be asked about it."""
    contract = copy.deepcopy(read_contract(ROOT / "tools" / "catalog" / "create_customer.toml").document)
    del contract["status_query"]
    contract |= {"version": 71, "retry": {}}
    contract["by_reference"] = {
        "text": "the number was given out for this application",
        "read": "find_customer",
        "args": {"customer_no": {"from": "reference"}},
        "pointer": "/application",
        "operator": "equals",
        "value": {"from": "args", "pointer": "/application"},
    }
    api.publish_contract(contract_from_document(contract), actor=OPERATOR)
    definition = copy.deepcopy(read_definition(ROOT / "examples" / "bank_opening.toml").document)
    definition |= {"name": "bank_by_number", "version": 1}
    definition["steps"][0]["contract_version"] = 71
    api.publish_definition(definition_from_document(definition), actor=OPERATOR)
    workplace.plan({"tool": "create_customer", "mode": "applied_no_answer", "attempts": [1]})
    started = api.start_run(actor=AGENT, definition="bank_by_number", input=BANK, start_key="by-number")
    return flows.drive_until_still(started.run_ref)


@pytest.mark.requirement("S3-8")
def test_a_reference_that_is_not_this_calls_is_refused_and_the_right_one_serves_the_later_compensation(
    workplace: Simulator, lost: RunFacts
) -> None:
    maya, ref = Desk("maya"), ref_of(lost)
    assert lost.action("create_customer").state is ActionState.UNKNOWN
    (effect,) = [one for one in workplace.ledger(tool="create_customer") if one["kind"] == "effect"]
    right = str(effect["detail"]["customer_no"])

    wrong = maya.run("resolve_happened", ref, "n-1", step="create_customer", reference="1", reason=REASON)
    good = maya.run("resolve_happened", ref, "n-2", step="create_customer", reference=right, reason=REASON)

    assert (wrong.status, wrong.code, set(wrong.field_errors)) == (Answer.INVALID, "disproved", {"reference"})
    assert good.status is Answer.ACCEPTED, good
    action = api.run_facts(lost.ref).action("create_customer")
    assert (action.state, action.provider_ref) == (ActionState.CONFIRMED, right)
    assert action.compensation is not None
    assert action.compensation.args == {"customer_no": right}
    (refusal,) = [one for one in api.entries(lost.ref) if one.name == "command.refused"]
    assert refusal.step == "create_customer"
