"""Signatures as commands: another person, the very call, in time, once; what is refused leaves its entry only."""

from __future__ import annotations

from typing import Any

import pytest

from sagas import api
from sagas.facts import Actor, ActorKind, SignoffFacts
from sagas.permits import LIFE_MINUTES
from sagas.states import PermitState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import REFUSED
from tests.integration.workbench.flows import REASON, Desk
from tests.integration.workbench.signing import decide
from workbench.commands import Result, dispatch, people, signoff_offers
from workbench.errors import Answer
from workbench.labs import cast
from workbench.models import Receipt
from workbench.roles import Role


@pytest.fixture
def signed_orders(workplace: Simulator) -> Simulator:
    signing.publish()
    workplace.plan(REFUSED)
    return workplace


@pytest.fixture
def request_of_run(signed_orders: Simulator) -> SignoffFacts:
    return signing.asked_by_itself()


def called_off(world: Simulator) -> int:
    return len(world.ledger(tool="cancel_shipment", kind="effect"))


def state(signoff: SignoffFacts) -> PermitState:
    return api.signoff_facts(signoff.permit.ref).permit.state


def refusals(signoff: SignoffFacts) -> list[str]:
    entries = api.entries(signoff.run.ref)
    return [
        entry.after["code"]
        for entry in entries
        if entry.name == "command.refused" and isinstance(entry.after, dict)
    ]


@pytest.mark.requirement("S0-35", "S0-7", "S4-25")
def test_a_signature_of_another_person_lets_the_call_run_once(
    request_of_run: SignoffFacts, signed_orders: Simulator
) -> None:
    result = decide("priya", "sign", request_of_run)

    assert (result.status, result.http_status, result.scheduled) == (Answer.ACCEPTED, 202, True)
    facts = signing.drive_until_still(request_of_run.run.ref)
    assert facts.state is RunState.COMPENSATED
    assert called_off(signed_orders) == 1
    signed = api.signoff_facts(request_of_run.permit.ref).permit
    assert (signed.state, signed.decided_by, signed.reason) == (PermitState.CONSUMED, "priya", REASON)
    (entry,) = [one for one in api.entries(facts.ref) if one.name == "approval.settled"]
    assert (entry.actor_id, entry.role, entry.reason) == ("priya", "approver", REASON)


@pytest.mark.requirement("S1-6", "S1-9")
def test_a_second_click_shows_the_first_signature_and_gives_no_other(request_of_run: SignoffFacts) -> None:
    first = decide("priya", "sign", request_of_run)
    second = decide("priya", "sign", request_of_run)

    assert (second.status, second.http_status, second.replayed) == (Answer.DUPLICATE, 200, True)
    assert second.at == first.at
    assert Receipt.objects.count() == 1


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize("username", ["maya", "jonas", "lin", "oskar", "ada"])
@pytest.mark.parametrize("verb", ["sign", "reject"])
def test_only_approvers_decide_not_leads_and_not_admins(
    request_of_run: SignoffFacts, username: str, verb: str
) -> None:
    result = decide(username, verb, request_of_run)

    assert (result.status, result.code, result.http_status) == (Answer.FORBIDDEN, "role", 403)
    assert state(request_of_run) is PermitState.REQUESTED
    assert refusals(request_of_run) == ["role"]


@pytest.mark.requirement("S3-14", "S4-18")
@pytest.mark.parametrize("verb", ["sign", "reject"])
def test_no_token_and_no_agent_decides_whatever_its_owner_may(
    request_of_run: SignoffFacts, verb: str
) -> None:
    agent = Actor(kind=ActorKind.AGENT, id="agent:priya/helper", name="helper", role="agent")

    result = dispatch(
        actor=agent,
        person=flows.person("priya"),
        verb=verb,
        signoff_ref=request_of_run.permit.ref,
        command_id="a-1",
        arguments={"digest": request_of_run.permit.digest, "reason": REASON},
        door="test",
    )

    assert (result.code, result.http_status) == ("people_only", 403)
    assert state(request_of_run) is PermitState.REQUESTED


@pytest.mark.requirement("S0-35")
def test_who_asked_never_signs_whatever_roles_they_are_given(signed_orders: Simulator) -> None:
    asked = signing.asked_by("maya")
    signing.grant("maya", *Role)

    result = decide("maya", "sign", asked)

    assert (result.code, result.http_status) == ("own_request", 403)
    assert str(result.sentence) == "You asked for it, someone else must sign."
    assert refusals(asked) == ["own_request"]
    assert decide("priya", "sign", asked, "d-2").accepted


def test_who_worked_on_the_case_does_not_sign_even_if_another_asked(signed_orders: Simulator) -> None:
    facts = signing.drive_until_still(flows.start(signing.BY_PEOPLE))
    assert facts.handoff is not None
    Desk("jonas").run("claim", facts.handoff.ref, "c-1")
    Desk("jonas").run("release", facts.handoff.ref, "c-2")
    Desk("maya").run("compensate", facts.handoff.ref, "c-3", reason=REASON)
    made_up = signing.drive_until_still(facts.ref).action("create_shipment").compensation
    assert made_up is not None
    assert made_up.permit is not None
    asked = api.signoff_facts(made_up.permit.ref)
    signing.grant("jonas", Role.APPROVER)

    result = decide("jonas", "sign", asked)

    assert (result.code, str(result.sentence)) == (
        "own_request",
        "You worked on it, someone else must sign.",
    )
    assert (asked.asked_by, asked.why) == ("maya", REASON)


