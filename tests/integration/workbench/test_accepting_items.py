"""Accepting refused items one by one at the workbench: who may, after what was shown, and what the page says then."""

from __future__ import annotations

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from tools.reader import read_definition
from workbench.commands import available
from workbench.errors import Answer
from workbench.labs import cast

REFUSED = ("ART-2", "ART-4")


@pytest.fixture
def batch(workplace: Simulator) -> RunFacts:
    """Two of five articles are locked; the others carry the new label."""
    api.publish_definition(read_definition(flows.ROOT / "examples" / "batch_relabel.toml"), actor=cast.SYSTEM)
    workplace.plan({"tool": "relabel_items", "mode": "ok", "items": list(REFUSED), "item_state": "locked"})
    given = {
        "batch": "B-418",
        "label": "summer",
        "items": [{"id": f"ART-{number}"} for number in range(1, 6)],
    }
    started = api.start_run(
        actor=flows.AGENT, definition="batch_relabel", input=given, start_key="batch-418", intent="New labels"
    )
    return flows.drive_until_still(started.run_ref)


@pytest.mark.requirement("S0-56", "S1-16", "S3-20")
def test_one_item_is_accepted_with_a_reason_after_a_preview_and_once(
    batch: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(batch)
    shown = maya.preview(ref, "accept_items", "relabel")
    given = {"step": "relabel", "preview_id": shown, "reason": REASON}

    nothing = maya.run("accept_items", ref, "a-1", **given, items=())
    short = maya.run("accept_items", ref, "a-2", **{**given, "reason": "ok"}, items=("ART-2",))
    unseen = maya.run("accept_items", ref, "a-3", **{**given, "preview_id": ""}, items=("ART-2",))
    standing = maya.run("accept_items", ref, "a-4", **given, items=("ART-1",))
    done = maya.run("accept_items", ref, "a-5", **given, items=("ART-2",))
    again = maya.run("accept_items", ref, "a-5", **given, items=("ART-2",))
    facts = flows.drive_until_still(batch.ref)

    assert (nothing.status, set(nothing.field_errors)) == (Answer.INVALID, {"items"})
    assert (short.status, set(short.field_errors)) == (Answer.INVALID, {"reason"})
    assert unseen.code == "preview_needed"
    assert (standing.status, standing.code) == (Answer.CONFLICT, "not_refused_item")
    assert (done.status, again.status) == (Answer.ACCEPTED, Answer.DUPLICATE)
    assert {item.item for item in facts.action("relabel").items if item.let_be} == {"ART-2"}
    assert len(workplace.ledger(tool="relabel_items", kind="arrived")) == 1
    offers = {offer.verb: offer for offer in available(facts, maya.actor, maya.person)}
    assert offers["retry"].items == 1


def test_without_refused_items_it_is_not_offered(rejected_notice: RunFacts) -> None:
    maya = Desk("maya")
    facts = api.handoff_facts(ref_of(rejected_notice))

    assert "accept_items" not in {offer.verb for offer in available(facts, maya.actor, maya.person)}


@pytest.mark.requirement("S0-56")
def test_the_page_shows_who_accepted_an_item_and_counts_it(batch: RunFacts, client: Client) -> None:
    maya, ref = Desk("maya"), ref_of(batch)
    client.force_login(maya.person)
    asked = client.get(f"/handoffs/{ref}/?act=accept_items.relabel").content.decode()
    assert maya.run("accept_items", ref, "a-1", step="relabel", items=("ART-4",), reason=REASON).accepted

    page = client.get(f"/handoffs/{ref}/").content.decode()
    row = page[page.index(">ART-4<") :].partition("</tr>")[0]

    assert "Accept the picked items" in asked
    assert 'value="ART-2">' in asked  # offered, and not picked beforehand
    assert "accepted by Maya" in row
    assert "Accepted" in row
    assert "3 confirmed, 1 rejected, 1 accepted of 5 items" in page
    assert REASON in page
