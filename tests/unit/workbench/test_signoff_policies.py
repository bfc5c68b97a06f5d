"""Who may say yes or no to a request for a signature, and when: persons count, not roles, and never time alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sagas.facts import PermitFacts, RunFacts, SignoffFacts
from sagas.states import CompensationState, PermitState
from tests.unit.workbench.cases import AGENT, NOW, action, case, compensation, frozen, person
from tools.contract import Level
from workbench import policies
from workbench.errors import Answer, Refusal
from workbench.roles import Role

APPROVER = frozenset({Role.APPROVER})
DECIDED = {"decided_by": "priya", "decided_by_name": "Priya", "decided_at": NOW - timedelta(minutes=1)}


def permit(**changes: Any) -> PermitFacts:
    facts = PermitFacts(
        ref="SO-1001",
        state=PermitState.REQUESTED,
        version=1,
        digest="a" * 64,
        document={},
        requesters=(("maya", "Maya"), ("agent:jonas/orders", "orders")),
        requested_at=NOW - timedelta(minutes=5),
        expires_at=NOW + timedelta(minutes=10),
        decided_by="",
        decided_by_name="",
        decided_at=None,
        reason="",
    )
    return replace(facts, **changes)


def request(run: RunFacts | None = None, **changes: Any) -> SignoffFacts:
    of = action(2, "create_shipment", "confirmed")
    of = replace(of, compensation=replace(compensation(of), state=CompensationState.AWAITING_APPROVAL))
    facts = SignoffFacts(
        run=run or case("rejected"),
        action=of,
        permit=permit(),
        unchanged=True,
        level=Level.MEDIUM,
        asked_by="maya",
        asked_by_name="Maya",
        why="The parcel is not needed.",
        newest="SO-1001",
    )
    return replace(facts, **changes)


def refusal(
    who: str = "priya",
    verb: str = "sign",
    roles: frozenset[Role] = APPROVER,
    signoff: SignoffFacts | None = None,
) -> Refusal | None:
    return policies.why_not_signoff(actor=person(who), roles=roles, signoff=signoff or request(), verb=verb)


@pytest.mark.requirement("S3-15", "S0-35")
@pytest.mark.parametrize("verb", ["sign", "reject"])
@pytest.mark.parametrize("role", [*Role, None])
def test_the_role_of_an_approver_decides_and_no_other(verb: str, role: Role | None) -> None:
    refused = refusal(verb=verb, roles=frozenset() if role is None else frozenset({role}))

    assert (refused is None) == (role is Role.APPROVER)
    if refused is not None:
        assert refused.answer is Answer.FORBIDDEN


@pytest.mark.requirement("S0-35")
def test_no_set_of_roles_lets_a_requester_sign() -> None:
    sets = [frozenset(some) for n in range(7) for some in itertools.combinations(Role, n)]
    asked = request()

    for who in ("maya", "jonas"):
        for roles in sets:
            refused = refusal(who, roles=roles, signoff=asked)
            assert refused is not None, (who, roles)
            assert refused.answer is Answer.FORBIDDEN


@pytest.mark.requirement("S3-14", "S4-18")
@pytest.mark.parametrize("verb", ["sign", "reject"])
def test_no_agent_decides_whatever_roles_are_claimed_for_it(verb: str) -> None:
    refused = policies.why_not_signoff(actor=AGENT, roles=frozenset(Role), signoff=request(), verb=verb)

    assert refused is not None
    assert refused.code == "people_only"


@pytest.mark.parametrize(
    ("actor_id", "answers"),
    [
        ("maya", "maya"),
        ("agent:maya/orders", "maya"),
        ("integration:maya/crm", "maya"),
        ("agent:front-office", "agent:front-office"),
        ("somebody:maya/orders", "somebody:maya/orders"),
        ("maya/orders", "maya/orders"),
    ],
)
def test_a_token_answers_to_its_owner(actor_id: str, answers: str) -> None:
    assert policies.accountable(actor_id) == answers


@pytest.mark.parametrize(
    ("who", "sentence"),
    [
        ("maya", "You asked for it, someone else must sign."),
        ("jonas", "orders acts for you and worked on it, someone else must sign."),
    ],
)
def test_the_sentence_says_what_the_hand_in_it_was(who: str, sentence: str) -> None:
    refused = refusal(who)

    assert refused is not None
    assert str(refused.sentence) == sentence


def test_a_requester_may_say_no() -> None:
    assert refusal("maya", "reject") is None


@pytest.mark.parametrize("seconds", [-1, 0])
@pytest.mark.parametrize("verb", ["sign", "reject"])
def test_the_edge_of_the_time_is_over(verb: str, seconds: int) -> None:
    late = request(permit=permit(expires_at=NOW + timedelta(seconds=seconds)))

    refused = refusal(verb=verb, signoff=late)

    assert refused is not None
    assert (refused.answer, refused.code) == (Answer.EXPIRED, "request_expired")
    assert refusal(verb=verb, signoff=request(permit=permit(expires_at=NOW + timedelta(seconds=1)))) is None


@pytest.mark.parametrize(
    ("state", "code", "says"),
    [
        (PermitState.GRANTED, "decided", "Priya signed this at 10:29:00."),
        (PermitState.CONSUMED, "decided", "Priya signed this at 10:29:00."),
        (PermitState.REJECTED, "decided", "Priya rejected this at 10:29:00."),
        (PermitState.WITHDRAWN, "void", "This request is void"),
        (PermitState.EXPIRED, "request_expired", "Expired 10:40:00. Nothing ran."),
    ],
)
def test_what_is_over_says_how(state: PermitState, code: str, says: str) -> None:
    refused = refusal("rosa", signoff=request(permit=permit(state=state, **DECIDED)))

    assert refused is not None
    assert refused.code == code
    assert str(refused.sentence).startswith(says)


def test_a_call_that_has_changed_is_not_signed_but_can_be_rejected() -> None:
    changed = request(unchanged=False)

    refused = refusal(signoff=changed)

    assert refused is not None
    assert (refused.answer, refused.code) == (Answer.CONFLICT, "call_changed")
    assert refusal(verb="reject", signoff=changed) is None


@pytest.mark.requirement("S4-1")
@pytest.mark.parametrize(
    ("scope", "where", "stopped"),
    [
        ("writes", "all", True),
        ("everything", "tool:cancel_shipment", True),
        ("forward", "all", False),
        ("writes", "tool:send_notice", False),
    ],
)
def test_a_freeze_that_covers_the_call_takes_no_signature(scope: str, where: str, stopped: bool) -> None:
    iced = request(case("rejected", freezes=(frozen(scope, where),)))

    refused = refusal(signoff=iced)

    assert (refused is not None) == stopped
    assert refused is None or refused.answer is Answer.FROZEN
    assert refusal(verb="reject", signoff=iced) is None


@pytest.mark.parametrize(
    ("level", "amount", "risk", "note"),
    [
        (Level.LOW, "", Level.LOW, False),
        (Level.MEDIUM, "129.00", Level.MEDIUM, False),
        (Level.MEDIUM, "10000", Level.HIGH, True),
        (Level.HIGH, "", Level.HIGH, True),
        (Level.LOW, "250000.00", Level.CRITICAL, True),
    ],
)
def test_the_risk_is_the_higher_of_contract_and_amount_and_asks_for_a_note(
    level: Level, amount: str, risk: Level, note: bool
) -> None:
    assert policies.signoff_risk(level, amount) is risk
    assert policies.note_needed(risk) is note
