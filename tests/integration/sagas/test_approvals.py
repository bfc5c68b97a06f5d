"""A compensation that wants a signature: asked, signed, refused, expired, and never without (engine.md, section 8)."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from sagas import api
from sagas.errors import NotAllowed
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.models import Compensation
from sagas.states import ActionState, CompensationState, PermitState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import AGENT, OPERATOR, drain, effects, settle
from tests.integration.sagas.test_failures import BANK
from tools.contract import Contract
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition

ROOT = Path(__file__).resolve().parents[3]
PRIYA = Actor(kind=ActorKind.HUMAN, id="user:2", name="Priya", role="approver")


@pytest.fixture
def signed_bank(published: None) -> str:
    """The bank flow with a credit line whose reclaim wants a signature."""
    contract = copy.deepcopy(read_contract(ROOT / "tools" / "catalog" / "allocate_limit.toml").document)
    contract["version"] = 90
    contract["compensation"]["who"] = "approval"
    api.publish_contract(contract_from_document(contract), actor=OPERATOR)
    definition = copy.deepcopy(read_definition(ROOT / "examples" / "bank_opening.toml").document)
    definition |= {"name": "bank_opening_signed_here", "version": 1}
    next(step for step in definition["steps"] if step["tool"] == "allocate_limit")["contract_version"] = 90
    api.publish_definition(definition_from_document(definition), actor=OPERATOR)
    return "bank_opening_signed_here"


@pytest.fixture
def waiting(simulator: Simulator, drained: Callable[..., RunFacts], signed_bank: str) -> RunFacts:
    simulator.plan({"tool": "send_sms", "mode": "refuse"})
    started = api.start_run(actor=AGENT, definition=signed_bank, input=BANK, start_key="signed")
    drain()
    return api.run_facts(started.run_ref)


def permit_of(facts: RunFacts) -> str:
    made_up = facts.action("grant_credit_line").compensation
    assert made_up is not None
    assert made_up.permit is not None
    return made_up.permit.ref


@pytest.mark.requirement("S0-35", "S1-4", "S0-7")
def test_the_compensation_waits_for_a_signature_and_nothing_is_sent(
    simulator: Simulator, waiting: RunFacts
) -> None:
    assert waiting.state is RunState.AWAITING_APPROVAL
    made_up = waiting.action("grant_credit_line").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.AWAITING_APPROVAL
    assert effects(simulator, "reclaim_limit") == 0
    assert [row.ref for row in api.signoffs().rows] == [permit_of(waiting)]


@pytest.mark.requirement("S0-35", "S4-25")
def test_a_signature_lets_it_run_and_is_used_up(
    simulator: Simulator, waiting: RunFacts, clock: Clock
) -> None:
    with (
        api.transaction(),
        api.signoff_desk(permit_of(waiting), actor=PRIYA, reason="I have seen it") as desk,
    ):
        desk.sign(permit_of(waiting))
    facts = settle(waiting.ref, clock)

    assert facts.state is RunState.COMPENSATED
    assert effects(simulator, "reclaim_limit") == 1
    made_up = facts.action("grant_credit_line").compensation
    assert made_up is not None
    assert made_up.permit is not None
    assert made_up.permit.state is PermitState.CONSUMED
    with (
        pytest.raises(NotAllowed),
        api.transaction(),
        api.signoff_desk(permit_of(facts), actor=PRIYA) as desk,
    ):
        desk.sign(permit_of(facts))


def test_a_refused_signature_goes_to_a_person_and_nothing_is_sent(
    simulator: Simulator, waiting: RunFacts, clock: Clock
) -> None:
    with api.transaction(), api.signoff_desk(permit_of(waiting), actor=PRIYA, reason="not this one") as desk:
        desk.reject(permit_of(waiting))
    facts = settle(waiting.ref, clock)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.COMPENSATION_FAILED
    assert effects(simulator, "reclaim_limit") == 0


def test_silence_is_not_a_signature(simulator: Simulator, waiting: RunFacts, clock: Clock) -> None:
    clock.put_forward(16 * 60)
    facts = settle(waiting.ref, clock)

    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.reason == api.Reason.APPROVAL_EXPIRED
    assert effects(simulator, "reclaim_limit") == 0

    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="ask once more") as desk:
        desk.compensate()
    again = settle(waiting.ref, clock)

    made_up = again.action("grant_credit_line").compensation
    assert made_up is not None
    assert made_up.permit is not None
    assert made_up.permit.state in (PermitState.REQUESTED, PermitState.EXPIRED)
    assert made_up.permit.ref != permit_of(waiting)
    assert ("user:1", "Maya") in made_up.permit.requesters


@pytest.mark.requirement("S0-35")
def test_a_signature_for_other_arguments_does_not_count(
    simulator: Simulator, waiting: RunFacts, clock: Clock
) -> None:
    with (
        api.transaction(),
        api.signoff_desk(permit_of(waiting), actor=PRIYA, reason="I have seen it") as desk,
    ):
        desk.sign(permit_of(waiting))
    Compensation.objects.filter(action__run__ref=waiting.ref, tool="reclaim_limit").update(
        args={"allocation_id": "AL-9999"}
    )

    drain()

    assert effects(simulator, "reclaim_limit") == 0
    facts = api.run_facts(waiting.ref)
    assert facts.action("grant_credit_line").state is ActionState.CONFIRMED
    assert facts.state is RunState.AWAITING_APPROVAL
    assert permit_of(facts) != permit_of(waiting)


def newer_reclaim() -> Contract:
    """The shipped contract of the compensation's tool as its second version."""
    shipped = read_contract(ROOT / "tools" / "catalog" / "reclaim_limit.toml")
    return contract_from_document({**shipped.document, "version": 2})


