"""What an agent may send: a list of steps with its account, and a change of plan; facts come back (S1-21, S0-6)."""

import json
from typing import Any

import pytest
from django.test import Client

STEP = {
    "id": "reserve",
    "tool": "reserve_stock",
    "args": {"order": "O-9", "sku": "SKU-5", "qty": 1},
    "why": "the customer wants it today",
    "evidence": "the stock page showed four",
}


def post(agent_client: Client, path: str, body: Any, key: str = "k-1") -> Any:
    return agent_client.post(
        f"/api/v1/{path}",
        data=json.dumps(body),
        content_type="application/json",
        headers={"Idempotency-Key": f'"{key}"'},
    )


@pytest.mark.requirement("S1-21", "S3-13")
def test_a_list_of_steps_is_started_once_and_answers_with_facts(agent_client: Client) -> None:
    body = {"title": "Hold one", "steps": [STEP], "intent": "Hold it today"}

    first, again = post(agent_client, "runs", body), post(agent_client, "runs", body)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"] == again.json()["run"]
    assert [action["name"] for action in first.json()["actions"]] == ["reserve"]


def test_a_definition_and_steps_at_once_are_refused_by_name(agent_client: Client) -> None:
    answer = post(
        agent_client, "runs", {"title": "Hold one", "steps": [STEP], "definition": "orders", "input": {}}
    )

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/definition"]


def test_a_tool_that_nobody_published_is_refused_at_its_step(agent_client: Client) -> None:
    answer = post(
        agent_client, "runs", {"title": "Two", "steps": [STEP, {**STEP, "id": "other", "tool": "nothing"}]}
    )

    assert answer.status_code == 422
    assert "/steps/1" in [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.requirement("S0-6")
def test_a_change_of_plan_is_kept_and_an_unknown_kind_is_not(agent_client: Client) -> None:
    run = post(agent_client, "runs", {"title": "Hold one", "steps": [STEP]}).json()["run"]

    kept = post(agent_client, f"runs/{run}/replans", {"kind": "fallback", "reason": "the mail tool is slow"})
    refused = post(agent_client, f"runs/{run}/replans", {"kind": "reset", "reason": "start anew"})

    assert kept.status_code == 201
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/kind")
