"""Who may do what, when: every role, every verb, each reason in its order, without a database."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sagas.facts import Actor, PreviewFacts, ProposalFacts, RunFacts
from sagas.states import CompensationState, Direction, HandoffState, RunState
from tests.unit.workbench.cases import AGENT, NOW, action, case, claimed, frozen, handoff, person
from tools.contract import Level
from workbench import policies
from workbench.commands import COMMANDS
from workbench.errors import Answer, Refusal
from workbench.policies import Permission
from workbench.roles import Role

SETTLERS = {Role.OPERATOR, Role.LEAD, Role.APPROVER}


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan needs the published contracts; here nothing in it is irreversible."""
    plan = PreviewFacts(verb="", step="", calls=(), outcomes=(), irreversible=(), needs_signoff=False)
    monkeypatch.setattr("sagas.api.preview", lambda *_, **__: plan)


def refusal(
    verb: str,
    facts: RunFacts | None = None,
    *,
    who: str = "maya",
    role: Role | None = Role.OPERATOR,
    step: str = "",
) -> Refusal | None:
    roles = frozenset() if role is None else frozenset({role})
    return policies.why_not(actor=person(who), roles=roles, facts=facts or case(), verb=verb, step=step)


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize("role", [*Role, None])
@pytest.mark.parametrize("verb", COMMANDS)
def test_only_those_who_settle_cases_hold_any_verb(verb: str, role: Role | None) -> None:
    refused = refusal(verb, role=role)

    if role in policies.HOLDERS[policies.permission_of(verb)]:
        assert refused is None or refused.answer is not Answer.FORBIDDEN or refused.code == "risk_limit"
    else:
        assert refused is not None
        assert refused.answer is Answer.FORBIDDEN
        assert "approver" in str(refused.sentence)


@pytest.mark.requirement("S3-14", "S4-18")
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_agent_holds_no_verb_whatever_roles_are_claimed_for_it(verb: str) -> None:
    refused = policies.why_not(actor=AGENT, roles=frozenset(Role), facts=case(), verb=verb)

    assert refused is not None
    assert refused.code == "people_only"


def test_a_case_held_by_another_says_who_and_since_when() -> None:
    refused = refusal("retry", case("rejected", handoff=claimed("jonas")), step="send_notice")

    assert refused is not None
    assert (refused.answer, refused.code) == (Answer.CONFLICT, "held")
    assert str(refused.sentence) == "Jonas works on this since 10:27."


def test_an_expired_claim_is_free() -> None:
    lapsed = case("rejected", handoff=claimed("jonas", minutes_left=0))

    assert refusal("claim", lapsed) is None
    assert refusal("retry", lapsed, step="send_notice") is None


def test_a_lead_may_take_a_claim_over_and_an_operator_may_not() -> None:
    held = case(handoff=claimed("jonas"))

    assert refusal("claim", held, who="lin", role=Role.LEAD) is None
    assert refusal("claim", held) is not None
    assert refusal("query_status", held, who="lin", role=Role.LEAD, step="send_notice") is not None


def test_a_remark_needs_no_claim_and_only_the_holder_releases() -> None:
    held = case(handoff=claimed("jonas"))

    assert refusal("comment", held) is None
    assert refusal("release", held, who="jonas") is None
    not_mine = refusal("release", held)
    assert not_mine is not None
    assert not_mine.code == "not_yours"


def test_a_closed_case_takes_nothing_but_a_remark_and_being_reopened_as_a_new_one() -> None:
    settled = handoff(state=HandoffState.RESOLVED, resolved_at=NOW - timedelta(minutes=1))
    closed = case(handoff=settled, handoffs=(settled,), state=RunState.CLOSED_ACCEPTED)

    for verb in COMMANDS:
        refused = refusal(verb, closed)
        assert (refused is None) == (verb in ("comment", "reopen")), verb


