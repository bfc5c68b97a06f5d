"""The REST interface: a start happens once, a token sees its own, every error is a problem document."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON
from workbench.commands import tokens
from workbench.labs import cast
from workbench.models import ApiToken
from workbench.roles import Scope, TokenKind

ORDER = {"order": "O-31000", "sku": "SKU-1", "qty": 1, "address": "1 Quay"}
_keys = itertools.count()


def post(client: Client, path: str, body: Any, *, key: str | None = "fresh") -> Any:
    headers = {} if key is None else {"Idempotency-Key": f"key-{next(_keys)}" if key == "fresh" else key}
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(f"/api/v1/{path}", content, content_type="application/json", headers=headers)


def is_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    document: dict[str, Any] = json.loads(answer.content)
    assert (document["status"], document["code"]) == (status, code)
    assert {"type", "title", "detail"} <= set(document)
    assert b"Traceback" not in answer.content
    return document


@pytest.mark.requirement("S1-9", "S3-13")
def test_a_start_happens_once_and_a_repeat_shows_the_run_as_it_is_now(agent_client: Client) -> None:
    first = post(
        agent_client, "runs", {"definition": "orders", "input": ORDER, "intent": "Ship it"}, key="r1"
    )
    flows.drive_until_still(first.json()["run"])
    second = post(
        agent_client, "runs", {"definition": "orders", "input": ORDER, "intent": "Ship it"}, key='"r1"'
    )

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.headers["Location"] == f"/api/v1/runs/{first.json()['run']}"
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.json()["run"] == first.json()["run"]
    assert second.json()["workflow_state"] == "completed"
    assert second.json() == agent_client.get(first.headers["Location"]).json()
    assert len(agent_client.get("/api/v1/runs").json()["runs"]) == 1


@pytest.mark.requirement("S1-9", "S2-11")
def test_parallel_starts_with_one_key_give_one_run(agent_secret: str) -> None:
    def start(_: int) -> tuple[int, str]:
        try:
            client = Client(headers={"Authorization": f"Bearer {agent_secret}"})
            answer = post(client, "runs", {"definition": "orders", "input": ORDER}, key="at-once")
            return answer.status_code, answer.json()["run"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(start, range(20)))

    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    assert len({run for _, run in answers}) == 1
    assert len(api.runs().rows) == 1


@pytest.mark.requirement("S3-13", "S3-21", "S3-14")
def test_the_facts_of_a_mixed_run_say_what_is_known_and_what_may_come_next(
    unknown_notice: RunFacts, agent_client: Client
) -> None:
    told = agent_client.get(f"/api/v1/runs/{unknown_notice.ref}").json()

    assert told["workflow_state"] == "partially_completed"
    assert [(a["name"], a["state"]) for a in told["actions"]] == [
        ("reserve_stock", "confirmed"),
        ("create_shipment", "confirmed"),
        ("send_notice", "unknown"),
    ]
    assert told["actions"][0]["provider_ref"]
    assert told["actions"][2]["attempt"] == 1
    assert "retry" not in told["next_allowed"]
    assert "query_status" in told["next_allowed"]
    assert told["handoff"]["ref"] == ref_of(unknown_notice)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"input": ORDER}, {"/definition"}),
        ({"definition": "orders"}, {"/input"}),
        ({"definition": "orders", "input": ORDER, "steps": []}, {"/steps"}),
        ({"definition": "orders", "input": ORDER, "version": 0}, {"/version"}),
        ({"definition": "orders", "input": {**ORDER, "qty": "two"}}, {"/input/qty"}),
        ({"definition": "orders", "input": {}}, {"/input"}),
        ({"definition": "no_such", "input": ORDER}, {"/definition"}),
        ({"definition": "orders", "input": ORDER, "version": 99}, {"/definition"}),
    ],
)
def test_what_is_wrong_with_a_start_is_pointed_at_and_nothing_starts(
    agent_client: Client, body: dict[str, Any], pointers: set[str]
) -> None:
    answer = post(agent_client, "runs", body)

    document = json.loads(answer.content)
    assert answer.status_code == 422
    assert {error["pointer"] for error in document["errors"]} == pointers, document
    assert api.runs().rows == ()


@pytest.mark.requirement("S1-6")
def test_one_key_with_other_content_is_refused(agent_client: Client) -> None:
    post(agent_client, "runs", {"definition": "orders", "input": ORDER}, key="r1")

    answer = post(agent_client, "runs", {"definition": "orders", "input": {**ORDER, "qty": 2}}, key="r1")

    is_problem(answer, 422, "idempotency_key_reused")
    assert len(api.runs().rows) == 1


@pytest.mark.requirement("S3-13")
def test_every_error_is_a_problem_document(agent_client: Client) -> None:
    good = {"definition": "orders", "input": ORDER}

    is_problem(post(agent_client, "runs", good, key=None), 400, "idempotency_key_missing")
    is_problem(post(agent_client, "runs", good, key="ü"), 400, "idempotency_key_invalid")
    is_problem(post(agent_client, "runs", good, key="x" * 300), 400, "idempotency_key_invalid")
    is_problem(post(agent_client, "runs", "{"), 400, "unreadable")
    is_problem(post(agent_client, "runs", '{"input": NaN}'), 400, "unreadable")
    is_problem(post(agent_client, "runs", '{"input": 1, "input": 2}'), 400, "unreadable")
    is_problem(post(agent_client, "runs", "[1]"), 400, "unreadable")
    is_problem(post(agent_client, "runs", "[" * 5000), 400, "unreadable")
    is_problem(post(agent_client, "runs", '"' + "x" * 1_100_000 + '"'), 413, "body_too_large")
    is_problem(
        agent_client.post(
            "/api/v1/runs", b"a=1", content_type="text/plain", headers={"Idempotency-Key": "k"}
        ),
        415,
        "unsupported_media_type",
    )
    is_problem(agent_client.put("/api/v1/runs"), 405, "method_not_allowed")
    is_problem(agent_client.get("/api/v1/runs/run_none"), 404, "not_found")
    is_problem(agent_client.get("/api/v1/nothing/here"), 404, "not_found")
    is_problem(agent_client.get("/api/v1/runs?limit=0"), 422, "invalid")
    is_problem(agent_client.get("/api/v1/runs?after=!"), 422, "invalid")
    is_problem(Client().post("/api/v1/nothing"), 404, "not_found")
    answer = Client().get("/api/v1/runs")
    is_problem(answer, 401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_an_unexpected_error_says_nothing_of_itself(
    agent_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(api, "runs", broken)

    answer = agent_client.get("/api/v1/runs")

    is_problem(answer, 500, "internal_error")
    assert b"hunter2" not in answer.content


@pytest.mark.requirement("S4-2")
def test_a_token_sees_and_lists_only_the_runs_of_its_own_name(
    rejected_notice: RunFacts, agent_client: Client
) -> None:
    other = tokens.issue(
        actor=cast.SYSTEM,
        owner=flows.person("maya"),
        kind=TokenKind.AGENT,
        name="others",
        scopes=[Scope.READ_RUNS],
    )
    maker = tokens.issue(
        actor=cast.SYSTEM,
        owner=flows.person("maya"),
        kind=TokenKind.INTEGRATION,
        name="orders",
        scopes=[Scope.START_RUNS, Scope.READ_RUNS],
    )
    stranger = Client(headers={"Authorization": f"Bearer {other.secret}"})
    decoy_maker = Client(headers={"Authorization": f"Bearer {maker.secret}"})

    assert agent_client.get(f"/api/v1/runs/{rejected_notice.ref}").status_code == 200
    is_problem(stranger.get(f"/api/v1/runs/{rejected_notice.ref}"), 404, "not_found")
    assert stranger.get("/api/v1/runs").json()["runs"] == []
    decoy = {"definition": "orders", "input": ORDER, "business_ref": rejected_notice.ref}
    assert post(decoy_maker, "runs", decoy).status_code == 201
    is_problem(decoy_maker.get(f"/api/v1/runs/{rejected_notice.ref}"), 404, "not_found")
    is_problem(post(stranger, "runs", {"definition": "orders", "input": ORDER}), 403, "scope")
    is_problem(agent_client.get(f"/api/v1/handoffs/{ref_of(rejected_notice)}"), 403, "people_only")


def test_a_revoked_expired_or_orphaned_token_opens_nothing(agent_secret: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {agent_secret}"})
    assert client.get("/api/v1/runs").status_code == 200
    token = ApiToken.objects.get()
    assert token.last_used_at is not None
    assert agent_secret not in token.digest

    maya = flows.person("maya")
    maya.is_active = False
    maya.save(update_fields=["is_active"])
    is_problem(client.get("/api/v1/runs"), 401, "invalid_token")
    maya.is_active = True
    maya.save(update_fields=["is_active"])
    assert tokens.revoke(actor=cast.SYSTEM, ref=token.ref)
    assert not tokens.revoke(actor=cast.SYSTEM, ref=token.ref)
    is_problem(client.get("/api/v1/runs"), 401, "invalid_token")


def test_people_read_runs_by_role(rejected_notice: RunFacts) -> None:
    statuses = {}
    for username in ("maya", "oskar", "ada"):
        client = Client()
        client.force_login(flows.person(username))
        statuses[username] = client.get(f"/api/v1/runs/{rejected_notice.ref}").status_code

    assert statuses == {"maya": 200, "oskar": 200, "ada": 403}


@pytest.mark.requirement("S1-6", "S1-9")
def test_a_person_settles_a_case_over_the_interface(rejected_notice: RunFacts, workplace: Simulator) -> None:
    client, ref = Client(), ref_of(rejected_notice)
    client.force_login(flows.person("maya"))
    case = client.get(f"/api/v1/handoffs/{ref}").json()
    assert {offer["verb"] for offer in case["offers"] if offer["allowed"]} >= {"retry", "compensate", "claim"}

    refused = post(client, f"handoffs/{ref}/previews", {"verb": "query_status", "step": "send_notice"})
    preview = post(client, f"handoffs/{ref}/previews", {"verb": "compensate"})
    body = {"saw_version": case["version"], "preview": preview.json()["preview"], "reason": REASON}
    done = post(client, f"handoffs/{ref}/commands/compensate", body, key="once")
    again = post(client, f"handoffs/{ref}/commands/compensate", body, key="once")
    stale = post(client, f"handoffs/{ref}/commands/compensate", body, key="another")

    assert refused.status_code == 409
    writes = [call["tool"] for call in preview.json()["calls"] if call["changes_state"]]
    assert writes == ["cancel_shipment", "release_stock"]
    assert (done.status_code, done.json()["result"], done.json()["scheduled"]) == (202, "accepted", True)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    told = is_problem(stale, 409, "stale")
    assert told["changed"]
    assert told["run"]["version"] > case["version"]
    assert flows.drive_until_still(rejected_notice.ref).state == "compensated"


def test_a_session_without_its_csrf_token_runs_nothing(rejected_notice: RunFacts) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(flows.person("maya"))

    answer = post(client, f"handoffs/{ref_of(rejected_notice)}/commands/claim", {})

    is_problem(answer, 403, "permission_denied")


def test_runs_are_listed_newest_first_a_page_at_a_time(agent_client: Client) -> None:
    started = [flows.start() for _ in range(5)]
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = agent_client.get("/api/v1/runs", {"limit": "2", "after": after}).json()
        seen += [row["run"] for row in page["runs"]]
        after = page["after"]

    assert seen == started[::-1]
