"""The doors of a signature: pages and REST say the same, tell those who may not, and lose nothing that was written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from sagas import api
from sagas.facts import SignoffFacts
from sagas.states import PermitState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import REFUSED
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import people
from workbench.labs import cast
from workbench.roles import Role


@pytest.fixture
def request_of_run(workplace: Simulator) -> SignoffFacts:
    signing.publish()
    workplace.plan(REFUSED)
    return signing.asked_by_itself()


def client_of(username: str) -> Client:
    client = Client()
    client.force_login(flows.person(username))
    return client


def state(signoff: SignoffFacts) -> PermitState:
    return api.signoff_facts(signoff.permit.ref).permit.state


def form(signoff: SignoffFacts, **more: str) -> dict[str, str]:
    return {
        "command_id": "web-1",
        "saw_version": str(signoff.run.version),
        "digest": signoff.permit.digest,
        "reason": REASON,
        "reason_code": "wrong_time",
        **more,
    }


def call(client: Client, signoff: SignoffFacts, verb: str, key: str = "k-1", **body: Any) -> Any:
    code = {"reason_code": "wrong_time"} if verb == "reject" else {}
    given = {"digest": signoff.permit.digest, "reason": REASON, **code, **body}
    return client.post(
        f"/api/v1/signoffs/{signoff.permit.ref}/{verb}",
        json.dumps(given),
        content_type="application/json",
        headers={"Idempotency-Key": key},
    )


@pytest.mark.requirement("S0-35")
def test_the_sheet_shows_the_call_its_effect_and_the_stored_digest(request_of_run: SignoffFacts) -> None:
    page = client_of("priya").get(f"/signoffs/{request_of_run.permit.ref}/").content.decode()

    shown = re.search(r'class="digest"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert shown is not None
    groups = re.findall(r"<span>([0-9a-f]{8})</span>", shown[1])
    assert "".join(groups) == request_of_run.permit.digest
    assert len(groups) == 8
    document = request_of_run.permit.document
    assert isinstance(document, dict)
    for told in (
        document["key"],
        "/shipments/",
        "booked",
        "cancelled",
        "only if the parcel has not been picked up",
    ):
        assert str(told) in page
    assert "Sign and start" in page


def test_a_page_without_a_script_signs_and_a_second_click_shows_the_first(
    request_of_run: SignoffFacts,
) -> None:
    client, path = client_of("priya"), f"/signoffs/{request_of_run.permit.ref}/sign/"

    first = client.post(path, form(request_of_run))
    second = client.post(path, form(request_of_run))

    assert (first.status_code, second.status_code) == (202, 200)
    assert "Signed at" in first.content.decode()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "It ran once." in second.content.decode()
    assert signing.drive_until_still(request_of_run.run.ref).state is RunState.COMPENSATED


def test_who_asked_sees_the_reason_and_a_forced_post_is_told_the_same(workplace: Simulator) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by("maya")
    signing.grant("maya", Role.APPROVER)
    client = client_of("maya")

    listed = client.get("/signoffs/").content.decode()
    sheet = client.get(f"/signoffs/{asked.permit.ref}/").content.decode()
    forced = client.post(f"/signoffs/{asked.permit.ref}/sign/", form(asked))

    for page in (listed, sheet, forced.content.decode()):
        assert "You asked for it, someone else must sign." in page
    assert forced.status_code == 403
    assert 'id="run"' not in sheet
    assert state(asked) is PermitState.REQUESTED


def test_a_missing_note_keeps_what_was_written_and_says_what_is_needed(workplace: Simulator) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by_itself(amount="12000.00")
    client = client_of("priya")

    signed = client.post(f"/signoffs/{asked.permit.ref}/sign/", form(asked, reason=""))
    rejected = client.post(f"/signoffs/{asked.permit.ref}/reject/", form(asked, reason="too early"))

    assert (signed.status_code, rejected.status_code) == (422, 422)
    assert "The risk is high: write at least 15 characters as a note." in signed.content.decode()
    assert "too early</textarea>" in rejected.content.decode()
    assert re.search(r'<dialog[^>]*id="reject"[^>]* open>', rejected.content.decode())


def test_an_older_page_is_told_which_version_it_showed(request_of_run: SignoffFacts) -> None:
    answer = client_of("priya").post(
        f"/signoffs/{request_of_run.permit.ref}/sign/", form(request_of_run, digest="f" * 64, saw_version="2")
    )

    assert answer.status_code == 409
    assert f"The case went from version 2 to {request_of_run.run.version} at" in answer.content.decode()
    assert REASON in answer.content.decode()


def test_polls_answer_204_until_something_is_different(request_of_run: SignoffFacts) -> None:
    client, ref = client_of("priya"), request_of_run.permit.ref
    page = client.get(f"/signoffs/{ref}/").content.decode()
    seen = re.search(r'id="seen" data-version="([^"]+)"', page)
    since = re.search(r'since=([0-9a-f]+)"', client.get("/signoffs/").content.decode())
    assert seen is not None
    assert since is not None

    htmx = {"HX-Request": "true"}
    sheet, listing = f"/signoffs/{ref}/changes/?v={seen[1]}", f"/signoffs/changes?since={since[1]}"
    assert client.get(sheet, headers=htmx).status_code == 204
    assert client.get(listing, headers=htmx).status_code == 204
    signing.decide("priya", "reject", request_of_run)

    assert "rejected it at" in client.get(sheet, headers=htmx).content.decode()
    drafting = client.get(sheet + "&draft=1", headers=htmx)
    assert drafting.headers["HX-Retarget"] == "#pill"
    assert "Something has changed" in client.get(listing, headers=htmx).content.decode()
    assert client.get(listing + "&shown=1", headers=htmx).status_code == 204


def test_the_decided_stay_to_be_read_with_who_and_when(request_of_run: SignoffFacts) -> None:
    signing.decide("priya", "reject", request_of_run)

    listed = client_of("oskar").get("/signoffs/?view=decided").content.decode()
    sheet = client_of("oskar").get(f"/signoffs/{request_of_run.permit.ref}/").content.decode()

    assert "Priya Nair" in listed
    assert "Priya Nair rejected it at" in sheet
    assert REASON in sheet


def test_the_case_and_the_run_say_that_a_signature_is_awaited(workplace: Simulator) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    asked = signing.asked_by("maya")
    assert asked.run.handoff is not None
    client, link = client_of("jonas"), f'href="/signoffs/{asked.permit.ref}/"'

    assert link in client.get(f"/handoffs/{asked.run.handoff.ref}/").content.decode()
    assert link in client.get(f"/runs/{asked.run.ref}/").content.decode()
    rail = client.get("/handoffs/").content.decode()
    assert re.search(r'href="/signoffs/"[^<]*<i[^>]*></i>\s*Sign-offs\s*<span\s+class="n">1</span>', rail)
    found = client.get("/search/", {"q": asked.permit.ref})
    assert found.headers["Location"] == f"/signoffs/{asked.permit.ref}/"


@pytest.mark.parametrize(
    ("username", "page"),
    [("priya", "/signoffs/"), ("maya", "/handoffs/"), ("oskar", "/handoffs/"), ("ada", "/freeze/")],
)
def test_a_login_leads_to_a_page_that_this_person_may_see(
    workplace: Simulator, username: str, page: str
) -> None:
    answer = client_of(username).get("/", follow=True)

    assert answer.redirect_chain[-1][0] == page
    assert answer.status_code == 200


def test_those_who_may_not_read_cases_see_no_sheet_and_their_try_is_on_record(
    request_of_run: SignoffFacts,
) -> None:
    client = client_of("ada")

    seen = client.get(f"/signoffs/{request_of_run.permit.ref}/")
    forced = client.post(f"/signoffs/{request_of_run.permit.ref}/sign/", form(request_of_run))

    for answer in (seen, forced):
        assert answer.status_code == 403
        assert request_of_run.permit.digest[:8] not in answer.content.decode()
    assert [one.actor_id for one in api.entries(request_of_run.run.ref) if one.name == "command.refused"] == [
        "ada"
    ]


@pytest.mark.requirement("S0-35", "S3-15")
def test_the_rest_door_lists_shows_and_takes_a_signature(request_of_run: SignoffFacts) -> None:
    client, ref = client_of("priya"), request_of_run.permit.ref

    listed = client.get("/api/v1/signoffs").json()
    shown = client.get(f"/api/v1/signoffs/{ref}").json()
    signed = call(client, request_of_run, "sign", digest=shown["digest"])
    again = call(client, request_of_run, "sign", digest=shown["digest"])

    assert [row["signoff"] for row in listed["signoffs"]] == [ref]
    assert shown["offers"][0] == {"verb": "sign", "allowed": True, "code": None, "reason": None}
    assert shown["document"]["key"] == shown["call"]["key"]
    assert (signed.status_code, signed.json()["result"]) == (202, "accepted")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert state(request_of_run) is PermitState.GRANTED
    assert client.get("/api/v1/signoffs?view=decided").json()["signoffs"][0]["decided_by"] == "Priya Nair"


@pytest.mark.requirement("S4-18")
def test_no_token_reads_or_decides_requests(request_of_run: SignoffFacts, agent_client: Client) -> None:
    answers = [
        agent_client.get("/api/v1/signoffs"),
        agent_client.get(f"/api/v1/signoffs/{request_of_run.permit.ref}"),
        call(agent_client, request_of_run, "sign"),
        call(agent_client, request_of_run, "reject", "k-2"),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "people_only")] * 4
    assert state(request_of_run) is PermitState.REQUESTED


def test_rest_problems_name_what_was_wrong(request_of_run: SignoffFacts) -> None:
    client = client_of("priya")

    stale = call(client, request_of_run, "sign", digest="0" * 64)
    short = call(client, request_of_run, "reject", "k-2", reason="no")
    missing = client.post(
        "/api/v1/signoffs/SO-9/sign",
        json.dumps({"digest": "0"}),
        content_type="application/json",
        headers={"Idempotency-Key": "k-3"},
    )
    unknown = call(client, request_of_run, "withdraw", "k-4")

    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert (short.status_code, short.json()["errors"][0]["pointer"]) == (422, "/reason")
    assert (missing.status_code, unknown.status_code) == (404, 404)


def test_a_switched_off_account_is_out_at_once_with_its_open_page(request_of_run: SignoffFacts) -> None:
    client = client_of("priya")
    assert client.get("/signoffs/").status_code == 200
    people.switch_off(actor=cast.SYSTEM, person=flows.person("priya"), reason="Left the house")

    answer = client.post(f"/signoffs/{request_of_run.permit.ref}/sign/", form(request_of_run))

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/")
    assert state(request_of_run) is PermitState.REQUESTED


@pytest.mark.requirement("S4-1")
def test_a_freeze_shows_on_the_sheet_and_takes_no_signature(request_of_run: SignoffFacts) -> None:
    Desk("lin").run("freeze", "", "f-1", scope="writes", reason="The carrier moves its systems")
    client, path = client_of("priya"), f"/signoffs/{request_of_run.permit.ref}/"

    page = client.get(path).content.decode()
    forced = client.post(path + "sign/", form(request_of_run))

    assert "Frozen since" in page
    assert 'id="run"' not in page
    assert forced.status_code == 423


@pytest.mark.requirement("S0-35")
def test_a_signature_needs_a_login_or_a_password_of_the_last_quarter_of_an_hour(
    workplace: Simulator, clock_of_tests: Clock
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    priya = client_of("priya")
    clock_of_tests.put_forward(14 * 60)
    asked = signing.asked_by_itself()
    clock_of_tests.put_forward(2 * 60)

    by_api, by_form = call(priya, asked, "sign"), priya.post(url(asked, "sign"), form(asked))

    assert (by_api.status_code, by_api.json()["code"]) == (428, "unconfirmed")
    assert by_form.status_code == 428
    assert state(asked) is PermitState.REQUESTED
    assert priya.post(url(asked, "reject"), form(asked)).status_code == 200


def test_a_password_is_tried_five_times_a_minute_and_a_right_one_changes_the_session(
    workplace: Simulator, clock_of_tests: Clock
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    priya = client_of("priya")
    clock_of_tests.put_forward(16 * 60)
    asked = signing.asked_by_itself()

    wrong = [priya.post(url(asked, "sign"), form(asked, password=f"guess {n}")).status_code for n in range(5)]
    late = priya.post(url(asked, "sign"), form(asked, password="demo-priya"))
    assert wrong == [422] * 5
    assert late.status_code == 429
    assert "Too many passwords." in late.content.decode()
    assert state(asked) is PermitState.REQUESTED

    clock_of_tests.put_forward(61)
    before = priya.session.session_key
    assert priya.post(url(asked, "sign"), form(asked, password="demo-priya")).status_code == 202
    assert priya.session.session_key != before
    assert state(asked) is not PermitState.REQUESTED


def url(signoff: SignoffFacts, verb: str) -> str:
    return f"/signoffs/{signoff.permit.ref}/{verb}/"
