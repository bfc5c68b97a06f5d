"""A verb of a person and something else in the same moment: one of them counts, and record and world agree."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.conf import settings
from django.db import connections

from sagas import api
from sagas.executor import perform
from sagas.facts import RunFacts
from sagas.inbox import Callback, receive
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Proposal, Run
from sagas.orders import Call
from sagas.states import ActionState, CompensationState, RunState
from tests.concurrency.test_commands import at_once
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import *  # noqa: F403 - the fixtures of cases
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from tests.integration.workbench.test_editing import args_of
from tests.integration.workbench.test_leaving_out import stuck_shipment
from tests.integration.workbench.test_stopping_runs import stop
from tests.integration.workbench.test_two_persons import settled_notice, stated
from tools.outcome import Verdict
from tools.world import World, boot_time
from workbench.commands import Result, make_preview

__all__ = ["settled_notice", "stuck_shipment"]
STEP = "send_notice"


def beside[T](act: Callable[[], Result], other: Callable[[], T]) -> tuple[Result, T]:
    """A person's act and something else, let go together, each on a connection of its own."""
    barrier, seen = threading.Barrier(2), list[T]()

    def run() -> None:
        try:
            barrier.wait(60)
            seen.append(other())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    barrier.wait(60)
    result = act()
    thread.join(60)
    assert seen, "the other act failed"
    return result, seen[0]


def reported(key: str, reference: str) -> Callable[[], object]:
    return lambda: receive(
        Callback(system="notify", verdict=Verdict.FOUND, key=key, reference=reference, detail="sent")
    )


@pytest.mark.requirement("S3-10", "S3-17")
@pytest.mark.parametrize("turn", range(3))
def test_of_an_edit_and_a_late_answer_the_record_keeps_both(rejected_notice: RunFacts, turn: int) -> None:
    ref, maya = ref_of(rejected_notice), Desk("maya")
    new = {**args_of(rejected_notice), "text": "By another way."}
    shown = make_preview(
        actor=maya.actor,
        person=maya.person,
        facts=api.handoff_facts(ref),
        verb="edit_and_retry",
        step=STEP,
        arguments={"args": new},
    )
    old = rejected_notice.action(STEP)

    edited, __ = beside(
        lambda: maya.run(
            "edit_and_retry", ref, "e-1", preview_id=shown.id, step=STEP, args=new, reason=REASON
        ),
        reported(old.key, "MSG-late"),
    )
    facts = flows.drive_until_still(rejected_notice.ref)

    by_id = {action.id: action for action in facts.actions}
    if edited.accepted:
        assert by_id[old.id].state is ActionState.SUPERSEDED
        assert facts.handoff is not None
        assert facts.handoff.reason == "late_fact"
    else:
        assert edited.code in ("stale", "not_rejected", "final")
        assert by_id[old.id].state is ActionState.CONFIRMED
    # Either way nothing was sent a second time once the late answer was known.
    assert sum(action.state is ActionState.CONFIRMED for action in facts.actions if action.step == STEP) <= 1


@pytest.mark.requirement("S3-20", "S3-17")
@pytest.mark.parametrize("turn", range(3))
def test_of_leaving_out_and_a_late_success_one_is_recorded_and_nothing_is_lost(
    stuck_shipment: RunFacts, turn: int
) -> None:
    ref, priya = ref_of(stuck_shipment), Desk("priya")
    made_up = stuck_shipment.action("create_shipment").compensation
    assert made_up is not None
    preview = priya.preview(ref, "skip_compensation", "create_shipment")

    left_out, __ = beside(
        lambda: priya.run(
            "skip_compensation", ref, "s-1", preview_id=preview, step="create_shipment", reason=REASON
        ),
        reported(made_up.key, "called-off"),
    )
    facts = flows.drive_until_still(stuck_shipment.ref)

    action = facts.action("create_shipment")
    assert action.compensation is not None
    if left_out.accepted and action.state is ActionState.ACCEPTED:
        assert action.compensation.state is CompensationState.SKIPPED_BY_OPERATOR
        assert [proof.source for proof in action.compensation.evidence][-1] == "callback"
        assert any(one.reason == "late_fact" for one in facts.handoffs)
    else:
        assert (action.state, action.compensation.state) == (
            ActionState.COMPENSATED,
            CompensationState.CONFIRMED,
        )


@pytest.mark.requirement("S3-15", "S3-17")
@pytest.mark.parametrize("turn", range(3))
def test_of_two_seconders_one_confirms(settled_notice: RunFacts, turn: int) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    jonas, lin = Desk("jonas"), Desk("lin")
    first, second = jonas.preview(ref, "confirm_verdict"), lin.preview(ref, "confirm_verdict")

    results = at_once(
        lambda: jonas.run("confirm_verdict", ref, "j-1", preview_id=first, reason=REASON),
        lambda: lin.run("confirm_verdict", ref, "l-1", preview_id=second, reason=REASON),
    )

    assert Counter(result.status for result in results) == {"accepted": 1, "conflict": 1}
    assert list(Proposal.objects.values_list("state", flat=True)) == ["confirmed"]
    assert flows.names(settled_notice.ref).count("verdict.confirmed") == 1


@pytest.mark.requirement("S2-10")
@pytest.mark.parametrize("turn", range(3))
def test_of_a_stop_and_a_confirmation_both_count_and_the_effect_is_made_up_for(
    workplace: Simulator, turn: int
) -> None:
    ref = flows.start()
    owner, world = workers.enrol("slow"), World(settings.TOOL_SYSTEMS)
    claimed = ledger.claim_run(Run.objects.get(ref=ref).pk, owner)
    assert claimed is not None
    claim, call = claimed
    assert isinstance(call, Call)
    seen = perform(replace(call, committing_since=boot_time()), world)

    stopped, order = beside(lambda: stop("maya", ref), lambda: ledger.advance(claim, seen, last=True))
    workers.sign_off(owner)
    world.close()
    facts = flows.drive_until_still(ref)

    assert stopped.accepted, stopped
    assert facts.state is RunState.COMPENSATED
    done = [r["tool"] for r in workplace.ledger(kind="effect") if ref in r["key"]]
    assert done == ["reserve_stock", "release_stock"]
    assert order is not None
