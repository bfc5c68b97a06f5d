"""What a row of the queue says, held against the tables and against the freezes that are in force."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.test import Client

from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import CUT, MUTE, REFUSED, ref_of

STUCK = {"tool": "release_stock", "mode": "refuse"}
FIVE = """
    SELECT h.ref,
        count(*) FILTER (WHERE a.state = 'confirmed' AND coalesce(c.state, '') NOT IN ('unknown', 'failed')),
        count(*) FILTER (WHERE a.state = 'rejected' OR c.state = 'failed'),
        count(*) FILTER (WHERE a.state = 'unknown' OR c.state = 'unknown'),
        count(*) FILTER (WHERE v.document ->> 'recovery_class' = 'irreversible'),
        count(*) FILTER (WHERE v.document ->> 'recovery_class' = 'compensable')
    FROM sagas_handoff h
    JOIN sagas_action a ON a.run_id = h.run_id AND a.state <> 'superseded'
    JOIN sagas_contractversion v ON v.id = a.contract_id
    LEFT JOIN sagas_compensation c ON c.action_id = a.id
    WHERE h.state <> 'resolved'
    GROUP BY h.ref
"""


def rows_for(username: str) -> dict[str, Any]:
    client = Client()
    client.force_login(flows.person(username))
    return {row.ref: row for row in client.get("/handoffs/").context["queue"].entries}


def test_b5_the_five_counts_of_every_row_are_those_of_the_tables(
    workplace: Simulator, fresh_database: str
) -> None:
    workplace.plan(CUT, MUTE)
    flows.drive_until_still(flows.start())
    workplace.plan(REFUSED, STUCK)
    refused, halfway = (flows.drive_until_still(flows.start()) for _ in range(2))
    ordered = flows.Desk("maya").run("compensate", ref_of(halfway), "c-0", reason=flows.REASON)
    assert ordered.accepted
    assert refused.handoff is not None
    flows.drive_until_still(halfway.ref)

    with psycopg.connect(fresh_database) as owner:
        stored = {ref: tuple(five) for ref, *five in owner.execute(FIVE)}

    shown = {ref: tuple(count.value for count in row.counts) for ref, row in rows_for("maya").items()}
    assert shown == stored
    assert {five[:3] for five in stored.values()} == {(2, 0, 1), (2, 1, 0), (0, 2, 0)}


@pytest.mark.requirement("S4-1")
def test_a_row_says_that_writes_are_frozen_where_a_freeze_covers_one_of_its_steps(
    workplace: Simulator,
) -> None:
    workplace.plan(REFUSED)
    ref = ref_of(flows.drive_until_still(flows.start()))
    ada = flows.Desk("ada")
    reason = "Provider reports duplicates."

    elsewhere = ada.run("freeze", "", "f-1", scope="forward", applies_to="tool:relabel_items", reason=reason)
    assert elsewhere.accepted, elsewhere
    assert not rows_for("maya")[ref].frozen
    assert "writes frozen" not in _page()

    here = ada.run("freeze", "", "f-2", scope="forward", applies_to="tool:send_notice", reason=reason)
    assert here.accepted, here
    assert rows_for("maya")[ref].frozen
    assert "writes frozen" in _page()


def _page() -> str:
    client = Client()
    client.force_login(flows.person("maya"))
    return client.get("/handoffs/").content.decode()
