"""Leaving out a compensation that failed: who may, after what was shown, and what it comes to."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import CompensationState, RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import REFUSED, ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import available, make_preview
from workbench.errors import Answer

STUCK = {"tool": "cancel_shipment", "mode": "refuse"}


@pytest.fixture
def stuck_shipment(workplace: Simulator) -> RunFacts:
    """The notice was refused, the shipment could not be called off, the stock waits for it."""
    workplace.plan(REFUSED, STUCK)
    facts = flows.drive_until_still(flows.start())
    assert Desk("maya").run("compensate", ref_of(facts), "c-0", reason=REASON).accepted
    facts = flows.drive_until_still(facts.ref)
    made_up = facts.action("create_shipment").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.FAILED
    return facts


@pytest.mark.requirement("S3-15", "S3-20", "S1-16")
def test_an_approver_leaves_out_what_failed_and_the_earlier_one_runs_as_shown(
    stuck_shipment: RunFacts, workplace: Simulator
) -> None:
    maya, priya, ref = Desk("maya"), Desk("priya"), ref_of(stuck_shipment)
    facts = api.handoff_facts(ref)
    shown = make_preview(
        actor=priya.actor, person=priya.person, facts=facts, verb="skip_compensation", step="create_shipment"
    )

    refused = maya.run("skip_compensation", ref, "s-1", preview_id="", step="create_shipment", reason=REASON)
    short = priya.run(
        "skip_compensation", ref, "s-2", preview_id=shown.id, step="create_shipment", reason="x"
    )
    done = priya.run(
        "skip_compensation", ref, "s-3", preview_id=shown.id, step="create_shipment", reason=REASON
    )
    again = priya.run(
        "skip_compensation", ref, "s-3", preview_id=shown.id, step="create_shipment", reason=REASON
    )
    before = len(workplace.ledger())
    facts = flows.drive_until_still(stuck_shipment.ref)

    assert (refused.status, refused.code) == (Answer.FORBIDDEN, "role")
    assert (short.status, set(short.field_errors)) == (Answer.INVALID, {"reason"})
    assert (done.status, again.status) == (Answer.ACCEPTED, Answer.DUPLICATE)
    assert shown.stays
    ran = [(r["tool"], r["key"]) for r in workplace.ledger()[before:] if r["kind"] == "effect"]
    assert ran == [(call.tool, call.key) for call in shown.calls if call.changes_state]
    assert [tool for tool, __ in ran] == ["release_stock"]
    assert (facts.state, facts.effects_left) == (RunState.CLOSED_ACCEPTED, ("create_shipment",))


def test_what_has_not_failed_is_not_left_out(rejected_notice: RunFacts) -> None:
    offers = {
        offer.verb: offer.code
        for offer in available(
            api.handoff_facts(ref_of(rejected_notice)), Desk("lin").actor, Desk("lin").person
        )
    }

    assert "compensate" in offers
    assert "skip_compensation" not in offers