def test_only_what_somebody_else_holds_can_be_asked_for() -> None:
    for facts, code in (
        (case(handoff=claimed("jonas")), None),
        (case(handoff=claimed("maya")), "yours"),
        (case(), "not_held"),
    ):
        refused = refusal("ask_for_case", facts)
        assert (refused.code if refused else None) == code


@pytest.mark.requirement("S4-1")
@pytest.mark.parametrize(
    ("scope", "stopped"),
    [
        ("forward", {"retry", "edit_and_retry", "redo", "resume"}),
        ("writes", {"retry", "edit_and_retry", "redo", "resume", "compensate", "continue_compensation"}),
        (
            "everything",
            {
                "retry",
                "edit_and_retry",
                "redo",
                "resume",
                "compensate",
                "confirm_verdict",
                "continue_compensation",
                "skip_compensation",
                "resolve_happened",
                "resolve_not_happened",
                "mark_acceptable",
                "accept_items",
            },
        ),
    ],
)
def test_a_freeze_stops_what_its_scope_says_and_never_a_status_query(scope: str, stopped: set[str]) -> None:
    facts = case(freezes=(frozen(scope),))

    assert {verb for verb in COMMANDS if policies.freeze_on(facts, verb)} == stopped


@pytest.mark.requirement("S4-1")
def test_a_freeze_only_covers_its_place() -> None:
    at = {
        place: policies.freeze_on(
            case("rejected", freezes=(frozen("forward", place),)), "retry", "send_notice"
        )
        for place in (
            "all",
            "workflow:order_fulfilment",
            "team:fulfilment",
            "tool:send_notice",
            "tool:send_sms",
        )
    }

    assert [place for place, freeze in at.items() if freeze is None] == ["tool:send_sms"]


def test_a_frozen_verb_says_by_whom_and_why() -> None:
    refused = refusal("retry", case("rejected", freezes=(frozen("forward"),)), step="send_notice")

    assert refused is not None
    assert refused.answer is Answer.FROZEN
    assert "Ada" in str(refused.sentence)
    assert "the CRM moves" in str(refused.sentence)


@pytest.mark.requirement("S0-11", "S0-16", "S3-10")
def test_a_blind_retry_of_an_unknown_send_is_refused_for_everybody() -> None:
    for role in SETTLERS:
        refused = refusal("retry", role=role, step="send_notice")
        assert refused is not None
        assert refused.code == "unknown_and_no_key"


@pytest.mark.parametrize(
    ("amount", "level"),
    [
        ("", Level.LOW),
        ("free", Level.LOW),
        ("999.99", Level.LOW),
        ("1000", Level.MEDIUM),
        ("-10000", Level.HIGH),
        ("250000.00", Level.CRITICAL),
    ],
)
def test_the_amount_has_its_band(amount: str, level: Level) -> None:
    assert policies.amount_level(amount) is level


@pytest.mark.parametrize(
    ("amount", "may"),
    [
        ("129.00", {Role.OPERATOR, Role.LEAD, Role.APPROVER}),
        ("12000.00", {Role.LEAD}),
        ("120000.00", set()),
    ],
)
def test_risk_limits_who_decides_and_the_sentence_says_who_can(amount: str, may: set[Role]) -> None:
    facts = case("rejected", amount=amount)

    allowed = {role for role in SETTLERS if refusal("mark_acceptable", facts, role=role) is None}

    assert allowed == may
    if Role.OPERATOR not in may:
        refused = refusal("mark_acceptable", facts)
        assert refused is not None
        assert refused.code == "risk_limit"
        assert ("lead" in str(refused.sentence)) == (Role.LEAD in may)


def proposal(by: str = "maya", **changes: Any) -> ProposalFacts:
    facts = ProposalFacts(
        ref="VP-1001",
        handoff_id=1,
        verb="resolve_not_happened",
        step="send_notice",
        reference="",
        end_state="",
        proposed_by=by,
        proposed_by_name=by.title(),
        reason="Nothing at the gateway.",
        proposed_at=NOW - timedelta(minutes=5),
        expires_at=NOW + timedelta(minutes=55),
        shapers=(),
    )
    return replace(facts, **changes)


