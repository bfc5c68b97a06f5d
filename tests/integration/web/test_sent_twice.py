"""A form that is sent twice, as a double click without a script sends it, has one effect; the second answer says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows, signing
from tests.integration.workbench.conftest import REFUSED, ref_of
from workbench.labs.browser import Form, Page, read

REASON = flows.REASON


@pytest.fixture
def refused(workplace: Simulator) -> RunFacts:
    """A case whose notice was refused; calling off its shipment needs a signature."""
    signing.publish()
    workplace.plan(REFUSED)
    return signing.drive_until_still(flows.start(signing.BY_PEOPLE))


def of(username: str) -> Client:
    client = Client()
    client.force_login(flows.person(username))
    return client


def page(client: Client, path: str) -> Page:
    answer = client.get(path, follow=True)
    return read(answer.content.decode(), status=answer.status_code, url=answer.request["PATH_INFO"])


def retry(case: str) -> tuple[Client, Form]:
    maya = of("maya")
    return maya, page(maya, f"/handoffs/{case}/?act=retry.send_notice").forms["run"]


def plan(case: str) -> tuple[Client, Form]:
    maya = of("maya")
    return maya, page(maya, f"/handoffs/{case}/plan/").forms["run"]


def signature(case: str) -> tuple[Client, Form]:
    priya = of("priya")
    assert flows.Desk("maya").run("compensate", case, "order", reason=REASON).accepted
    facts = signing.drive_until_still(api.handoff_facts(case).ref)
    permit = signing._request(facts).permit
    return priya, page(priya, f"/signoffs/{permit.ref}/").forms["run"]


def freeze(case: str) -> tuple[Client, Form]:
    maya = of("maya")
    return maya, page(maya, "/freeze/").forms["/freeze/now/"]


@pytest.mark.requirement("S1-6")
@pytest.mark.parametrize("handed_out", [retry, plan, signature, freeze])
def test_a_form_that_is_sent_twice_has_one_effect_and_the_second_answer_says_so(
    refused: RunFacts, handed_out: Callable[[str], tuple[Client, Form]]
) -> None:
    case = ref_of(refused)
    client, form = handed_out(case)
    filled = {**form.fields, "reason": REASON}
    before = len(api.entries(refused.ref)) + len(api.freezes())

    first = client.post(form.action, filled)
    between = len(api.entries(refused.ref)) + len(api.freezes())
    second = client.post(form.action, filled)

    assert between > before
    assert len(api.entries(refused.ref)) + len(api.freezes()) == between
    assert "Idempotency-Replayed" not in first.headers
    assert (second.status_code, second.headers["Idempotency-Replayed"]) == (200, "true")
    assert "It ran once." in second.content.decode()
