"""What stays of a bulk: its line above the queue until it is put away, its report, and who took that."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from sagas.facts import RunFacts
from sagas.models import Entry
from tests.conftest import Simulator
from tests.integration.web.test_bulk_pages import client_of
from tests.integration.workbench.bulking import Lead, cases, go_through
from tests.integration.workbench.conftest import REFUSED, ref_of


@pytest.fixture
def stopped(workplace: Simulator) -> tuple[str, list[RunFacts]]:
    """A bulk of three whose first two were refused again: they and the third are still with people."""
    workplace.plan(REFUSED)
    found = cases(3)
    ref = Lead().freeze("retry", found)
    assert Lead().start(ref).accepted
    go_through(ref, found)
    return ref, found


def test_its_line_stays_above_the_queue_leads_to_what_was_not_done_and_is_put_away_by_its_own(
    stopped: tuple[str, list[RunFacts]],
) -> None:
    ref, found = stopped
    lin, maya = client_of("lin"), client_of("maya")

    (line,) = lin.get(reverse("queue")).context["bulk_lines"]
    assert (line.ref, line.says, line.trouble) == (ref, "2 not done, 1 untouched.", "Show the 2")
    shown = lin.get(line.trouble_url)
    assert [row.ref for row in shown.context["bulk"].rows] == [ref_of(one) for one in found[:2]]
    assert f'href="{line.trouble_url}">Show the 2</a>' in lin.get(reverse("queue")).content.decode()
    assert maya.get(reverse("queue")).context["bulk_lines"] == ()

    maya.post(reverse("bulk-dismiss", args=[ref]))
    assert len(lin.get(reverse("queue")).context["bulk_lines"]) == 1
    assert lin.post(line.dismiss_url)["Location"] == reverse("queue")
    assert lin.get(reverse("queue")).context["bulk_lines"] == ()


def test_the_queue_looks_often_while_a_bulk_is_under_way_and_not_for_one_that_has_ended(
    stopped: tuple[str, list[RunFacts]],
) -> None:
    lin = client_of("lin")
    hurries = 'id="bulk-line" data-hurry data-every="2"'
    assert hurries not in lin.get(reverse("queue")).content.decode()

    lead = Lead()
    ref = lead.freeze("retry", cases(3))
    assert lead.start(ref, f"start-{ref}").accepted

    # A page that was made before it began hears of it at its next look, and looks often from then on.
    assert hurries in lin.get(reverse("bulk-line"), {"lines": "nothing-yet"}).content.decode()


def test_a_report_says_which_cases_are_still_open_and_that_it_was_taken(
    stopped: tuple[str, list[RunFacts]],
) -> None:
    ref, found = stopped
    oskar = client_of("oskar")
    assert not Entry.objects.filter(name="bulk.exported").exists()

    lines = oskar.get(reverse("bulk-report", args=[ref, "jsonl"])).content.decode().splitlines()

    head, *rows = [json.loads(line) for line in lines]
    assert (head["state"], head["counts"]["failed"], head["counts"]["untouched"]) == ("stopped", 2, 1)
    assert [(row["case"], row["result"], row["disposition"]) for row in rows] == [
        (ref_of(found[0]), "failed", "open"),
        (ref_of(found[1]), "failed", "open"),
        (ref_of(found[2]), "untouched", "open"),
    ]
    (taken,) = Entry.objects.filter(name="bulk.exported")
    assert (taken.actor_id, taken.after) == (
        "oskar",
        {"bulk": ref, "form": "jsonl", "digest": head["digest"]},
    )
