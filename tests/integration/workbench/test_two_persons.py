"""A word on what cannot be taken back and is unknown: kept until a second, different person confirms it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Proposal
from sagas.states import ActionState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import people
from workbench.errors import Answer
from workbench.labs import cast
from workbench.roles import Role

STEP = "send_notice"


@pytest.fixture
def settled_notice(unknown_notice: RunFacts, clock_of_tests: Clock) -> RunFacts:
    """The notice is unknown, and every limit has passed by now."""
    clock_of_tests.put_forward(60)
    return unknown_notice


def stated(who: str, ref: str, verb: str = "resolve_not_happened", **arguments: Any) -> Any:
    given = {"step": STEP} if verb != "mark_acceptable" else {}
    return Desk(who).run(verb, ref, f"{who}-{verb}", reason=REASON, **given, **arguments)


def states_of(run_ref: str) -> list[str]:
    return list(Proposal.objects.filter(run__ref=run_ref).order_by("id").values_list("state", flat=True))


def names(run_ref: str) -> list[str]:
    return [name for name in flows.names(run_ref) if name.startswith("verdict.")]


@pytest.mark.requirement("S3-8", "S3-15")
def test_that_it_did_not_happen_counts_once_a_second_person_confirms_it(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)

    first = stated("maya", ref)
    kept = api.handoff_facts(ref)
    own = Desk("maya").run("decline_verdict", ref, "own-look", preview_id="", reason=REASON)
    mine = Desk("jonas").run("confirm_verdict", ref, "j-1", reason=REASON)

    assert first.accepted
    assert "second person" in str(first.sentence)
    assert kept.action(STEP).state is ActionState.UNKNOWN
    assert kept.proposal is not None
    assert (kept.proposal.proposed_by_name, kept.proposal.reason) == ("Maya Okafor", REASON)
    assert own.code == "preview_needed"
    assert mine.accepted, mine
    facts = api.run_facts(settled_notice.ref)
    assert facts.action(STEP).state is ActionState.REJECTED
    assert facts.proposal is None
    assert "Maya Okafor and Jonas Brandt" in facts.action(STEP).error_detail
    assert names(facts.ref) == ["verdict.proposed", "verdict.confirmed"]
    assert states_of(facts.ref) == ["confirmed"]


@pytest.mark.requirement("S3-15")
def test_nobody_confirms_their_own_and_a_third_cannot_confirm_twice(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    jonas, lin = Desk("jonas"), Desk("lin")
    late = lin.preview(ref, "confirm_verdict")

    with pytest.raises(Exception, match="You stated it"):
        Desk("maya").preview(ref, "confirm_verdict")
    forced = Desk("maya").run("confirm_verdict", ref, "m-2", preview_id="pv_none", reason=REASON)
    done = jonas.run("confirm_verdict", ref, "j-1", reason=REASON)
    third = lin.run("confirm_verdict", ref, "l-1", preview_id=late, reason=REASON)

    assert (forced.status, forced.code) == (Answer.FORBIDDEN, "own_proposal")
    assert done.accepted
    assert (third.status, third.code) == (Answer.CONFLICT, "stale")
    assert states_of(settled_notice.ref) == ["confirmed"]


def test_declined_or_taken_back_it_leaves_the_question_open(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    declined = Desk("jonas").run("decline_verdict", ref, "j-1", reason=REASON)
    Desk("maya").run("resolve_not_happened", ref, "m-2", step=STEP, reason=REASON)
    back = Desk("maya").run("decline_verdict", ref, "m-3", reason=REASON)

    assert declined.accepted
    assert back.accepted
    facts = api.handoff_facts(ref)
    assert facts.action(STEP).state is ActionState.UNKNOWN
    assert states_of(facts.ref) == ["declined", "declined"]


def test_it_expires_by_itself_and_then_says_nothing(settled_notice: RunFacts, clock_of_tests: Clock) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    late = Desk("jonas").preview(ref, "confirm_verdict")
    clock_of_tests.put_forward(3601)

    refused = Desk("jonas").run("confirm_verdict", ref, "j-1", preview_id=late, reason=REASON)
    flows.drive_until_still(settled_notice.ref)

    assert refused.code == "no_proposal"
    assert states_of(settled_notice.ref) == ["expired"]
    assert "verdict.expired" in names(settled_notice.ref)
    assert api.run_facts(settled_notice.ref).action(STEP).state is ActionState.UNKNOWN


@pytest.mark.requirement("S3-17")
def test_evidence_that_comes_in_between_makes_it_void(settled_notice: RunFacts, workplace: Simulator) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    late = Desk("jonas").preview(ref, "confirm_verdict")
    workplace.plan({"tool": "query_notice", "mode": "ok"})

    asked = Desk("jonas").run("query_status", ref, "q-0", preview_id="", step=STEP)
    assert Desk("maya").run("query_status", ref, "q-1", step=STEP).accepted, asked
    flows.drive_until_still(settled_notice.ref)
    refused = Desk("jonas").run("confirm_verdict", ref, "j-1", preview_id=late, reason=REASON)

    facts = api.run_facts(settled_notice.ref)
    assert facts.action(STEP).state is ActionState.CONFIRMED
    assert refused.status is Answer.CONFLICT
    assert states_of(facts.ref) == ["void"]


@pytest.mark.requirement("S0-35")
def test_with_the_right_goes_what_was_stated_and_the_right_to_confirm(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    late = Desk("jonas").preview(ref, "confirm_verdict")
    jonas = Desk("jonas")
    people.take_role(actor=cast.SYSTEM, person=jonas.person, role=Role.OPERATOR, reason="moves on")

    refused = jonas.run("confirm_verdict", ref, "j-1", preview_id=late, reason=REASON)
    people.take_role(actor=cast.SYSTEM, person=flows.person("maya"), role=Role.OPERATOR, reason="moves on")

    assert refused.status is Answer.FORBIDDEN
    assert states_of(settled_notice.ref) == ["void"]


@pytest.mark.requirement("S0-26")
def test_an_unknown_irreversible_step_is_accepted_by_two(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)

    first = stated("maya", ref, "mark_acceptable", end_state="notice_to_be_confirmed")
    open_still = api.handoff_facts(ref)
    second = Desk("jonas").run("confirm_verdict", ref, "j-1", reason=REASON)

    facts = api.run_facts(settled_notice.ref)
    assert first.accepted
    assert open_still.state is RunState.HANDOFF
    assert second.accepted, second
    assert (facts.state, facts.action(STEP).state) == (RunState.CLOSED_ACCEPTED, ActionState.ACCEPTED)
    assert STEP in facts.effects_left
    assert states_of(facts.ref) == ["confirmed"]


def test_the_page_and_the_interface_show_what_waits(settled_notice: RunFacts) -> None:
    ref = ref_of(settled_notice)
    stated("maya", ref)
    client = Client()
    client.force_login(flows.person("jonas"))

    page = client.get(f"/handoffs/{ref}/").content.decode()
    document = client.get(f"/api/v1/handoffs/{ref}").json()
    preview = client.post(
        f"/api/v1/handoffs/{ref}/previews", {"verb": "confirm_verdict"}, content_type="application/json"
    )
    done = client.post(
        f"/api/v1/handoffs/{ref}/commands/confirm_verdict",
        {"preview": preview.json()["preview"], "reason": REASON},
        content_type="application/json",
        headers={"Idempotency-Key": "j-1"},
    )

    assert "did not happen" in page
    assert 'id="waiting"' in page
    assert document["proposal"]["proposed_by"] == "Maya Okafor"
    assert {"confirm_verdict", "decline_verdict"} <= {offer["verb"] for offer in document["offers"]}
    assert done.status_code == 200, done.json()


def test_a_proposal_is_guarded_by_the_database(settled_notice: RunFacts) -> None:
    stated("maya", ref_of(settled_notice))
    row = Proposal.objects.get(run__ref=settled_notice.ref)

    with pytest.raises(Exception, match="without an entry"), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sagas_proposal SET state = 'confirmed', version = version + 1 WHERE id = %s", [row.pk]
        )
    assert row.expires_at - row.proposed_at == timedelta(hours=1)
