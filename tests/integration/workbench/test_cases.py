"""Reported stories of people at a workbench, played through."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import ActorKind, RunFacts
from sagas.states import ActionState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import claim


def effects(workplace: Simulator, tool: str) -> int:
    return sum(record["kind"] == "effect" for record in workplace.ledger(tool=tool))


@pytest.mark.requirement("S0-46", "S1-6")
def test_two_people_on_one_case_a_claim_is_a_courtesy_with_a_deadline(
    rejected_notice: RunFacts, workplace: Simulator, clock_of_tests: Clock
) -> None:
    ref, maya, jonas = ref_of(rejected_notice), Desk("maya"), Desk("jonas")
    old_page = jonas.preview(ref, "compensate")

    answers = [
        maya.run("claim", ref, "m-1").status,
        jonas.run("claim", ref, "j-1").status,
        jonas.run("compensate", ref, "j-2", preview_id=old_page, reason=REASON).status,
    ]
    lunch = maya.preview(ref, "compensate")
    clock_of_tests.put_forward(claim.MINUTES * 60 + 1)
    answers += [
        jonas.run("claim", ref, "j-3").status,
        maya.run("compensate", ref, "m-2", preview_id=lunch, reason=REASON).status,
        jonas.run("compensate", ref, "j-4", reason=REASON).status,
    ]

    assert answers == ["accepted", "conflict", "conflict", "accepted", "conflict", "accepted"]
    assert flows.drive_until_still(rejected_notice.ref).state is RunState.COMPENSATED
    assert (effects(workplace, "cancel_shipment"), effects(workplace, "release_stock")) == (1, 1)
    assert effects(workplace, "send_notice") == 0
    # No sweep was there: who claimed next put the end of the first claim on record, in the engine's name.
    released = [one for one in api.entries(rejected_notice.ref) if one.name == "human.handoff.released"]
    assert [(one.actor_kind, one.after["held_by"]) for one in released] == [(ActorKind.SYSTEM, "Maya Okafor")]


def test_a_second_retry_is_not_dropped(rejected_notice: RunFacts, workplace: Simulator) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)

    first = maya.run("retry", ref, "r-1", step="send_notice", reason=REASON)
    refused_again = flows.drive_until_still(rejected_notice.ref)
    workplace.plan({"tool": "send_notice", "mode": "ok"})
    second = maya.run("retry", ref_of(refused_again), "r-2", step="send_notice", reason=REASON)
    done = flows.drive_until_still(rejected_notice.ref)

    assert refused_again.action("send_notice").state is ActionState.REJECTED
    assert (first.http_status, second.http_status) == (202, 202)
    assert "queued" in str(second.sentence)
    assert done.state is RunState.COMPLETED
    assert effects(workplace, "send_notice") == 1


@pytest.mark.requirement("S0-43", "S0-44")
def test_a_lead_takes_over_and_the_loser_is_told(rejected_notice: RunFacts) -> None:
    ref, maya, lin = ref_of(rejected_notice), Desk("maya"), Desk("lin")
    maya.run("claim", ref, "m-1")
    page = maya.preview(ref, "compensate")

    taken = lin.run("claim", ref, "l-1")
    lost = maya.run("compensate", ref, "m-2", preview_id=page, reason=REASON)
    let_go = lin.run("release", ref, "l-2")
    again = maya.run("claim", ref, "m-3")

    assert taken.accepted
    assert (lost.status, lost.code) == ("conflict", "held")
    assert "Lin Qing" in str(lost.sentence)
    assert [(c.saw, c.now) for c in lost.changed if c.kind == "claim"] == [("Maya Okafor", "Lin Qing")]
    assert let_go.accepted
    assert again.accepted


def test_an_escalated_case_goes_back_to_the_queue_one_level_up(rejected_notice: RunFacts) -> None:
    ref, maya = ref_of(rejected_notice), Desk("maya")
    maya.run("claim", ref, "m-1")

    result = maya.run("escalate", ref, "m-2", reason="This customer is a matter for the account lead")

    handoff = api.handoff_facts(ref).handoff
    assert result.accepted
    assert handoff is not None
    assert (handoff.escalation, handoff.claimed_by) == (1, "")
