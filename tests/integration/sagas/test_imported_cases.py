"""Every failure case of the chains that others wrote down and no example stands for, played on their import.

A case is a test; all of them are played side by side against `tests.downstream` and judged by its ledger. Where a
source's words differ from the engine's they are mapped here, once:

- `failed` is `failed_clean`: nothing had taken effect.
- `waiting_for_recovery` is `recovering`, and after the recovery deadline a handoff (engine.md, section 10).
- `compensation_failed` is not a state of a run but the reason of its handoff, and the state of the compensation.
- `retry_compensation` is the command `compensate`.
- `compensated`, where the chain wants approval for a compensation, takes a signature: another person signs each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState, PermitState, RunState
from tests.integration.sagas import test_source_cases as examples
from tests.integration.sagas.conftest import ROOT, drain
from tests.integration.sagas.theatre import (
    CASES,
    CHAINS,
    LINT_ONLY,
    PLAYED,
    Case,
    Theatre,
    calls,
    compensations,
    downstream,
    has_compensation,
    has_effect,
    net,
    played,
    theatre,
)
from tools import importer, lint
from tools.importer.chain import chain_of
from tools.reader import contract_from_document, definition_from_document

__all__ = ["downstream", "played", "theatre"]

pytestmark = [pytest.mark.requirement("S0-10", "S0-41", "S3-6"), pytest.mark.timeout(600)]


@pytest.mark.requirement("S0-10")
def test_no_failure_case_of_a_source_is_left_out() -> None:
    sources = sorted((ROOT / "examples" / "sources").glob("*.json"))
    written = {path.stem: len(json.loads(path.read_text())["failure_cases"]) for path in sources}

    assert (len(written), sum(written.values())) == (13, 271)
    assert len(CASES) + len(examples.CASES) == 271
    assert len({(case.source, case.name) for case in CASES}) == len(CASES)
    assert len({(case.flow, case.name) for case in examples.CASES}) == len(examples.CASES)


# --- Judging ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: f"{case.source}-{case.name}")
def test_a_failure_case_of_a_source_ends_as_the_source_says(played: Theatre, case: Case) -> None:
    facts = played.facts(case)
    judge = next(judge for part, judge in JUDGES if part in case.name)
    judge(played, case, facts)
    # Whatever happened: nothing took effect twice, and what was compensated was compensated once.
    for step in (action.step for action in facts.actions):
        done, compensated = net(played, case, step)
        assert done <= 1, step
        assert compensated in (0, done) or compensated < done, step


def _fails_for_good(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    expect = case.expect
    assert facts.action(case.step).state is ActionState.REJECTED
    for never in expect.get("never_called", []):
        assert calls(theatre, case, case.chain.of_step(never)) == []
    assert compensations(theatre, case) == [part["call"] for part in expect["compensations"]]
    if expect["workflow_state"] == "handoff":
        # Behind the point of no return: what is done stays, a person decides.
        assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.REJECTED)
        assert {"retry", "mark_acceptable", "escalate"} <= set(api.next_allowed(facts))
        return
    assert (
        facts.state
        is {"failed": RunState.FAILED_CLEAN, "compensated": RunState.COMPENSATED}[expect["workflow_state"]]
    )
    assert facts.handoff is None
    assert [net(theatre, case, step) for step in expect["executed"] if has_effect(case, step)] == [
        (1, 1) if has_compensation(case, step) else (1, 0)
        for step in expect["executed"]
        if has_effect(case, step)
    ]


def _answer_lost(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    if case.expect["then"] == "no query exists" and "never send again" in case.expect["result"]:
        _handed_over_unasked(theatre, case, facts)
        assert net(theatre, case, case.step)[0] == case.expect["effects_downstream"]
        return
    assert facts.state is RunState.COMPLETED
    assert net(theatre, case, case.step) == (case.expect["effects_downstream"], 0)
    if case.expect["then"] == "no query exists":
        # "same idempotency key again": the second answer is a replay of the first one's.
        assert _keys_of(theatre, case, 2)
        return
    assert len(calls(theatre, case, case.chain.of_step(case.step))) == 1
    assert facts.action(case.step).settled_by == "status query"


def _request_lost(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    if case.expect["then"] == "no query exists" and "publish" in case.chain.step(case.step)["tool"]:
        # "as above": never sent again by itself. The one effect that the source counts is a person's to bring about.
        _handed_over_unasked(theatre, case, facts)
        assert net(theatre, case, case.step) == (0, 0)
        assert "handoff" in api.next_allowed(facts)
        return
    assert facts.state is RunState.COMPLETED
    assert net(theatre, case, case.step) == (case.expect["effects_downstream"], 0)
    assert _keys_of(theatre, case, 2)


def _handed_over_unasked(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.UNKNOWN_WITHOUT_QUERY)
    assert facts.action(case.step).state is ActionState.UNKNOWN
    assert len(calls(theatre, case, case.chain.of_step(case.step))) == 1
    assert compensations(theatre, case) == []


def _keys_of(theatre: Theatre, case: Case, count: int) -> bool:
    """Whether the step was called so often, always under one key."""
    made = calls(theatre, case, case.chain.of_step(case.step))
    return len(made) == count and len({call["key"] for call in made}) == 1


def _query_down(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.UNKNOWN_UNRESOLVED)
    assert facts.action(case.step).state.value == case.expect["step_state"]
    assert compensations(theatre, case) == case.expect["compensations"]
    assert len(calls(theatre, case, case.chain.of_step(case.step))) == 1
    # Before the deadline it waited for recovery.
    moved = [entry.target for entry in api.entries(facts.ref) if entry.machine == "run"]
    assert moved.index("recovering") < moved.index("handoff")


def _fails_once(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert facts.handoff is None
    (step,) = case.expect["compensations_in_order"]
    tried = calls(theatre, case, case.chain.compensation_of(step))
    assert len(tried) == case.inject["times"] + 1
    assert len({call["key"] for call in tried}) == 1
    _compensated_once(theatre, case, facts)


def _compensation_fails_for_good(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.COMPENSATION_FAILED)
    (pending,) = case.expect["pending_compensation_rows"]
    made_up = facts.action(pending).compensation
    assert made_up is not None
    assert made_up.state is CompensationState.FAILED
    assert compensations(theatre, case) == []
    assert {"compensate", "mark_acceptable", "escalate"} <= set(api.next_allowed(facts))


def _compensated_once(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPENSATED
    for step, count in case.expect["undo_effects"].items():
        assert net(theatre, case, step) == (1, count)


def _killed_between(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    step = facts.action(case.step)
    names = [entry.name for entry in api.entries(facts.ref) if entry.step == step.step]
    assert names.index("tool.compensation.registered") < names.index("tool.execution.started")
    assert names.count("tool.execution.unknown") == 1
    assert (step.state, step.settled_by) == (ActionState.CONFIRMED, "status query")
    assert net(theatre, case, case.step)[0] == case.expect["effects_downstream"]
    assert facts.state is RunState.COMPLETED


def _two_workers_one_action(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert facts.state is RunState.COMPLETED
    assert net(theatre, case, case.step)[0] == case.expect["effects_downstream"]
    assert {tuple(attempt.number for attempt in action.attempts) for action in facts.actions} == {(1,)}


def _time_is_up(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    # No limit of the engine ends a run: what is limited is how long one worker drives it. It gave the run back, due
    # at once for anybody, and another one brought it to an end.
    given_back = theatre.glimpses[case.number]
    assert given_back.action(case.step).state is ActionState.CONFIRMED
    assert (given_back.state, given_back.owner) == (RunState.RUNNING, "")
    assert facts.state is RunState.COMPLETED
    assert calls(theatre, case, case.chain.of_step("reserve_inventory"))


def _error_reaches_the_operator(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    assert (facts.state, reason(facts)) == (RunState.HANDOFF, Reason.COMPENSATION_FAILED)
    made_up = facts.action(case.inject["compensation_of"]).compensation
    assert made_up is not None
    assert (made_up.state, made_up.tool) == (
        CompensationState.FAILED,
        case.chain.compensation_of(case.inject["compensation_of"])["tool"],
    )
    assert case.inject["error_type"] in made_up.error_detail
    assert "is not possible any more" in made_up.error_detail
    assert len(made_up.attempts) == 1


def _seen_while_undoing(theatre: Theatre, case: Case, facts: RunFacts) -> None:
    then = theatre.glimpses[case.number]
    paused = case.inject["pause_in_undo_of"]
    states = {action.step: action.state for action in then.actions}
    made_up = {action.step: action.compensation.state for action in then.actions if action.compensation}
    assert then.state is RunState.COMPENSATING
    assert states == {
        **dict.fromkeys(("reserve_flight", "reserve_hotel", "charge_card"), ActionState.CONFIRMED),
        "send_confirmation": ActionState.REJECTED,
    }
    assert made_up[paused] is CompensationState.SENT
    assert {made_up["reserve_flight"], made_up["reserve_hotel"]} == {CompensationState.REGISTERED}
    permit = then.action(paused).compensation.permit  # type: ignore[union-attr]
    assert permit is not None
    assert permit.state is PermitState.CONSUMED
    assert facts.state is RunState.COMPENSATED


JUDGES: tuple[tuple[str, Callable[[Theatre, Case, RunFacts], None]], ...] = (
    ("-fails-once", _fails_once),
    ("undo-of-", _compensation_fails_for_good),
    ("fails-for-good", _fails_for_good),
    ("answer-lost-but-done", _answer_lost),
    ("request-lost", _request_lost),
    ("unknown-and-query-down", _query_down),
    ("failure-event-delivered-twice", _compensated_once),
    ("worker-killed-while-undoing", _compensated_once),
    ("worker-killed-between-call-and-save", _killed_between),
    ("two-workers-one-action", _two_workers_one_action),
    ("whole-run-limit-hits-mid-way", _time_is_up),
    ("typed-undo-error-reaches-the-operator", _error_reaches_the_operator),
    ("status-while-undoing", _seen_while_undoing),
)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name == LINT_ONLY], ids=lambda case: case.name
)
@pytest.mark.requirement("S4-23")
def test_a_compensation_wired_to_the_wrong_tool_is_flagged(case: Case) -> None:
    document = json.loads(json.dumps(case.chain.source))
    for step in document["steps"]:
        if step["step"] in case.inject["registry"]:
            step["compensation"]["tool"] = case.inject["registry"][step["step"]]

    def found(source: dict[str, Any]) -> set[str]:
        imported = importer.import_chain(chain_of(source))
        contracts = {one["tool"]: contract_from_document(one) for one in imported.contracts}
        return {one.code for one in lint.check(definition_from_document(imported.definition), contracts)}

    assert found(document) - found(case.chain.source) == {"W203"}


def test_signatures_were_asked_for_where_the_sources_want_them(played: Theatre) -> None:
    wanted = [
        case
        for case in PLAYED
        if case.inject.get("mode") == "rejected"
        for step in case.expect.get("compensations") or case.expect.get("compensations_in_order") or ()
        if case.chain.of_step(step["of"] if isinstance(step, dict) else step)["compensation"]["who"]
        == "approval"
    ]
    assert played.signed >= len(wanted) > 20


def test_no_drain_finds_anything_left_to_do_but_to_ask(played: Theatre) -> None:
    before = played.ask("ledger")

    drain()

    # Unknown outcomes that wait for a person are asked for all the while.
    later = played.ask("ledger")[len(before) :]
    asked = {
        (t["system"], t["operation"]) for c in CHAINS.values() for t in c.tools() if t["role"] == "query"
    }
    assert [one for one in later if (one["system"], one["operation"]) not in asked] == []


def reason(facts: RunFacts) -> str:
    return facts.handoff.reason if facts.handoff is not None else ""
