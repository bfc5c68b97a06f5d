"""The code beside a reason: refused where it is not one of the verb's, kept with the decision, shown at every door."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client

from sagas import api
from sagas.facts import EntryFacts, RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.bulking import Lead, cases, go_through
from tests.integration.workbench.conftest import CUT, MUTE, REFUSED, ref_of
from tests.integration.workbench.flows import REASON, Desk
from tests.integration.workbench.test_api import is_problem, post
from workbench.bulks import report
from workbench.errors import Answer
from workbench.queries import bulks


def client_of(username: str) -> Client:
    client = Client()
    client.force_login(flows.person(username))
    return client


def of_command(run_ref: str, command_id: str) -> list[EntryFacts]:
    return [entry for entry in api.entries(run_ref) if entry.command_id == command_id]


@pytest.mark.requirement("S1-16", "S4-25")
def test_a_code_that_is_none_of_the_verbs_is_refused_with_those_that_are(rejected_notice: RunFacts) -> None:
    client, ref = client_of("maya"), ref_of(rejected_notice)
    preview = post(client, f"handoffs/{ref}/previews", {"verb": "compensate"}).json()["preview"]
    body = {"preview": preview, "reason": REASON, "reason_code": "wrong_time"}
    offers = client.get(f"/api/v1/handoffs/{ref}").json()["offers"]
    asked = next(one["arguments"] for one in offers if one["verb"] == "compensate")

    refused = post(client, f"handoffs/{ref}/commands/compensate", body)

    told = is_problem(refused, 422, "invalid")
    (error,) = told["errors"]
    assert error["pointer"] == "/reason_code"
    (field,) = [one for one in asked if one["name"] == "reason_code"]
    assert (field["kind"], field["required"]) == ("reason_code", False)
    assert all(choice in error["detail"] for choice in field["choices"])
    assert api.run_facts(rejected_notice.ref).state == "handoff"


@pytest.mark.requirement("S1-16", "S4-25")
def test_a_code_stays_with_the_decision_and_no_other_entry_claims_it(rejected_notice: RunFacts) -> None:
    client, ref = client_of("maya"), ref_of(rejected_notice)
    preview = post(client, f"handoffs/{ref}/previews", {"verb": "compensate"}).json()["preview"]
    body = {"preview": preview, "reason": REASON, "reason_code": "customer_withdrew"}

    done = post(client, f"handoffs/{ref}/commands/compensate", body, key="c-1")
    flows.drive_until_still(rejected_notice.ref)

    assert done.status_code == 202
    decided = of_command(rejected_notice.ref, "c-1")
    own = {one.reason_code for one in decided if one.reason == REASON}
    assert own == {"customer_withdrew"}
    assert {one.reason_code for one in api.entries(rejected_notice.ref) if one.reason != REASON} == {""}
    for page in (f"/handoffs/{ref}/", f"/handoffs/{ref}/trail/?show=every", f"/runs/{rejected_notice.ref}/"):
        assert "Customer withdrew" in client.get(page).content.decode(), page


def test_the_case_page_keeps_a_chosen_code_beside_the_reason_that_was_too_short(
    rejected_notice: RunFacts,
) -> None:
    client, ref = client_of("maya"), ref_of(rejected_notice)
    preview = post(client, f"handoffs/{ref}/previews", {"verb": "compensate"}).json()
    form = {
        "verb": "compensate",
        "command_id": "w-1",
        "preview_id": preview["preview"],
        "saw_version": preview["version"],
        "reason": "short",
        "reason_code": "customer_withdrew",
    }

    page = client.post(f"/handoffs/{ref}/act/", form)

    assert page.status_code == 422
    assert '<option value="customer_withdrew" selected>' in page.content.decode()
    assert of_command(rejected_notice.ref, "w-1")[-1].name == "command.refused"


@pytest.mark.requirement("S0-35", "S1-18")
def test_nobody_rejects_without_a_code_and_whoever_asked_is_told_it(workplace: Simulator) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by_itself()
    client, path = client_of("priya"), f"signoffs/{asked.permit.ref}"
    given = {"digest": asked.permit.digest, "reason": REASON}

    without = post(client, f"{path}/reject", given)
    done = post(client, f"{path}/reject", {**given, "reason_code": "evidence_not_enough"}, key="r-1")

    told = is_problem(without, 422, "invalid")
    assert [one["pointer"] for one in told["errors"]] == ["/reason_code"]
    assert "not_mine_to_decide" in told["errors"][0]["detail"]
    assert done.status_code == 200
    document = client.get(f"/api/v1/{path}").json()
    assert (document["reason"], document["reason_code"]) == (REASON, "evidence_not_enough")
    assert "Evidence is not enough" in client.get(f"/{path}/").content.decode()


@pytest.mark.requirement("S0-35")
def test_whoever_signs_reads_the_code_of_whoever_asked(workplace: Simulator) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by("maya", code="wrong_effects")
    client = client_of("priya")

    document = client.get(f"/api/v1/signoffs/{asked.permit.ref}").json()

    assert (document["why"], document["why_code"]) == (REASON, "wrong_effects")
    assert "Wrong or doubled effects" in client.get(f"/signoffs/{asked.permit.ref}/").content.decode()


@pytest.mark.requirement("S0-46")
def test_one_code_stands_on_every_case_of_a_list_and_on_its_report(workplace: Simulator) -> None:
    workplace.plan(REFUSED)
    found = cases(2)
    workplace.plan({"tool": "send_notice", "mode": "ok"})
    lin = Lead()
    ref = lin.freeze("retry", found)

    other = lin.start(ref, "other", reason_code="shift_ends")
    done = lin.start(ref, "start", reason_code="provider_outage")
    go_through(ref, found)

    assert (other.status, set(other.field_errors)) == (Answer.INVALID, {"reason_code"})
    assert "provider_outage" in str(other.field_errors["reason_code"])
    assert done.accepted
    for position, one in enumerate(found, start=1):
        (code,) = {entry.reason_code for entry in of_command(one.ref, f"{ref}.{position}") if entry.reason}
        assert code == "provider_outage"
    head = json.loads(next(report.taken(bulks.bulk(ref), actor=lin.actor, form="jsonl")))
    assert head["reason_code"] == "provider_outage"
    assert "服务商故障" in client_of("lin").get(f"/handoffs/bulk/{ref}/").content.decode()


def test_a_list_that_is_only_asked_about_can_have_a_code_too(workplace: Simulator) -> None:
    workplace.plan(CUT, MUTE)
    found = cases(1)
    lin = Lead()
    ref = lin.freeze("query_status", found)
    page = client_of("lin").get(f"/handoffs/bulk/{ref}/").content.decode()

    assert '<option value="seen_at_provider">' in page
    assert lin.start(ref, reason_code="seen_at_provider").accepted


@pytest.mark.requirement("S4-1")
def test_a_freeze_and_its_lift_keep_their_codes(workplace: Simulator) -> None:
    maya, lin = Desk("maya"), Desk("lin")

    frozen = maya.run("freeze", "", "f-1", reason=REASON, reason_code="wrong_effects")
    (freeze,) = api.freezes()
    asked = lin.run("unfreeze", "", "f-2", freeze=str(freeze.id), reason=REASON, reason_code="cause_removed")

    assert frozen.accepted
    assert asked.accepted
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, reason_code FROM sagas_entry WHERE name LIKE 'system.%'")
        kept = dict(cursor.fetchall())
    assert kept == {"system.frozen": "wrong_effects", "system.lift_asked": "cause_removed"}