def test_who_answers_for_the_agent_that_started_it_does_not_sign(request_of_run: SignoffFacts) -> None:
    signing.grant("maya", Role.APPROVER)

    result = decide("maya", "sign", request_of_run)

    assert (result.code, result.http_status) == ("own_request", 403)
    assert str(result.sentence) == "orders acts for you and worked on it, someone else must sign."


def test_who_asked_may_still_say_no(signed_orders: Simulator) -> None:
    asked = signing.asked_by("maya")
    signing.grant("maya", Role.APPROVER)

    assert decide("maya", "reject", asked).accepted


@pytest.mark.requirement("S0-35")
def test_another_digest_than_the_one_shown_takes_no_signature(request_of_run: SignoffFacts) -> None:
    result = decide("priya", "sign", request_of_run, digest="0" * 64, saw_version=1)

    version = request_of_run.run.version
    assert (result.status, result.code, result.http_status) == (Answer.CONFLICT, "stale", 409)
    assert str(result.sentence).startswith(f"The case went from version 1 to {version} at ")
    assert str(result.sentence).endswith("No signature was taken.")
    assert state(request_of_run) is PermitState.REQUESTED


def test_a_form_without_the_digest_is_a_mistake_in_the_form(request_of_run: SignoffFacts) -> None:
    result = decide("priya", "sign", request_of_run, digest=None)

    assert (result.status, list(result.field_errors)) == (Answer.INVALID, ["digest"])


def test_what_is_decided_is_told_with_who_and_when(request_of_run: SignoffFacts) -> None:
    decide("priya", "reject", request_of_run)
    signing.newcomer("rosa", Role.APPROVER)

    result = decide("rosa", "sign", request_of_run)

    assert (result.status, result.code) == (Answer.CONFLICT, "decided")
    assert "Priya Nair rejected this at" in str(result.sentence)


@pytest.mark.requirement("S0-7")
def test_too_late_is_told_with_the_time_and_nothing_ran(
    signed_orders: Simulator, clock_of_tests: Clock
) -> None:
    asked = signing.asked_by_itself()
    clock_of_tests.put_forward(LIFE_MINUTES * 60 + 1)

    before = decide("priya", "sign", asked)
    facts = signing.drive_until_still(asked.run.ref)
    after = decide("priya", "sign", asked, "d-2")

    for result in (before, after):
        assert (result.status, result.code, result.http_status) == (Answer.EXPIRED, "request_expired", 410)
        assert str(result.sentence).startswith("Expired ")
    assert (facts.state, called_off(signed_orders)) == (RunState.HANDOFF, 0)
    assert facts.handoff is not None
    assert facts.handoff.reason == "approval_expired"


def test_a_rejection_needs_a_reason_and_hands_the_case_to_people(
    request_of_run: SignoffFacts, signed_orders: Simulator
) -> None:
    short = decide("priya", "reject", request_of_run, reason="no")
    done = decide("priya", "reject", request_of_run, "d-2")
    facts = signing.drive_until_still(request_of_run.run.ref)

    assert (short.status, list(short.field_errors)) == (Answer.INVALID, ["reason"])
    assert (done.status, str(done.sentence).endswith("Nothing ran.")) == (Answer.ACCEPTED, True)
    assert (facts.state, called_off(signed_orders)) == (RunState.HANDOFF, 0)
    made_up = facts.action("create_shipment").compensation
    assert made_up is not None
    assert REASON in made_up.error_detail


@pytest.mark.parametrize(("amount", "needed"), [("129.00", False), ("12000.00", True)])
def test_a_note_is_needed_from_high_risk(signed_orders: Simulator, amount: str, needed: bool) -> None:
    asked = signing.asked_by_itself(amount=amount)

    result = decide("priya", "sign", asked, reason="")

    assert (result.status is Answer.INVALID) == needed
    assert list(result.field_errors) == (["reason"] if needed else [])


@pytest.mark.requirement("S4-1")
def test_a_freeze_takes_no_signature_but_lets_people_say_no(request_of_run: SignoffFacts) -> None:
    Desk("lin").run("freeze", "", "f-1", scope="writes", reason="The carrier moves its systems")

    signed = decide("priya", "sign", request_of_run)
    rejected = decide("priya", "reject", request_of_run, "d-2")

    assert (signed.status, signed.http_status) == (Answer.FROZEN, 423)
    assert rejected.accepted


