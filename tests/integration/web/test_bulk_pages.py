"""The pages of a bulk, without a browser: selection, list, progress, report, and what each refusal says."""

from __future__ import annotations

import json

from django.test import Client
from django.urls import reverse

from tests.conftest import Simulator
from tests.integration.workbench.bulking import REASON, Lead, cases, go_through, look
from tests.integration.workbench.conftest import REFUSED, ref_of
from tests.integration.workbench.flows import person

OK = {"tool": "send_notice", "mode": "ok"}


def client_of(username: str, language: str = "en") -> Client:
    someone = person(username)
    someone.language = language
    someone.save(update_fields=["language"])
    client = Client()
    client.force_login(someone)
    return client


def test_a_selection_becomes_a_list_a_bulk_and_a_report(workplace: Simulator) -> None:
    workplace.plan(REFUSED)
    found = cases(3)
    workplace.plan(OK)
    lin = client_of("lin")
    picked = [f"{ref_of(one)}:{one.version}" for one in found]

    listed = lin.post(reverse("bulk"), {"case": picked, "verb": "retry"})
    page = lin.get(listed["Location"])
    text = page.content.decode()

    assert "3 cases go" in text
    assert "Exactly what will run" in text
    ref = listed["Location"].strip("/").rpartition("/")[2]
    wrong = lin.post(reverse("bulk-start", args=[ref]), {"reason": "short", "command_id": "s-1"})
    assert wrong.status_code == 422
    assert "short" in wrong.content.decode()

    given = {"reason": REASON, "count": "3", "command_id": "s-2"}
    assert lin.post(reverse("bulk-start", args=[ref]), given).status_code == 302
    assert lin.post(reverse("bulk-start", args=[ref]), given).status_code == 302
    look()
    page = lin.get(listed["Location"])
    assert "The first cases are being proved" in page.content.decode()
    go_through(ref, found)

    text = lin.get(listed["Location"]).content.decode()
    assert "3 verified." in text
    lines = lin.get(reverse("bulk-report", args=[ref, "jsonl"])).content.decode().splitlines()
    head, *rows = [json.loads(line) for line in lines]
    assert head["bulk"] == ref
    assert [row["disposition"] for row in rows] == ["settled"] * 3
    assert lin.get(reverse("bulk-report", args=[ref, "csv"])).content.decode().count("\r\n") == 4
    assert lin.get(reverse("bulk")).status_code == 200
    assert lin.get(reverse("bulk-changes", args=[ref])).status_code == 200


def test_who_may_not_order_many_at_once_reads_why(workplace: Simulator) -> None:
    workplace.plan(REFUSED)
    (one,) = cases(1)
    maya = client_of("maya")

    told = maya.post(reverse("bulk"), {"case": [ref_of(one)], "verb": "retry"})

    assert told.status_code == 403
    assert "These roles can do it: lead" in told.content.decode()
    ref = Lead().freeze("retry", [one])
    assert maya.get(reverse("bulk-list", args=[ref])).status_code == 200
