"""What a button says is what a forced request is told: every verb, role and kind of case, at both doors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Clock
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk, person
from workbench.commands import COMMANDS, Offer, available, dispatch
from workbench.labs.cast import CAST

PEOPLE = [member.username for member in CAST]
# Codes that only come after every rule of permission has been passed.
PASSED = {"invalid", "preview_needed"}


def held(facts: RunFacts) -> RunFacts:
    Desk("jonas").run("claim", ref_of(facts), "jonas-claims")
    return api.handoff_facts(ref_of(facts))


def frozen(facts: RunFacts) -> RunFacts:
    Desk("lin").run("freeze", "", "lin-freezes", scope="everything", reason="The whole landscape moves")
    return api.handoff_facts(ref_of(facts))


def as_it_is(facts: RunFacts) -> RunFacts:
    return facts


STATES: dict[str, tuple[str, Callable[[RunFacts], RunFacts]]] = {
    "unknown": ("unknown_notice", as_it_is),
    "rejected": ("rejected_notice", as_it_is),
    "held by another": ("rejected_notice", held),
    "frozen": ("rejected_notice", frozen),
    "closed": ("closed_case", as_it_is),
}


def wish(offer: Offer) -> dict[str, Any]:
    """Arguments that would do, but for what no permission hangs on: no preview is sent, a remark is empty."""
    given = {
        "step": offer.step or "send_notice",
        "reason": REASON,
        "reference": "MSG-1",
        "end_state": "notice_to_be_confirmed",
        "text": "",
        "args": json.dumps({"order": "O-1", "text": "Once more."}),
        "person": "jonas",
    }
    return {field.name: given[field.name] for field in offer.fields if field.name in given}


@pytest.mark.requirement("S3-14", "S3-15", "S0-46")
@pytest.mark.parametrize("state", STATES)
def test_offer_and_forced_requests_agree(
    state: str, request: pytest.FixtureRequest, clock_of_tests: Clock
) -> None:
    fixture, change = STATES[state]
    found = request.getfixturevalue(fixture)
    # "It may still arrive" must not become untrue between the offer and the forced request.
    clock_of_tests.put_forward(60)
    facts = change(api.handoff_facts(ref_of(found)))
    before = api.run_facts(facts.ref).version
    seen = 0

    for username in PEOPLE:
        desk, client = Desk(username), Client()
        client.force_login(person(username))
        for offer in available(facts, desk.actor, desk.person):
            if offer.allowed and offer.verb in ("claim", "release", "ask_for_case", "reopen"):
                continue  # nothing is left out that they ask for; see the tests of claims, hand-overs and reopening
            expected = PASSED if offer.allowed else {offer.code}
            arguments, number = wish(offer), f"{username}-{offer.verb}-{offer.step}"
            forced = dispatch(
                actor=desk.actor,
                person=desk.person,
                verb=offer.verb,
                handoff_ref=ref_of(facts),
                command_id=number,
                saw_version=facts.version,
                arguments=arguments,
                door="test",
            )
            answer = client.post(
                f"/api/v1/handoffs/{ref_of(facts)}/commands/{offer.verb}",
                json.dumps({**arguments, "saw_version": facts.version}),
                content_type="application/json",
                headers={"Idempotency-Key": f"api-{number}"},
            )
            told = answer.json()
            assert forced.code in expected, (username, offer.verb, offer.step)
            assert (told["code"], answer.status_code) == (forced.code, forced.http_status)
            if not offer.allowed:
                assert str(offer.sentence) == str(forced.sentence) == told["detail"]
            seen += 1

    assert seen >= len(PEOPLE) * (len(COMMANDS) - 11)
    assert api.run_facts(facts.ref).version == before


@pytest.mark.requirement("S3-15", "S4-18")
@pytest.mark.parametrize("verb", COMMANDS)
def test_no_token_runs_any_verb(rejected_notice: RunFacts, agent_client: Client, verb: str) -> None:
    before = api.run_facts(rejected_notice.ref)

    answer = agent_client.post(
        f"/api/v1/handoffs/{ref_of(rejected_notice)}/commands/{verb}",
        json.dumps({"step": "send_notice", "reason": REASON} if verb == "retry" else {}),
        content_type="application/json",
        headers={"Idempotency-Key": "agent-1"},
    )

    assert answer.status_code == 403
    assert answer.json()["code"] == "people_only"
    after = api.run_facts(rejected_notice.ref)
    assert (after.version, after.state) == (before.version, before.state)


def test_only_allowed_offers_come_with_a_reach_into_the_world(rejected_notice: RunFacts) -> None:
    maya = Desk("maya")

    offers = {offer.verb: offer for offer in available(rejected_notice, maya.actor, maya.person)}

    assert (offers["retry"].allowed, offers["retry"].reach, offers["retry"].writes) == (True, "writes", 1)
    assert (offers["compensate"].reach, offers["compensate"].writes) == ("writes", 2)
    assert offers["mark_acceptable"].reach == "record_only"
    assert offers["query_status"].allowed is False
    allowed = [offer.allowed for offer in available(rejected_notice, maya.actor, maya.person)]
    assert allowed == sorted(allowed, reverse=True)


def test_offers_cost_one_query_for_the_roles(
    rejected_notice: RunFacts, django_assert_num_queries: Callable[[int], Any]
) -> None:
    maya = Desk("maya")
    available(rejected_notice, maya.actor, maya.person)  # contracts are read once per process

    with django_assert_num_queries(1):
        available(rejected_notice, maya.actor, maya.person)