def test_a_void_request_says_so_and_names_the_newer_one(
    request_of_run: SignoffFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide("priya", "sign", request_of_run)
    people.take_role(
        actor=cast.SYSTEM, person=flows.person("priya"), role=Role.APPROVER, reason="Left the team"
    )
    signing.drive_until_still(request_of_run.run.ref)
    signing.newcomer("rosa", Role.APPROVER)

    old = decide("rosa", "sign", request_of_run)
    newest = api.signoff_facts(request_of_run.permit.ref).newest

    assert (old.status, old.code) == (Answer.CONFLICT, "void")
    assert str(old.sentence).startswith("The case went from version")
    assert newest != request_of_run.permit.ref
    assert decide("rosa", "sign", api.signoff_facts(newest), "d-2").accepted


@pytest.mark.requirement("S0-35")
@pytest.mark.parametrize("how", ["role", "account"])
def test_a_signature_is_void_with_the_right_it_was_given_in(
    request_of_run: SignoffFacts, signed_orders: Simulator, how: str
) -> None:
    decide("priya", "sign", request_of_run)
    priya = flows.person("priya")
    if how == "role":
        people.take_role(actor=cast.SYSTEM, person=priya, role=Role.APPROVER, reason="Left the team")
    else:
        people.switch_off(actor=cast.SYSTEM, person=priya, reason="Left the house")

    assert state(request_of_run) is PermitState.WITHDRAWN
    facts = signing.drive_until_still(request_of_run.run.ref)

    assert (facts.state, called_off(signed_orders)) == (RunState.AWAITING_APPROVAL, 0)
    again = decide("priya", "sign", api.signoff_facts(api.signoffs().rows[0].ref), "d-2")
    assert (again.status, again.code) == (Answer.FORBIDDEN, "no_role")


def test_another_lost_role_leaves_the_signature(request_of_run: SignoffFacts) -> None:
    priya = signing.grant("priya", Role.AUDITOR)
    decide("priya", "sign", request_of_run)

    people.take_role(actor=cast.SYSTEM, person=priya, role=Role.AUDITOR, reason="No audit this year")

    assert state(request_of_run) is PermitState.GRANTED


def test_whoever_signed_before_may_sign_again_when_time_ran_out_unused(
    request_of_run: SignoffFacts, clock_of_tests: Clock
) -> None:
    decide("priya", "sign", request_of_run)
    clock_of_tests.put_forward(LIFE_MINUTES * 60 + 1)
    signing.drive_until_still(request_of_run.run.ref)
    newest = api.signoff_facts(request_of_run.permit.ref).newest

    again = decide("priya", "sign", api.signoff_facts(newest), "d-2")

    assert newest != request_of_run.permit.ref
    assert again.accepted, again


def test_what_a_page_offers_is_what_a_forced_request_is_told(signed_orders: Simulator) -> None:
    asked = signing.asked_by("maya")
    signing.grant("maya", Role.APPROVER)

    for username in [member.username for member in cast.CAST]:
        desk = Desk(username)
        for offer in signoff_offers(asked, desk.actor, desk.person):
            if offer.allowed:
                continue
            forced: Any = decide(username, offer.verb, asked, f"{username}-{offer.verb}")
            assert (forced.code, str(forced.sentence)) == (offer.code, str(offer.sentence))
    assert state(asked) is PermitState.REQUESTED


def test_a_signoff_that_is_not_there_is_answered_as_such(workplace: Simulator) -> None:
    desk = Desk("priya")

    result = dispatch(
        actor=desk.actor,
        person=desk.person,
        verb="sign",
        signoff_ref="SO-9",
        command_id="x-1",
        arguments={"digest": "0"},
        door="test",
    )

    assert (result.status, result.http_status) == (Answer.NOT_FOUND, 404)


@pytest.mark.requirement("S0-35")
def test_a_request_that_is_withdrawn_takes_no_signature_runs_nothing_and_can_be_asked_for_anew(
    signed_orders: Simulator,
) -> None:
    asked = signing.asked_by("maya")
    desk = Desk("maya")

    def withdraw(command_id: str, reason: str) -> Result:
        return dispatch(
            actor=desk.actor,
            person=desk.person,
            verb="withdraw_signoff",
            run_ref=asked.run.ref,
            command_id=command_id,
            arguments={"reason": reason},
            door="test",
        )

    short, done, again = withdraw("w-1", "no"), withdraw("w-2", REASON), withdraw("w-3", REASON)
    late = decide("priya", "sign", asked)
    facts = signing.drive_until_still(asked.run.ref)

    assert (short.status, set(short.field_errors)) == (Answer.INVALID, {"reason"})
    assert done.accepted, done
    assert again.code == "nothing_asked"
    assert state(asked) is PermitState.WITHDRAWN
    assert (late.status, late.code) == (Answer.CONFLICT, "void")
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert called_off(signed_orders) == 0

    assert desk.run("compensate", facts.handoff.ref, "c-2", reason=REASON).accepted
    made_up = signing.drive_until_still(facts.ref).action("create_shipment").compensation
    assert made_up is not None
    assert made_up.permit is not None
    assert (made_up.permit.state, made_up.permit.ref != asked.permit.ref) == (PermitState.REQUESTED, True)
