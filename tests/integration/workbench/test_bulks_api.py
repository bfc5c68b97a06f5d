"""Bulks over REST: the same lists, the same refusals, as documents and problems."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from tests.conftest import Simulator
from tests.integration.workbench.bulking import REASON, cases, go_through
from tests.integration.workbench.conftest import REFUSED, ref_of
from tests.integration.workbench.flows import person

URL = "/api/v1/bulks"


def client_of(username: str) -> Client:
    client = Client()
    client.force_login(person(username))
    return client


def post(client: Client, url: str, body: Any, key: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Idempotency-Key": key} if key else {}
    answer = client.post(url, json.dumps(body), content_type="application/json", headers=headers)
    if answer.status_code >= 400:
        assert answer["Content-Type"] == "application/problem+json"
    return answer.status_code, answer.json()


def got(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_bulk_is_frozen_started_followed_and_reported(workplace: Simulator) -> None:
    workplace.plan(REFUSED)
    found = cases(3)
    workplace.plan({"tool": "send_notice", "mode": "ok"})
    lin = client_of("lin")
    picked = [{"handoff": ref_of(one), "saw_version": one.version} for one in found]

    status, listed = post(lin, URL, {"verb": "retry", "cases": picked})
    ref = listed["bulk"]
    assert (status, listed["included"], listed["canary"], listed["type_count"]) == (201, 3, 2, 3)
    assert all(case["calls"] for case in listed["cases"])

    assert post(lin, f"{URL}/{ref}/start", {"reason": REASON, "count": "3"})[0] == 400
    status, told = post(lin, f"{URL}/{ref}/start", {"reason": REASON, "count": "1"}, "k-1")
    assert (status, [one["pointer"] for one in told["errors"]]) == (422, ["/count"])
    assert post(lin, f"{URL}/{ref}/start", {"reason": REASON, "count": "3"}, "k-2")[0] == 200
    assert post(lin, f"{URL}/{ref}/start", {"reason": REASON, "count": "3"}, "k-2")[0] == 200
    assert post(lin, f"{URL}/{ref}/start", {"reason": REASON, "count": "3"}, "k-3")[0] == 409
    go_through(ref, found)

    document = json.loads(got(lin, f"{URL}/{ref}?limit=2"))
    assert (document["state"], document["counts"]["verified"], document["after"]) == ("finished", 3, 2)
    assert [one["bulk"] for one in json.loads(got(lin, URL))["bulks"]] == [ref]
    lines = got(lin, f"{URL}/{ref}/report.jsonl").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["bulk", "case", "case", "case"]
    assert got(lin, f"{URL}/{ref}/report.csv").startswith("bulk,position,case,")


def test_every_refusal_is_a_problem_with_its_code(workplace: Simulator, agent_client: Client) -> None:
    lin = client_of("lin")

    assert post(client_of("maya"), URL, {"verb": "retry", "cases": []})[1]["code"] == "role"
    assert post(agent_client, URL, {"verb": "retry", "cases": []})[1]["code"] == "people_only"
    assert post(lin, URL, {"verb": "compensate", "cases": []})[1]["code"] == "not_in_bulk"
    assert post(lin, URL, {"verb": "retry", "cases": [{"handoff": ""}]})[0] == 422
    assert post(lin, f"{URL}/BK-0/start", {"reason": REASON}, "k-1")[1]["code"] == "no_such_bulk"
    assert post(lin, f"{URL}/BK-0/undo", {"reason": REASON}, "k-2")[0] == 404
    assert lin.get(f"{URL}/BK-0").status_code == 404
