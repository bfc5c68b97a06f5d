"""The queue without a browser: filters and their counts, groups, saved views, who looks, what is new."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlencode

import psycopg
import pytest
from django.test import Client
from pytest_django import Settings

from sagas import api
from sagas.facts import QueueFilter, RunFacts
from tests.conftest import Clock, Simulator
from tests.integration.web.test_cost import copies
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from workbench.commands.presence import here
from workbench.queries.views import STANDARD
from workbench.web.presenters.queue import Row

type ClientOf = Callable[[str], Client]


@pytest.fixture
def client_of(workplace: object) -> ClientOf:
    def of(username: str) -> Client:
        client = Client()
        client.force_login(flows.person(username))
        return client

    return of


@pytest.fixture
def two_kinds(unknown_notice: RunFacts, fresh_database: str) -> RunFacts:
    """Three cases whose notice is unknown, and one that is held by Jonas; copied past the guards by the owner."""
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        owner.execute("SET session_replication_role = replica")
        copies(
            owner,
            "sagas_run",
            3,
            {"id": "one.id + n", "ref": "'run_copy_' || n", "start_key": "'copy-' || n"},
        )
        copies(
            owner,
            "sagas_handoff",
            3,
            {
                "id": "one.id + n",
                "ref": "'HF-C' || n",
                "run_id": "one.run_id + n",
                "due_at": "one.due_at + n * interval '1 minute'",
                "claimed_by": "CASE n WHEN 3 THEN 'jonas' ELSE '' END",
                "claimed_by_name": "CASE n WHEN 3 THEN 'Jonas Weber' ELSE '' END",
                "claimed_at": "CASE n WHEN 3 THEN now_() END",
                "claim_until": "CASE n WHEN 3 THEN now_() + interval '20 minutes' END",
                "summary": "CASE n WHEN 3 THEN jsonb_set(one.summary, '{similar}', '\"\"') ELSE one.summary END",
            },
        )
    return unknown_notice


def queue_of(client: Client, query: str = "") -> Any:
    answer = client.get(f"/handoffs/?{query}")
    assert answer.status_code == 200
    return answer.context["queue"]


def refs(client: Client, query: str = "") -> list[str]:
    return [entry.ref for entry in queue_of(client, query).entries if isinstance(entry, Row)]


def count_of(shown: Any, name: str) -> str:
    return next(str(tab.count) for tab in shown.tabs if str(tab.name) == name)


# --- Claims -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("htmx", [True, False])
def test_a_claim_that_was_lost_says_to_whom_and_by_how_much(
    client_of: ClientOf, unknown_notice: RunFacts, clock_of_tests: Clock, htmx: bool
) -> None:
    ref = ref_of(unknown_notice)
    version = api.handoff_facts(ref).version
    assert flows.Desk("maya").run("claim", ref, "first").accepted
    clock_of_tests.put_forward(90)

    answer = claims(client_of("jonas"), ref, version, htmx=htmx)

    assert answer.status_code == 409
    told = text_of(answer)
    assert re.search(
        r"Maya Okafor claimed it at (\S+ )?\d\d:\d\d:\d\d, 1 m before you\. You can read along\.", told
    )
    assert "Ask for hand-over" in told


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize(
    ("who", "status", "words"), [("oskar", 403, "does not include this"), ("maya", 429, "Wait ")]
)
def test_a_claim_that_is_refused_says_the_servers_own_reason_and_names_nobody(
    client_of: ClientOf,
    unknown_notice: RunFacts,
    settings: Settings,
    htmx: bool,
    who: str,
    status: int,
    words: str,
) -> None:
    ref = ref_of(unknown_notice)
    version = api.handoff_facts(ref).version
    assert flows.Desk("jonas").run("claim", ref, "first").accepted
    if status == 429:
        settings.COMMANDS_A_MINUTE = 0

    answer = claims(client_of(who), ref, version, htmx=htmx)

    assert answer.status_code == status
    told = text_of(answer)
    assert words in told
    assert "before you" not in told
    assert "You can read along" not in told


def test_ones_own_claim_in_another_tab_was_lost_to_nobody(
    client_of: ClientOf, unknown_notice: RunFacts
) -> None:
    ref = ref_of(unknown_notice)
    version = api.handoff_facts(ref).version
    client = client_of("maya")
    assert claims(client, ref, version, htmx=True, command_id="tab-a").status_code == 200

    told = text_of(claims(client, ref, version, htmx=True, command_id="tab-b"))

    assert "before you" not in told
    assert client.get(f"/handoffs/{ref}/claim/").headers["Location"] == f"/handoffs/{ref}/"


def claims(client: Client, ref: str, version: int, *, htmx: bool, command_id: str = "second") -> Any:
    return client.post(
        f"/handoffs/{ref}/claim/",
        {"ticket": f"{version}.{command_id}"},
        headers={"HX-Request": "true"} if htmx else {},
    )


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


# --- Filters and counts -----------------------------------------------------------------------------------------


def test_b5_every_tab_counts_what_its_view_shows(client_of: ClientOf, two_kinds: RunFacts) -> None:
    client = client_of("jonas")

    for tab in queue_of(client).tabs:
        assert str(len(refs(client, tab.url.partition("?")[2]))) == tab.count, tab.name


FILTERS = (
    ("", 4),
    ("view=mine", 1),
    ("view=unclaimed", 3),
    ("state=unknown", 4),
    ("state=compensation_failed", 0),
    ("state=closed", 0),
    ("state=any", 4),
    ("tool=send_notice", 4),
    ("tool=pay_refund", 0),
    ("workflow=orders", 4),
    ("workflow=refunds", 0),
    ("risk=critical", 0),
    ("risk=low", 4),
    ("owner=jonas", 1),
    ("owner=nobody&tool=send_notice", 3),
    ("touched=money", 4),
    ("touched=customers", 0),
    ("due=late", 0),
    ("due=24h", 4),
    ("reason=unknown_unresolved", 4),
    ("reason=pivot", 0),
)


def test_a_filter_shows_what_it_says_and_counts_the_same(client_of: ClientOf, two_kinds: RunFacts) -> None:
    client = client_of("jonas")
    for query, found in FILTERS:
        shown = queue_of(client, query)

        assert len(shown.entries) == found, query
        assert shown.n == str(found), query


def test_a_claim_that_has_run_out_is_nobodys_in_counts_as_on_the_row(
    client_of: ClientOf, two_kinds: RunFacts, clock_of_tests: Clock
) -> None:
    client = client_of("jonas")
    clock_of_tests.put_forward(21 * 60)

    assert refs(client, "view=mine") == []
    assert len(refs(client, "view=unclaimed")) == 4


def test_a_case_is_found_by_reference_key_and_the_providers_reference(
    client_of: ClientOf, two_kinds: RunFacts
) -> None:
    facts = api.run_facts(two_kinds.ref)
    shipment = facts.action("create_shipment")
    assert shipment.provider_ref
    for word in (ref_of(two_kinds), ref_of(two_kinds).lower(), shipment.key, shipment.provider_ref):
        assert ref_of(two_kinds) in refs(client_of("maya"), f"q={word}"), word
    assert len(refs(client_of("maya"), f"q={facts.business_ref}")) == 4
    assert refs(client_of("maya"), "q=nothing+like+this") == []


def test_a_filter_that_makes_no_sense_is_refused_in_words(client_of: ClientOf) -> None:
    client = client_of("maya")
    for query in ("state=lost", "risk=awful", "due=soon", "touched=nerves"):
        assert client.get(f"/handoffs/?{query}").status_code == 400, query


# --- Groups -----------------------------------------------------------------------------------------------------


def test_similar_cases_fold_into_a_group_and_nothing_is_counted_twice(
    client_of: ClientOf, two_kinds: RunFacts
) -> None:
    shown = queue_of(client_of("maya"), "group=similar")

    group, alone = shown.entries
    assert (group.count, len(group.members), len(group.rows)) == (3, 3, 2)
    assert alone.ref == "HF-C3"
    assert shown.n == "4"
    assert group.more == "Show 1 more in this group"
    assert sorted(refs(client_of("maya"), group.all_url.partition("?")[2])) == sorted(
        [ref_of(two_kinds), "HF-C1", "HF-C2"]
    )


def test_a_folded_group_says_so_and_shows_no_rows(client_of: ClientOf, two_kinds: RunFacts) -> None:
    client = client_of("maya")
    group = queue_of(client, "group=similar").entries[0]

    page = client.get(group.fold_url)

    assert page.context["queue"].entries[0].rows == ()
    assert b'aria-expanded="false"' in page.content
    assert b"HF-C1:" not in page.content.partition(b"</form>")[0]


def test_a_case_leaves_its_group_when_it_differs(unknown_notice: RunFacts, workplace: Simulator) -> None:
    (row,) = api.queue().rows
    assert row.similar.startswith("send_notice|")
    assert "|unknown|" in row.similar

    workplace.plan({"tool": "query_notice", "mode": "ok"})
    flows.Desk("maya").run("query_status", row.ref, "ask-it", step="send_notice")
    flows.drive_until_still(unknown_notice.ref)

    assert api.queue(QueueFilter(state="any")).rows[0].similar == ""


# --- What is new ------------------------------------------------------------------------------------------------


def poll(client: Client, shown: Any, **given: str) -> Any:
    places = ".".join(entry.ref for entry in shown.entries)
    asked = urlencode({"since": shown.cursor, **given})
    address = shown.changes_url + ("&" if "?" in shown.changes_url else "?") + asked
    return client.get(address, headers={"Amends-Shown": places})


def test_nothing_new_is_204(client_of: ClientOf, two_kinds: RunFacts) -> None:
    client = client_of("maya")

    answer = poll(client, queue_of(client))

    assert answer.status_code == 204
    assert answer.headers["X-Cursor"]


def test_a_row_that_changes_is_told_anew_and_no_row_is_added(
    client_of: ClientOf, unknown_notice: RunFacts
) -> None:
    client, ref = client_of("maya"), ref_of(unknown_notice)
    shown = queue_of(client)

    flows.Desk("jonas").run("claim", ref, "mine-now")
    first = poll(client, shown)
    again = client.get(shown.changes_url, {"since": first.headers["X-Cursor"]}, headers={"Amends-Shown": ref})

    assert first.content.count(b"<tr id=") == 1
    assert b"Jonas Brandt" in first.content
    assert b"newrows" not in first.content
    assert again.status_code == 204


def test_a_row_that_somebody_closed_stays_in_place_and_says_who(
    client_of: ClientOf, rejected_notice: RunFacts
) -> None:
    client, ref = client_of("maya"), ref_of(rejected_notice)
    shown = queue_of(client)

    done = flows.Desk("jonas").run(
        "mark_acceptable", ref, "close-it", end_state="notice_to_be_confirmed", reason=flows.REASON
    )
    assert done.accepted, done
    content = poll(client, shown).content.decode()

    assert f'<tr id="row-{ref}"' in content
    assert "Closed by Jonas Brandt" in content
    assert "1 changed" in content
    assert 'name="case"' not in content


def test_what_waits_is_new_or_changed(client_of: ClientOf, unknown_notice: RunFacts) -> None:
    client = client_of("maya")
    shown = queue_of(client, "view=unclaimed")

    flows.Desk("jonas").run("claim", ref_of(unknown_notice), "mine-now")
    flows.drive_until_still(flows.start())
    content = poll(client, shown).content.decode()

    assert "1 new, 1 changed" in content
    assert "Not in this view any more" in content


def test_once_a_minute_deadlines_are_told_anew(
    client_of: ClientOf, unknown_notice: RunFacts, clock_of_tests: Clock
) -> None:
    client = client_of("maya")
    shown = queue_of(client)
    before = shown.entries[0].due.left
    clock_of_tests.put_forward(120)

    content = poll(client, shown, aged="1").content.decode()

    assert f'<tr id="row-{ref_of(unknown_notice)}"' in content
    assert before not in content


# --- Who looks --------------------------------------------------------------------------------------------------


def test_who_has_a_case_open_is_seen_in_the_queue_and_at_the_case_until_they_leave(
    client_of: ClientOf, unknown_notice: RunFacts, clock_of_tests: Clock
) -> None:
    ref = ref_of(unknown_notice)
    client_of("jonas").get(f"/handoffs/{ref}/")
    client = client_of("maya")

    assert queue_of(client).entries[0].viewing == "Jonas Brandt viewing"
    assert b"Jonas Brandt viewing" in client.get(f"/handoffs/{ref}/").content
    clock_of_tests.put_forward(31)
    assert queue_of(client).entries[0].viewing == ""


def test_a_poll_of_the_case_is_a_sign_of_life_and_tells_who_else_is_there(
    client_of: ClientOf, unknown_notice: RunFacts, clock_of_tests: Clock
) -> None:
    ref = ref_of(unknown_notice)
    version = api.handoff_facts(ref).version
    here(person=flows.person("jonas"), handoff_ref=ref)
    clock_of_tests.put_forward(31)
    maya = client_of("maya").get(f"/handoffs/{ref}/changes/", {"v": str(version)})
    assert (maya.status_code, unquote(maya.headers["X-Viewers"])) == (204, "")

    client_of("jonas").get(f"/handoffs/{ref}/changes/", {"v": str(version)})
    maya = client_of("maya").get(f"/handoffs/{ref}/changes/", {"v": str(version)})

    assert unquote(maya.headers["X-Viewers"]) == "Jonas Brandt viewing"


def test_a_poll_of_the_queue_tells_who_looks_without_a_change(
    client_of: ClientOf, unknown_notice: RunFacts
) -> None:
    client, ref = client_of("maya"), ref_of(unknown_notice)
    shown = queue_of(client)
    here(person=flows.person("jonas"), handoff_ref=ref)

    answer = poll(client, shown)

    assert answer.status_code == 204
    told = json.loads(unquote(answer.headers["X-Viewers"]))
    assert told == {ref: {"who": ["jonas"], "says": "Jonas Brandt viewing"}}


# --- Saved views ------------------------------------------------------------------------------------------------


def save(client: Client, name: str, query: str, **more: str) -> Any:
    return client.post("/handoffs/views/", {"name": name, "query": query, **more})


def test_a_view_is_saved_counted_listed_with_the_account_and_deleted(
    client_of: ClientOf, two_kinds: RunFacts
) -> None:
    client = client_of("maya")

    assert save(client, "Held by Jonas", "owner=jonas").headers["Location"] == "/handoffs/?owner=jonas"
    shown = queue_of(client, "owner=jonas")
    assert count_of(shown, "Held by Jonas") == "1"
    assert next(tab for tab in shown.tabs if tab.current).name == "Held by Jonas"
    assert b"Held by Jonas" in client.get("/account/").content
    assert b"Held by Jonas" not in client_of("jonas").get("/handoffs/").content

    client.post(f"/handoffs/views/{shown.saving.delete_id}/delete/", {"from": "account"})
    assert b"Held by Jonas" not in client.get("/account/").content


def test_a_team_view_is_everybodys_and_kept_by_leads_alone(client_of: ClientOf, two_kinds: RunFacts) -> None:
    assert save(client_of("maya"), "Night shift", "risk=high", shared="on").status_code == 403
    assert save(client_of("lin"), "Night shift", "risk=high", shared="on").status_code == 302

    shown = queue_of(client_of("maya"), "risk=high")
    assert count_of(shown, "Night shift") == shown.n
    assert shown.saving.delete_id == 0
    assert queue_of(client_of("lin"), "risk=high").saving.delete_id


def test_a_name_that_is_none_is_said_beside_the_field(client_of: ClientOf) -> None:
    client = client_of("maya")
    for name in ("", " ", "x" * 41):
        answer = save(client, name, "owner=jonas")

        assert answer.status_code == 422, name
        assert b'id="view-error"' in answer.content


def test_two_views_of_one_name_and_too_many_are_refused(client_of: ClientOf) -> None:
    client = client_of("maya")
    for number in range(12):
        assert save(client, f"View {number}", f"q={number}").status_code == 302

    assert b"12 views already" in save(client, "One more", "q=x").content
    assert save(client_of("jonas"), "View 1", "q=x").status_code == 302
    assert b"a view of this name" in save(client_of("jonas"), "View 1", "q=y").content


def test_nobody_deletes_the_view_of_somebody_else(client_of: ClientOf) -> None:
    save(client_of("maya"), "Mine alone", "owner=me&risk=high")
    view_id = queue_of(client_of("maya"), "owner=me&risk=high").saving.delete_id

    client_of("jonas").post(f"/handoffs/views/{view_id}/delete/")

    assert count_of(queue_of(client_of("maya")), "Mine alone") == "0"


# --- Many at once --------------------------------------------------------------------------------------------------


def test_who_may_not_settle_many_reads_why_beside_the_selection(
    client_of: ClientOf, unknown_notice: RunFacts
) -> None:
    page = client_of("maya").get("/handoffs/").content.decode()

    assert 'name="verb"' not in page
    assert "These roles can do it: lead" in page


# --- Its words without rows -------------------------------------------------------------------------------------


def test_an_empty_view_says_what_is_still_being_watched(client_of: ClientOf, two_kinds: RunFacts) -> None:
    shown = queue_of(client_of("maya"), "state=compensation_failed")

    assert shown.empty.title == "Nothing in this view needs a decision"
    assert shown.empty.button == "Show all 4 handoffs"


def test_the_first_run_is_told_from_an_empty_view(client_of: ClientOf) -> None:
    assert queue_of(client_of("maya")).first_run


def test_every_standard_view_can_be_asked_for_by_its_name(client_of: ClientOf) -> None:
    for code, view in STANDARD.items():
        shown = queue_of(client_of("maya"), f"view={code}")
        assert shown.query == view.query
