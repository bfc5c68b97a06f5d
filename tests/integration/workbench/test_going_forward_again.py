"""Going forward again after compensations: behind a step that stands, as new calls with keys of their own, once."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from tools.lint import Waiver
from tools.reader import definition_from_document
from workbench.commands import available
from workbench.errors import Answer
from workbench.labs import cast

AGAIN = ("reserve_stock", "create_shipment")


def behind_a_pivot(world: Simulator) -> RunFacts:
    """The notice went first and stands; the shipment was refused, the stock was given back, then people were asked."""
    document = flows._workflow().document
    first, rest = document["steps"][2], document["steps"][:2]
    notice = {**first, "args": {"order": {"from": "input", "pointer": "/order"}}}
    steps = [notice, *({**step, "on_rejected": "compensate"} for step in rest)]
    waived = [Waiver(code="W101", reason="The customer is told first, by agreement.")]
    turned = definition_from_document({**document, "name": "told_first", "steps": steps})
    api.publish_definition(turned, actor=cast.SYSTEM, waivers=waived)
    world.plan({"tool": "create_shipment", "mode": "refuse", "times": 1})
    facts = flows.drive_until_still(flows.start("told_first"))
    assert facts.action("reserve_stock").state is ActionState.COMPENSATED
    return facts


@pytest.mark.requirement("S0-44", "S1-6", "S3-15")
def test_the_calls_that_were_shown_go_out_anew_and_what_stands_is_left_alone(workplace: Simulator) -> None:
    stopped = behind_a_pivot(workplace)
    maya, ref = Desk("maya"), ref_of(stopped)
    before = len(workplace.ledger())
    preview = maya.preview(ref, "redo", "reserve_stock")

    done = maya.run("redo", ref, "r-1", preview_id=preview, step="reserve_stock", reason=REASON)
    again = maya.run("redo", ref, "r-1", preview_id=preview, step="reserve_stock", reason=REASON)
    facts = flows.drive_until_still(stopped.ref)

    assert (done.status, again.status) == (Answer.ACCEPTED, Answer.DUPLICATE)
    assert facts.state is RunState.COMPLETED
    effects = [record for record in workplace.ledger()[before:] if record["kind"] == "effect"]
    assert [record["tool"] for record in effects] == list(AGAIN)
    old = {action.key for action in stopped.actions}
    assert old.isdisjoint(record["key"] for record in effects)
    turned = next(entry for entry in api.entries(facts.ref) if entry.name == "run.turned_forward")
    assert (turned.actor_name, turned.reason) == ("Maya Okafor", REASON)


def test_it_begins_at_the_first_step_that_was_compensated_and_not_at_one_that_stands(
    workplace: Simulator,
) -> None:
    facts = behind_a_pivot(workplace)
    maya = Desk("maya")

    offers = [one for one in available(facts, maya.actor, maya.person) if one.verb == "redo"]

    assert [(one.step, one.allowed) for one in offers] == [("reserve_stock", True)]
