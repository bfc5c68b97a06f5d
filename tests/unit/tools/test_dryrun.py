"""What the answer of a test mode says about a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.catalog.test_catalog import CATALOG, NEWEST
from tools import lint
from tools.contract import Contract, DryRun, EffectKind, Json
from tools.dryrun import Tried, classify_dry_run
from tools.outcome import Observation, Seen
from tools.problems import FileProblems
from tools.reader import contract_from_document, read_contract

HOTEL = read_contract(CATALOG / "cancel_hotel.v2.toml")
TRIED = read_contract(CATALOG / "try_cancel_hotel.toml")


def said(status: int | None, body: Json = None, *, seen: Seen = Seen.ANSWER, **changed: Any) -> Tried:
    assert HOTEL.dry_run is not None
    observation = Observation(seen=seen, status=status, body=body)
    dry_run: DryRun = replace(HOTEL.dry_run, **changed)
    return classify_dry_run(dry_run, observation, {"args": {"booking": "HO-1"}}, contract=TRIED)


def test_the_condition_on_the_answer_decides_and_the_reason_is_read_where_the_contract_says() -> None:
    assert said(200, {"accepted": True}) == Tried(accepted=True)
    assert said(200, {"accepted": False, "why": "HO-1 is used"}) == Tried(
        accepted=False, detail="HO-1 is used"
    )


def test_a_status_that_the_contract_names_refuses_whatever_else_it_means() -> None:
    body = {"error": "used", "message": "HO-1 is used"}
    assert said(409, body) == Tried(accepted=False, detail="used: HO-1 is used")
    assert said(409, body, refused_statuses=()).accepted is None


@pytest.mark.parametrize(
    ("status", "body", "seen"),
    [
        (None, None, Seen.NO_ANSWER),
        (None, None, Seen.NOT_SENT),
        (503, {"error": "busy"}, Seen.ANSWER),
        (404, {"error": "not_found"}, Seen.ANSWER),
        (200, {"something": "else"}, Seen.ANSWER),
    ],
)
def test_anything_else_says_nothing(status: int | None, body: Json, seen: Seen) -> None:
    assert said(status, body, seen=seen).accepted is None


def test_a_tool_without_an_effect_has_nothing_to_try() -> None:
    document = {**TRIED.document, "dry_run": HOTEL.document["dry_run"]}
    with pytest.raises(FileProblems, match="no effect to try without"):
        contract_from_document(document)


@pytest.mark.parametrize("name", ["key", "result", "prior"])
def test_a_dry_run_is_made_from_the_arguments_of_the_call_alone(name: str) -> None:
    asked = {"booking": {"from": name, "pointer": "/booking"}}
    document = {**HOTEL.document, "dry_run": {**HOTEL.document["dry_run"], "args": asked}}
    with pytest.raises(FileProblems, match="not known at this place"):
        contract_from_document(document)


def test_the_lint_asks_for_a_read_only_tool_that_answers_what_is_looked_at() -> None:
    strong = replace(TRIED, effect_kind=EffectKind.EXTERNAL_EFFECT)
    silent = replace(TRIED, result_schema={"type": "object", "properties": {"why": {"type": "string"}}})

    def said(tool: Contract) -> str:
        return " ".join(one.message for one in lint.check_contract(HOTEL, {**NEWEST, tool.tool: tool}))

    assert "dry_run" not in said(TRIED)
    assert "dry_run asks try_cancel_hotel, which is not read-only" in said(strong)
    assert "dry_run.accepted: the result of try_cancel_hotel has nothing at /accepted" in said(silent)