@pytest.mark.requirement("S0-7")
def test_a_contract_that_changes_while_a_signature_is_asked_for_voids_the_request(
    simulator: Simulator, waiting: RunFacts
) -> None:
    asked = permit_of(waiting)
    api.publish_contract(newer_reclaim(), actor=OPERATOR)

    assert api.signoff_facts(asked).permit.state is PermitState.WITHDRAWN
    drain()
    facts = api.run_facts(waiting.ref)
    assert (facts.state, permit_of(facts) != asked) == (RunState.AWAITING_APPROVAL, True)
    assert effects(simulator, "reclaim_limit") == 0


@pytest.mark.requirement("S0-7")
def test_a_contract_that_changes_between_signature_and_call_voids_the_signature(
    simulator: Simulator, waiting: RunFacts
) -> None:
    asked = permit_of(waiting)
    with api.transaction(), api.signoff_desk(asked, actor=OPERATOR) as desk:
        desk.sign(asked)
    api.publish_contract(newer_reclaim(), actor=OPERATOR)

    drain()

    facts = api.run_facts(waiting.ref)
    assert api.signoff_facts(asked).permit.state is PermitState.WITHDRAWN
    assert facts.state is RunState.AWAITING_APPROVAL
    assert permit_of(facts) != asked
    assert effects(simulator, "reclaim_limit") == 0
    names = [entry.name for entry in api.entries(facts.ref)]
    assert names.count("approval.requested") == 2


def test_a_signature_over_a_withdrawn_tool_is_void_and_a_person_gets_the_case(
    simulator: Simulator, waiting: RunFacts
) -> None:
    asked = permit_of(waiting)
    api.retire_contract("reclaim_limit", 1, actor=OPERATOR, reason="unsafe", withdraw=True)

    drain()

    facts = api.run_facts(waiting.ref)
    assert api.signoff_facts(asked).permit.state is PermitState.WITHDRAWN
    assert facts.handoff is not None
    assert (facts.state, facts.handoff.reason) == (RunState.HANDOFF, "tool_withdrawn")
    assert effects(simulator, "reclaim_limit") == 0
