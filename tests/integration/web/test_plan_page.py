"""A recovery plan under a freeze, without a browser: what is held, by whom, and that an open page hears of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from sagas.states import RunState
from tests.conftest import Simulator
from tests.integration.sagas.conftest import drain
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import REFUSED
from tests.integration.workbench.test_plans import plan_of, run_plan
from workbench.commands import Plan
from workbench.labs.browser import read
from workbench.web.presenters import plans

WHY = "Provider reports duplicates."


@pytest.fixture
def maya(workplace: Simulator) -> Client:
    client = Client()
    client.force_login(flows.person("maya"))
    return client


def freeze(scope: str, where: str = "all") -> None:
    frozen = flows.Desk("ada").run(
        "freeze", "", f"f-{scope}-{where}", scope=scope, applies_to=where, reason=WHY
    )
    assert frozen.accepted, frozen


def page_of(client: Client, plan: Plan) -> Any:
    answer = client.get(plans.plan_url(plan))
    assert answer.status_code == 200
    return answer


def checks(answer: Any) -> list[str]:
    return [
        check.says
        for check in answer.context["plan"].checks
        if "reez" in check.says or "Frozen" in check.says
    ]


@pytest.mark.requirement("S4-1")
def test_a_plan_says_whether_a_freeze_covers_it_now_and_not_when_it_was_made(
    maya: Client, rejected_notice: RunFacts
) -> None:
    plan = plan_of("maya", rejected_notice)
    freeze("forward")
    before = page_of(maya, plan)

    freeze("writes")

    news = maya.get(
        f"{plans.plan_url(plan)}changes/", {"v": before.context["v"]}, headers={"HX-Request": "true"}
    )
    assert news.status_code == 200
    after = page_of(maya, plan)
    assert checks(before) == ["No freeze covers this"], "compensations go on under a freeze of forward calls"
    assert before.context["plan"].note == ""
    assert [says.startswith("Frozen since ") for says in checks(after)] == [True]
    assert "by Ada" in after.context["plan"].note
    assert "Provider reports duplicates. This can be ordered after the freeze is lifted." in (
        after.context["plan"].note
    )
    same = maya.get(
        f"{plans.plan_url(plan)}changes/", {"v": after.context["v"]}, headers={"HX-Request": "true"}
    )
    assert same.status_code == 204


@pytest.mark.requirement("S2-10", "S4-1")
def test_a_plan_that_a_freeze_holds_half_way_says_so_and_by_whom(
    maya: Client, rejected_notice: RunFacts
) -> None:
    plan = plan_of("maya", rejected_notice)
    assert run_plan("maya", plan).accepted
    freeze("writes", "tool:release_stock")
    running = page_of(maya, plan).context["plan"]

    drain()

    assert running.pill.word == "Running, 0 of 2 compensated", "the next call is of another tool"
    answer = page_of(maya, plan)
    held = answer.context["plan"]
    assert api.run_facts(rejected_notice.ref).state == "compensating"
    assert (held.state, held.pill.word) == ("running", "Held by a freeze, 1 of 2 compensated")
    assert "Provider reports duplicates. No further call begins until the freeze is lifted." in held.note
    assert held.note in answer.content.decode()
    assert b'id="pause"' in answer.content, "it can still be paused"


@pytest.mark.requirement("S0-38")
def test_a_void_plan_names_the_precondition_that_fell_with_what_it_read_then_and_reads_now(
    maya: Client, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    assert flows.Desk("lin").run("claim", plan.preview.handoff_ref, "c-1").accepted
    still = page_of(maya, plan)
    reservation = rejected_notice.action("reserve_stock").provider_ref
    workplace.post("/third-party", {"kind": "reservation", "id": reservation, "state": "gone"})

    fallen = page_of(maya, plan)

    assert still.context["plan"].state == fallen.context["plan"].state == "void"
    assert still.context["plan"].fallen == ()
    (one,) = fallen.context["plan"].fallen
    assert one.step == "reserve_stock"
    assert one.then.startswith("so: ")
    assert one.now.startswith(("not so: ", "not known: "))
    assert one.then != one.now
    assert str(one.says) in fallen.content.decode()


def test_a_plan_that_can_be_ordered_is_not_read_again(
    maya: Client, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    before = len(workplace.ledger())

    ready = page_of(maya, plan)

    assert ready.context["plan"].state == "ready"
    assert len(workplace.ledger()) == before


@pytest.mark.requirement("S0-35", "S3-20")
def test_a_plan_that_needs_a_signature_asks_for_it_sends_nothing_before_and_shows_who_it_waits_for(
    maya: Client, workplace: Simulator
) -> None:
    signing.publish()
    workplace.plan(REFUSED)
    facts = signing.drive_until_still(flows.start(signing.BY_PEOPLE))
    plan = plan_of("maya", facts)
    before = page_of(maya, plan).content.decode()
    form = read(before, status=200, url="").forms["run"]
    sent = len(workplace.ledger(kind="effect"))

    done = maya.post(form.action, {**form.fields, "reason": flows.REASON})
    facts = signing.drive_until_still(facts.ref)
    waiting = page_of(maya, plan)
    permit = signing._request(facts).permit
    own = maya.get(f"/signoffs/{permit.ref}/").content.decode()

    assert "Ask for sign-off" in before
    assert "1 signature by someone who did not ask for it" in before
    assert "Nothing runs until someone else signs. You will not be able to sign it yourself." in before
    assert done.status_code == 202
    assert len(workplace.ledger(kind="effect")) == sent
    assert facts.state is RunState.AWAITING_APPROVAL
    assert waiting.context["plan"].pill.word == "Waits for a signature"
    assert 'id="run"' not in own, "whoever asked cannot sign"

    assert signing.decide("priya", "sign", signing._request(facts)).accepted
    flows.drive_until_still(facts.ref)
    over = page_of(maya, plan).content.decode()
    assert "2 verified, 0 in flight, 0 to go" in over


@pytest.mark.requirement("S0-38")
def test_a_plan_that_is_refused_for_what_it_rests_on_is_void_and_offers_a_new_one(
    maya: Client, rejected_notice: RunFacts, workplace: Simulator
) -> None:
    plan = plan_of("maya", rejected_notice)
    reservation = rejected_notice.action("reserve_stock").provider_ref
    workplace.post("/third-party", {"kind": "reservation", "id": reservation, "state": "released"})
    url = f"/handoffs/{plan.preview.handoff_ref}/plan/{plan.id}/act/"

    answer = maya.post(url, {"verb": "compensate", "reason": flows.REASON})

    assert answer.status_code == 409
    shown, page = answer.context["plan"], answer.content.decode()
    assert (shown.state, [one.step for one in shown.fallen]) == ("void", ["reserve_stock"])
    assert str(shown.fallen[0].says) in page
    assert flows.REASON in page
    assert 'id="again"' in page
    assert 'id="run"' not in page
