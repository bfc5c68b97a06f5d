"""Recovery plans: one object under a digest that runs once, what is left out of it, and a pause between two calls."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from sagas import api
from sagas.executor import drive, perform
from sagas.facts import RunFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.models import Run
from sagas.orders import Call, Done
from sagas.states import CompensationState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk, names
from tools.world import World
from workbench.commands import Plan, Result, dispatch, find_plan, make_plan, make_preview
from workbench.errors import Answer, Refused

WHY = "The parcel is in the van already, the carrier keeps it."


def plan_of(who: str, facts: RunFacts, *leave_out: str, why: str = WHY) -> Plan:
    desk = Desk(who)
    fresh = api.handoff_facts(ref_of(facts))
    return make_plan(
        actor=desk.actor,
        person=desk.person,
        facts=fresh,
        leave_out=leave_out,
        why_left_out=why if leave_out else "",
    )


def run_plan(who: str, plan: Plan, **arguments: Any) -> Result:
    left = {"leave_out": list(plan.leave_out), "why_left_out": plan.why_left_out} if plan.leave_out else {}
    return Desk(who).run(
        "compensate",
        plan.preview.handoff_ref,
        plan.id,
        preview_id=plan.id,
        **{"reason": REASON, **left, **arguments},
    )


def effects(world: Simulator, *, since: int) -> list[tuple[str, str]]:
    return [(r["tool"], r["key"]) for r in world.ledger()[since:] if r["kind"] == "effect"]


@pytest.mark.requirement("S2-10", "S1-16", "S3-17")
def test_a_plan_runs_once_and_exactly_as_it_was_shown(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    before = len(workplace.ledger())

    done, again = run_plan("maya", plan), run_plan("maya", plan)
    facts = flows.drive_until_still(rejected_notice.ref)

    assert (done.status, again.status) == (Answer.ACCEPTED, Answer.DUPLICATE)
    assert facts.state is RunState.COMPENSATED
    shown = [(call.tool, call.key) for call in plan.preview.calls if call.changes_state]
    assert effects(workplace, since=before) == shown
    kept = find_plan(plan.id, handoff_ref=ref_of(rejected_notice))
    assert kept is not None
    assert kept.ran_at is not None
    assert (kept.digest, kept.looks) == (plan.digest, plan.looks)


def test_a_plan_reads_what_each_compensation_rests_on(rejected_notice: RunFacts) -> None:
    plan = plan_of("maya", rejected_notice)

    assert [look.step for look in plan.looks] == ["create_shipment", "reserve_stock"]
    read = [check for look in plan.looks for check in look.preconditions]
    assert read
    assert all(check.met is True for check in read)


@pytest.mark.requirement("S3-15", "S3-20")
def test_a_step_left_out_of_a_plan_stays_and_the_others_run_as_shown(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    whole, part = plan_of("lin", rejected_notice), plan_of("lin", rejected_notice, "create_shipment")
    before = len(workplace.ledger())

    other = run_plan("lin", part, leave_out=["reserve_stock"])
    done = run_plan("lin", part)
    facts = flows.drive_until_still(rejected_notice.ref)

    assert part.digest != whole.digest
    assert other.code == "preview_of_other"
    assert done.accepted, done
    shown = [(call.tool, call.key) for call in part.preview.calls if call.changes_state]
    assert effects(workplace, since=before) == shown
    assert [tool for tool, __ in shown] == ["release_stock"]
    assert (facts.state, facts.effects_left) == (RunState.CLOSED_ACCEPTED, ("create_shipment",))
    entry = next(one for one in api.entries(facts.ref) if one.name == "tool.compensation.skipped")
    assert (entry.reason, entry.source) == (WHY, "registered")


@pytest.mark.parametrize(
    ("who", "leave_out", "why", "status", "field"),
    [
        ("maya", ["create_shipment"], WHY, Answer.FORBIDDEN, set()),
        ("lin", ["create_shipment"], "", Answer.INVALID, {"why_left_out"}),
        ("lin", ["send_notice"], WHY, Answer.INVALID, {"leave_out"}),
        ("lin", ["create_shipment", "reserve_stock"], WHY, Answer.INVALID, {"leave_out"}),
    ],
)
def test_what_cannot_be_left_out_has_no_plan(
    rejected_notice: RunFacts, who: str, leave_out: list[str], why: str, status: Answer, field: set[str]
) -> None:
    with pytest.raises(Refused) as refused:
        plan_of(who, rejected_notice, *leave_out, why=why)

    assert refused.value.refusal.answer is status
    assert set(refused.value.refusal.fields) == field


def test_a_plan_is_over_after_a_quarter_of_an_hour(rejected_notice: RunFacts, clock_of_tests: Clock) -> None:
    plan = plan_of("maya", rejected_notice)
    clock_of_tests.put_forward(15 * 60)

    late = run_plan("maya", plan)

    assert (late.status, late.code) == (Answer.EXPIRED, "preview_expired")


def pause(who: str, run_ref: str, command_id: str = "p-1") -> Result:
    desk = Desk(who)
    return dispatch(
        actor=desk.actor,
        person=desk.person,
        verb="pause_compensation",
        run_ref=run_ref,
        command_id=command_id,
        arguments={},
        door="test",
    )


def go_on(who: str, run_ref: str, command_id: str = "g-1") -> Result:
    desk = Desk(who)
    facts = api.run_facts(run_ref)
    preview = make_preview(actor=desk.actor, person=desk.person, facts=facts, verb="continue_compensation")
    return dispatch(
        actor=desk.actor,
        person=desk.person,
        verb="continue_compensation",
        run_ref=run_ref,
        command_id=command_id,
        arguments={"reason": REASON},
        preview_id=preview.id,
        door="test",
    )


@pytest.mark.requirement("S2-10")
def test_a_pause_lets_the_call_in_flight_end_and_keeps_the_next_from_beginning(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    assert run_plan("maya", plan_of("maya", rejected_notice)).accepted
    owner, world = workers.enrol("slow"), World(settings.TOOL_SYSTEMS)
    pk = Run.objects.get(ref=rejected_notice.ref).pk
    claimed = ledger.claim_run(pk, owner)
    assert claimed is not None
    claim, order = claimed
    while not isinstance(order, Call):
        order = ledger.advance(claim, perform(order, world))  # type: ignore[arg-type]
    answer = perform(order, world)

    paused, again = pause("maya", rejected_notice.ref), pause("jonas", rejected_notice.ref, "p-2")
    drive(claim, ledger.advance(claim, answer), world)
    still = api.run_facts(rejected_notice.ref)
    assert isinstance(ledger.advance(claim, None), Done) if still.owner else True
    done = go_on("maya", rejected_notice.ref)
    facts = flows.drive_until_still(rejected_notice.ref)

    assert paused.accepted
    assert again.code == "paused_already"
    states = {a.step: a.compensation.state for a in still.actions if a.compensation}
    assert states["create_shipment"] is CompensationState.CONFIRMED
    assert states["reserve_stock"] is CompensationState.REGISTERED
    assert (still.state, still.paused_by) == (RunState.COMPENSATING, "Maya Okafor")
    assert done.accepted
    assert facts.state is RunState.COMPENSATED
    assert [n for n in names(facts.ref) if n.startswith("run.compensation.")] == [
        "run.compensation.paused",
        "run.compensation.continued",
    ]
    workers.sign_off(owner)
    world.close()


def test_a_look_made_before_the_pause_lets_no_call_out_after_it(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    assert run_plan("maya", plan_of("maya", rejected_notice)).accepted
    owner, world = workers.enrol("slow"), World(settings.TOOL_SYSTEMS)
    claimed = ledger.claim_run(Run.objects.get(ref=rejected_notice.ref).pk, owner)
    assert claimed is not None
    claim, look = claimed
    seen = perform(look, world)  # type: ignore[arg-type]
    before = len(workplace.ledger(kind="effect"))

    assert pause("maya", rejected_notice.ref).accepted
    order = ledger.advance(claim, seen)

    assert isinstance(order, Done)
    assert len(workplace.ledger(kind="effect")) == before
    workers.sign_off(owner)
    world.close()


def test_only_a_compensation_that_is_under_way_can_be_paused(rejected_notice: RunFacts) -> None:
    assert pause("maya", rejected_notice.ref).code == "none_runs"
    with pytest.raises(Refused) as refused:
        go_on("maya", rejected_notice.ref)

    assert refused.value.refusal.code == "not_paused"


@pytest.mark.requirement("S0-38", "S2-10")
def test_a_plan_whose_precondition_has_fallen_is_refused_with_what_was_read_then_and_now(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    reservation = rejected_notice.action("reserve_stock").provider_ref
    workplace.post("/third-party", {"kind": "reservation", "id": reservation, "state": "released"})
    before = len(workplace.ledger())

    refused = run_plan("maya", plan)

    assert (refused.status, refused.http_status, refused.code) == (
        Answer.CONFLICT,
        409,
        "precondition_fallen",
    )
    told = refused.sentence.plain()
    assert "reserve_stock" in told
    assert "Nothing was sent." in told
    (then,) = [check for look in plan.looks if look.step == "reserve_stock" for check in look.preconditions]
    assert (then.text in told, then.evidence in told, "'released'" in told) == (True, True, True)
    assert effects(workplace, since=before) == []
    facts = api.run_facts(rejected_notice.ref)
    assert (facts.state, facts.version) == (RunState.HANDOFF, plan.preview.version)
    kept = find_plan(plan.id, handoff_ref=ref_of(rejected_notice))
    assert kept is not None
    assert kept.ran_at is None


def test_a_plan_whose_precondition_cannot_be_read_is_left_to_the_look_before_each_call(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    workplace.plan({"tool": "get_reservation", "mode": "query_down"})

    assert run_plan("maya", plan).accepted
