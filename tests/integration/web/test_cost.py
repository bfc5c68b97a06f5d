"""What pages cost: a fixed number of queries however many rows. Seconds are measured by `manage.py bench`."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from psycopg import sql

from sagas.facts import RunFacts
from tests.integration.workbench import flows

STORED = 1000


def columns(owner: psycopg.Connection, table: str) -> list[str]:
    found = owner.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER'",
        [table],
    )
    return [str(name) for (name,) in found]


def copies(owner: psycopg.Connection, table: str, count: int, changed: dict[str, str]) -> None:
    """Copy the newest row of a table so many times; `changed` are SQL expressions over `n`."""
    names = columns(owner, table)
    values = [sql.SQL(changed[name]) if name in changed else sql.Identifier("one", name) for name in names]
    owner.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM generate_series(1, %s) n, "
            "(SELECT * FROM {table} ORDER BY id DESC LIMIT 1) one"
        ).format(
            table=sql.Identifier(table),
            names=sql.SQL(", ").join(map(sql.Identifier, names)),
            values=sql.SQL(", ").join(values),
        ),
        [count],
    )


@pytest.fixture
def full_queue(unknown_notice: RunFacts, fresh_database: str) -> None:
    """A thousand handoffs, copied past the guards by the owner."""
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        owner.execute("SET session_replication_role = replica")
        run = {"id": "one.id + n", "ref": "'run_copy_' || n", "start_key": "'copy-' || n"}
        copies(owner, "sagas_run", STORED, run)
        again = {"id": "one.id + n", "ref": "'HF-C' || n", "run_id": "one.run_id + n"}
        copies(owner, "sagas_handoff", STORED, again)
        owner.execute("ANALYZE sagas_handoff")


def cost(client: Client, path: str) -> int:
    """Queries of one page, once everything that a process reads only once has been read."""
    client.get(path)
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(path)
    assert answer.status_code == 200
    return len(asked)


@pytest.fixture
def maya(workplace: object) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def test_fifty_of_a_thousand_rows_cost_as_many_queries_as_one(
    maya: Client, unknown_notice: RunFacts, request: pytest.FixtureRequest
) -> None:
    one_row = cost(maya, "/handoffs/")

    request.getfixturevalue("full_queue")
    many_rows = cost(maya, "/handoffs/")

    assert maya.get("/handoffs/").content.count(b'<tr id="row-') == 50
    assert many_rows == one_row


def test_two_hundred_rows_in_groups_or_not_cost_as_many_queries_as_one(
    maya: Client, unknown_notice: RunFacts, request: pytest.FixtureRequest
) -> None:
    paths = ("/handoffs/?rows=200", "/handoffs/?rows=200&group=similar")
    few = [cost(maya, path) for path in paths]

    request.getfixturevalue("full_queue")
    many = [cost(maya, path) for path in paths]

    assert maya.get(paths[0]).content.count(b'<tr id="row-') == 200
    assert many[0] == few[0]
    # Where there is a group its members are asked for, all groups of the page at once.
    assert many[1] <= few[1] + 2


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/handoffs/", 17),
        ("/handoffs/?group=similar", 18),
        ("/handoffs/?state=unknown&risk=low&owner=nobody&q=o-&tool=send_notice", 17),
        ("/handoffs/{ref}/", 32),
        ("/handoffs/{ref}/trail/", 21),
        ("/runs/", 12),
        ("/runs/?workflow=orders", 14),
        ("/workflows/", 12),
        ("/workflows/orders/", 15),
        ("/tools/", 13),
        ("/tools/send_notice/", 16),
        ("/runs/{run}/", 34),
    ],
)
def test_a_page_asks_a_fixed_number_of_questions(
    maya: Client, unknown_notice: RunFacts, path: str, most: int
) -> None:
    assert unknown_notice.handoff is not None

    asked = cost(maya, path.format(ref=unknown_notice.handoff.ref, run=unknown_notice.ref))

    assert asked <= most


def test_paging_by_key_shows_every_case_once(maya: Client, full_queue: None) -> None:
    seen: list[str] = []
    address = "/handoffs/?view=open"
    while address:
        context = maya.get(address).context["queue"]
        seen += [row.ref for row in context.entries]
        address = context.next_url

    assert len(seen) == len(set(seen)) == STORED + 1


@pytest.mark.parametrize(
    "path", ["/handoffs/?after=nonsense", "/handoffs/changes?since=nonsense", "/runs/?after=x"]
)
def test_a_mangled_address_is_refused_in_words(maya: Client, path: str) -> None:
    answer = maya.get(path)

    assert answer.status_code == 400
    assert b"That request cannot be read" in answer.content