@pytest.mark.requirement("S3-15")
def test_nobody_confirms_what_they_or_somebody_who_acts_for_them_stated_or_worked_on() -> None:
    waits = case(proposal=proposal(shapers=(("lin", "Lin"), ("agent:rosa/triage", "triage"))))

    codes = {}
    for who in ("maya", "lin", "rosa", "jonas"):
        refused = refusal("confirm_verdict", waits, who=who)
        codes[who] = refused.code if refused else ""
    assert codes == {"maya": "own_proposal", "lin": "own_proposal", "rosa": "own_proposal", "jonas": ""}
    assert all(refusal("decline_verdict", waits, who=who) is None for who in codes)
    held = replace(waits, handoff=claimed("maya"))
    assert refusal("confirm_verdict", held, who="jonas") is None


def test_a_second_person_needs_the_limit_of_what_they_confirm() -> None:
    waits = case(proposal=proposal(verb="mark_acceptable", step=""), amount="20000")

    operator = refusal("confirm_verdict", waits, who="jonas")
    lead = refusal("confirm_verdict", waits, who="lin", role=Role.LEAD)

    assert operator is not None
    assert (operator.code, lead) == ("risk_limit", None)


def test_what_has_lapsed_is_not_confirmed_and_while_it_waits_nothing_else_is_stated() -> None:
    late = case(proposal=proposal(expires_at=NOW))
    waits = case(proposal=proposal())

    expired = refusal("confirm_verdict", late, who="jonas")
    assert expired is not None
    assert expired.code == "no_proposal"
    for verb in ("resolve_happened", "resolve_not_happened", "mark_acceptable"):
        refused = refusal(verb, waits, who="jonas", step="send_notice")
        assert refused is not None
        assert refused.code == "proposal_waits"
        again = refusal(verb, late, who="jonas", step="send_notice")
        assert again is None or again.code != "proposal_waits"


@pytest.mark.parametrize("role", [*Role, None])
def test_admins_and_nobodies_see_no_case_and_only_lead_and_admin_lift_a_freeze(role: Role | None) -> None:
    roles = frozenset() if role is None else frozenset({role})
    may = {
        permission
        for permission in Permission
        if policies.why_not_permitted(actor=person("x"), roles=roles, permission=permission) is None
    }

    assert (Permission.READ in may) == (role in {*SETTLERS, Role.AUDITOR, Role.OWNER})
    assert (Permission.UNFREEZE in may) == (role in {Role.LEAD, Role.ADMIN})
    assert (Permission.FREEZE in may) == (role in {*SETTLERS, Role.ADMIN})


@pytest.mark.requirement("S4-2")
def test_only_people_who_read_cases_see_every_run() -> None:
    def sees_all(actor: Actor, *roles: Role) -> bool:
        return policies.sees_all_runs(actor=actor, roles=frozenset(roles))

    assert sees_all(person("o", "auditor"), Role.AUDITOR)
    assert not sees_all(person("a", "admin"), Role.ADMIN)
    assert not sees_all(AGENT, *Role)


def test_a_compensation_is_left_out_by_an_approver_or_a_lead_alone() -> None:
    failed = action(1, "reserve_stock", "confirmed")
    assert failed.compensation is not None
    failed = replace(failed, compensation=replace(failed.compensation, state=CompensationState.FAILED))
    facts = replace(case(), actions=(failed,), direction=Direction.UNDO)

    by_role = {role: refusal("skip_compensation", facts, role=role, step="reserve_stock") for role in Role}

    assert {role for role, refused in by_role.items() if refused is None} == {Role.APPROVER, Role.LEAD}


def test_a_stop_is_held_up_by_no_freeze() -> None:
    for scope in ("forward", "writes", "everything"):
        assert policies.freeze_on(case(freezes=(frozen(scope),)), "stop_and_compensate") is None
