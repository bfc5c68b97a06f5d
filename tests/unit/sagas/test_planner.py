"""The planner as a table: from a picture to the next thing to do. No database, no clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from sagas import planner
from sagas.facts import ActionFacts, RunFacts
from sagas.planner import (
    Check,
    Decision,
    Finish,
    HandOver,
    Lose,
    Prepare,
    Query,
    ReadOn,
    ReadPrior,
    Resend,
    Send,
    Turn,
    TurnBack,
    Wait,
    decide,
)
from sagas.reasons import Reason
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, Direction, HandoffState, RunState
from tests.unit.sagas.pictures import BEFORE, SOON, action, ago, changed, freeze, run
from tests.unit.workbench.cases import handoff
from tools.contract import Idempotency, KeySupport, Who
from tools.definition import OnFailure


def said(decision: Decision) -> str:
    """A decision in one line: its kind, and what it is about."""
    match decision:
        case HandOver(reason=reason, action=about):
            return f"hand over: {reason} ({about.step if about else '-'})"
        case Finish(state=state):
            return f"finish: {state}"
        case Wait(until=until, held=held):
            return "wait: held" if held else f"wait: {'until later' if until else 'for nothing'}"
        case Send(action=about, again=True):
            return f"send again: {about.step}"
        case Query(action=about, compensation=made_up):
            return f"query{' compensation' if made_up else ''}: {about.step}"
        case ReadOn():
            return "read on"
        case _:
            return f"{type(decision).__name__.lower()}: {decision.action.step}"


def with_contract(facts: ActionFacts, **changes: object) -> ActionFacts:
    return replace(facts, contract=replace(facts.contract, **changes))  # type: ignore[arg-type]


C, R, N = "confirmed", "rejected", "not_started"
DONE = (action(1, C, "registered"), action(2, C, "registered"))
FORWARD: dict[str, tuple[RunFacts, str]] = {
    "a new run": (run(action(1, N), action(2, N), action(3, N)), "prepare: reserve_stock"),
    "prepared": (run(action(1, "prepared", "registered"), action(2, N)), "send: reserve_stock"),
    "not yet due": (run(action(1, "prepared", "registered", due_at=SOON), action(2, N)), "wait: until later"),
    "due by now": (
        run(action(1, "prepared", "registered", due_at=BEFORE), action(2, N)),
        "send: reserve_stock",
    ),
    "in flight": (run(action(1, "sent", "registered"), action(2, N)), "wait: for nothing"),
    "promised": (run(action(1, "sent", "registered", due_at=SOON), action(2, N)), "wait: until later"),
    "promise broken": (
        run(action(1, "sent", "registered", due_at=BEFORE), action(2, N)),
        "lose: reserve_stock",
    ),
    "confirmed": (run(action(1, C, "registered"), action(2, N), action(3, N)), "prepare: create_shipment"),
    "all confirmed": (run(*DONE, action(3, C)), "finish: completed"),
    "one accepted": (run(*DONE, action(3, "accepted")), "finish: closed_accepted"),
    "rejected": (
        run(action(1, C, "registered"), action(2, R, "voided"), action(3, N)),
        "turnback: create_shipment",
    ),
    "rejected, the step says handoff": (run(*DONE, action(3, R)), "hand over: rejected (send_notice)"),
    "done in part": (run(action(1, C), action(2, "partial"), action(3, N)), "turnback: create_shipment"),
    "unknown": (run(*DONE, action(3, "unknown")), "query: send_notice"),
    "unknown, asked lately": (run(*DONE, action(3, "unknown", due_at=SOON)), "wait: until later"),
    "unknown for too long": (
        run(*DONE, action(3, "unknown", unknown_since=ago(3600))),
        "hand over: unknown_unresolved (send_notice)",
    ),
    "unknown behind nothing new": (
        run(action(1, "unknown", "registered"), action(2, N)),
        "query: reserve_stock",
    ),
    "superseded and made anew": (
        run(action(1, "superseded"), action(1, C, "registered"), action(2, N)),
        "prepare: create_shipment",
    ),
    "frozen": (run(action(1, N), freezes=(freeze(),)), "wait: held"),
    "frozen, but unknown": (
        run(action(1, "unknown", "registered"), freezes=(freeze("everything"),)),
        "query: reserve_stock",
    ),
    "another tool frozen": (
        run(action(1, N), freezes=(freeze(applies_to="tool:x"),)),
        "prepare: reserve_stock",
    ),
    "this tool frozen": (run(action(1, N), freezes=(freeze(applies_to="tool:reserve_stock"),)), "wait: held"),
    "the state before is read first": (run(action(1, N, tool="update_account")), "readprior: update_account"),
    "read and fresh": (
        run(action(1, N, tool="update_account", prior_read_at=ago(5))),
        "prepare: update_account",
    ),
    "read and stale": (
        run(action(1, "prepared", tool="update_account", prior_read_at=ago(3600))),
        "readprior: update_account",
    ),
    "stale, but sent once": (
        run(action(1, "prepared", tool="update_account", prior_read_at=ago(3600), sent_at=ago(10))),
        "send: update_account",
    ),
}
BACK: dict[str, tuple[RunFacts, str]] = {
    "last confirmed first": (run(*DONE, action(3, "skipped"), back=True), "turn: create_shipment"),
    "due": (run(DONE[0], action(2, C, "due"), back=True), "check: create_shipment"),
    "due later": (run(DONE[0], changed(action(2, C, "due"), due_at=SOON), back=True), "wait: until later"),
    "one at a time": (run(DONE[0], action(2, C, "sent"), back=True), "wait: for nothing"),
    "the next below": (run(DONE[0], action(2, "compensated", "confirmed"), back=True), "turn: reserve_stock"),
    "nothing left": (
        run(action(1, "compensated", "confirmed"), action(2, R, "voided"), back=True),
        "finish: compensated",
    ),
    "never anything": (run(action(1, R, "voided"), action(2, "skipped"), back=True), "finish: failed_clean"),
    "a failed one holds the earlier ones": (
        run(DONE[0], action(2, C, "failed"), back=True),
        "hand over: compensation_failed (create_shipment)",
    ),
    "irreversible stands first": (run(*DONE, action(3, C), back=True), "hand over: pivot (send_notice)"),
    "irreversible below": (
        run(action(1, C, tool="send_notice"), action(2, C, "registered"), back=True),
        "turn: create_shipment",
    ),
    "irreversible is all that is left": (
        run(action(1, C, tool="send_notice"), action(2, "compensated", "confirmed"), back=True),
        "hand over: pivot (send_notice)",
    ),
    "accepted is left": (run(action(1, "accepted"), back=True), "finish: closed_accepted"),
    "reads are not undone": (
        run(action(1, C, tool="get_reservation"), action(2, R, "voided"), back=True),
        "finish: failed_clean",
    ),
    "unbindable": (
        run(changed(action(1, C, "registered"), args=None), back=True),
        "hand over: compensation_unbindable (reserve_stock)",
    ),
    "an unknown is settled first": (
        run(DONE[0], action(2, "unknown", "registered"), back=True),
        "query: create_shipment",
    ),
    "an unknown compensation is asked for": (
        run(DONE[0], action(2, C, "unknown"), back=True),
        "query compensation: create_shipment",
    ),
    "an unknown compensation for too long": (
        run(DONE[0], changed(action(2, C, "unknown"), unknown_since=ago(3600)), back=True),
        "hand over: compensation_unknown (create_shipment)",
    ),
    "a late recovery still asks": (
        run(DONE[0], changed(action(2, C, "unknown"), sent_at=ago(3600), unknown_since=ago(1)), back=True),
        "query compensation: create_shipment",
    ),
    "forward frozen": (run(action(1, C, "due"), back=True, freezes=(freeze(),)), "check: reserve_stock"),
    "writes frozen": (run(action(1, C, "due"), back=True, freezes=(freeze("writes"),)), "wait: held"),
    "mitigated stays": (
        run(changed(action(1, C, "confirmed"), kind="mitigates"), back=True),
        "hand over: effects_left (reserve_stock)",
    ),
    "left out knowingly": (
        run(action(1, C, "skipped_by_operator"), back=True),
        "hand over: no_compensation (reserve_stock)",
    ),
    "by hand only": (
        run(changed(action(1, C, "due"), who=Who.HUMAN), back=True),
        "hand over: pivot (reserve_stock)",
    ),
    "by hand, ordered": (
        run(changed(action(1, C, "due"), who=Who.HUMAN, ordered_by="user:1"), back=True),
        "check: reserve_stock",
    ),
    "past a pivot, ordered": (
        run(
            changed(action(1, C, "registered"), ordered_by="user:1"),
            action(2, C, tool="send_notice"),
            back=True,
        ),
        "turn: reserve_stock",
    ),
}


@pytest.mark.requirement("S0-69", "S3-10", "S2-10")
@pytest.mark.parametrize("picture", [*FORWARD, *BACK])
def test_the_next_thing_to_do(picture: str) -> None:
    facts, expected = {**FORWARD, **BACK}[picture]

    assert said(decide(facts)) == expected


@pytest.mark.parametrize("state", sorted(FINAL_RUN_STATES))
def test_a_run_that_has_ended_is_left_alone(state: RunState) -> None:
    assert decide(run(action(1, "unknown", "registered"), action(2, N), state=state)) == Wait(until=None)


# --- Unknown, by what the tool does with keys -----------------------------------------------------------------------


@pytest.mark.requirement("S3-4", "S3-19", "S4-4")
@pytest.mark.parametrize(
    ("support", "retention_s", "sent_s_ago", "expected"),
    [
        (KeySupport.HONOURED, None, 60, "send again: reserve_stock"),
        (KeySupport.HONOURED, 3600, 60, "send again: reserve_stock"),
        (KeySupport.HONOURED, 3600, 3601, "hand over: unknown_without_query (reserve_stock)"),
        (KeySupport.IGNORED, None, 60, "hand over: unknown_without_query (reserve_stock)"),
        (KeySupport.NONE, None, 60, "hand over: unknown_without_query (reserve_stock)"),
    ],
)
def test_without_a_query_an_unknown_is_repeated_only_under_a_key_that_is_honoured_and_kept(
    support: KeySupport, retention_s: float | None, sent_s_ago: float, expected: str
) -> None:
    unknown = with_contract(
        action(1, "unknown", "registered", sent_at=ago(sent_s_ago), attempts_used=1),
        status_query=None,
        idempotency=Idempotency(support=support, retention_s=retention_s),
    )

    assert said(decide(run(unknown))) == expected


def test_a_repeat_without_a_query_ends_with_the_budget_of_tries() -> None:
    unknown = with_contract(action(1, "unknown", "registered", sent_at=ago(5)), status_query=None)
    budget = max(
        rule.max_attempts for error, rule in unknown.contract.retry.items() if error in planner._UNANSWERED
    )

    spent = replace(unknown, attempts_used=budget)

    assert said(decide(run(replace(unknown, attempts_used=budget - 1)))) == "send again: reserve_stock"
    assert said(decide(run(spent))) == "hand over: unknown_without_query (reserve_stock)"


def test_a_repeat_that_a_person_ordered_goes_before_the_query_but_not_past_a_freeze() -> None:
    ordered = action(1, "unknown", "registered", sent_at=ago(5), repeat_ordered=True)

    assert said(decide(run(ordered))) == "send again: reserve_stock"
    assert said(decide(run(ordered, freezes=(freeze(),)))) == "wait: held"


def test_an_unknown_compensation_without_any_way_to_ask_is_repeated_under_its_honoured_key_alone() -> None:
    unknown = action(1, C, "unknown")
    assert unknown.compensation is not None
    declared = unknown.contract.compensation
    assert declared is not None
    blind = with_contract(unknown, compensation=replace(declared, already_done=None, verify=None))
    contract = replace(unknown.compensation.contract, status_query=None)
    kept = changed(blind, contract=contract, attempts_used=1, sent_at=ago(5))
    ignored = changed(kept, contract=replace(contract, idempotency=Idempotency(support=KeySupport.IGNORED)))

    assert isinstance(decide(run(kept, back=True)), Resend)
    assert said(decide(run(ignored, back=True))) == "hand over: compensation_unknown (reserve_stock)"


# --- On failure, by step and by workflow ----------------------------------------------------------------------------


@pytest.mark.requirement("S2-6")
@pytest.mark.parametrize(
    ("of_step", "of_workflow", "expected"),
    [
        (None, OnFailure.COMPENSATE, "turnback: create_shipment"),
        (None, OnFailure.HANDOFF, "hand over: rejected (create_shipment)"),
        (OnFailure.HANDOFF, OnFailure.COMPENSATE, "hand over: rejected (create_shipment)"),
        (OnFailure.COMPENSATE, OnFailure.HANDOFF, "turnback: create_shipment"),
        (OnFailure.CONTINUE, OnFailure.COMPENSATE, "prepare: send_notice"),
    ],
)
def test_a_steps_own_word_on_failure_goes_before_the_workflows(
    of_step: OnFailure | None, of_workflow: OnFailure, expected: str
) -> None:
    facts = run(action(1, C, "registered"), action(2, R, "voided"), action(3, N))
    steps = tuple(
        replace(s, on_rejected=of_step) if s.id == "create_shipment" else s for s in facts.definition.steps
    )
    definition = replace(facts.definition, on_failure=of_workflow, steps=steps)

    assert said(decide(replace(facts, definition=definition))) == expected


# --- With a person --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-18")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (run(*DONE, action(3, "unknown"), handoff=handoff()), "query: send_notice"),
        (run(*DONE, action(3, "unknown", due_at=SOON), handoff=handoff()), "wait: until later"),
        (run(*DONE, action(3, R), handoff=handoff()), "wait: for nothing"),
        (
            run(DONE[0], action(2, C, "unknown"), back=True, handoff=handoff()),
            "query compensation: create_shipment",
        ),
        (run(*DONE, action(3, N), handoff=handoff()), "wait: for nothing"),
        (run(*DONE, action(3, N), handoff=handoff(state=HandoffState.RESOLVED)), "prepare: send_notice"),
        (run(*DONE, action(3, N), handoff=handoff(linked=True)), "prepare: send_notice"),
    ],
)
def test_while_a_person_has_the_run_queries_go_on_and_nothing_else_does(
    facts: RunFacts, expected: str
) -> None:
    assert said(decide(facts)) == expected


# --- The state of a run follows from the facts ----------------------------------------------------------------------


@pytest.mark.requirement("S3-21", "S3-2")
@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (run(*DONE, action(3, N)), RunState.RUNNING),
        (run(*DONE, action(3, "unknown")), RunState.RECOVERING),
        (run(*DONE, back=True), RunState.COMPENSATING),
        (run(DONE[0], action(2, C, "unknown"), back=True), RunState.RECOVERING),
        (run(DONE[0], action(2, C, "awaiting_approval"), back=True), RunState.AWAITING_APPROVAL),
        (run(action(1, "unknown"), action(2, C, "awaiting_approval"), back=True), RunState.RECOVERING),
        (run(action(1, "unknown"), handoff=handoff()), RunState.HANDOFF),
        (run(action(1, "unknown"), handoff=handoff(), state=RunState.COMPENSATED), RunState.COMPENSATED),
        (run(action(1, "superseded"), action(1, C)), RunState.RUNNING),
    ],
)
def test_final_goes_before_handoff_before_recovering_before_approval(
    facts: RunFacts, state: RunState
) -> None:
    assert planner.state_of(facts) is state


# --- Exhaustive: every picture of two steps -------------------------------------------------------------------------

TWO = [
    (state, made_up)
    for state in ActionState
    for made_up in ("", *CompensationState)
    if state not in (ActionState.SUPERSEDED,)
]


def _every_picture_of_two_steps() -> Iterator[RunFacts]:
    firsts, seconds = [action(1, *one) for one in TWO], [action(2, *two) for two in TWO]
    for back in (False, True):
        blank = run(firsts[0], seconds[0], back=back)
        for pair in product(firsts, seconds):
            yield replace(blank, actions=pair)


@pytest.mark.requirement("S0-72", "S0-69")
def test_no_picture_of_two_steps_is_a_dead_end_and_none_skips_what_is_open() -> None:
    """Whatever the two are in: the run moves, waits for something under way, asks a person, or has ended."""
    seen, reasons = 0, set[Reason]()
    for facts in _every_picture_of_two_steps():
        seen += 1
        decision = decide(facts)
        actions = facts.actions
        in_flight = any(
            a.state is ActionState.SENT or (a.compensation and a.compensation.state is CompensationState.SENT)
            for a in actions
        )
        unknown = [
            a
            for a in actions
            if a.state is ActionState.UNKNOWN
            or (a.compensation and a.compensation.state is CompensationState.UNKNOWN)
        ]
        if decision == Wait(until=None):
            assert in_flight, facts
        if in_flight and not unknown:
            assert isinstance(decision, Wait | Lose), said(decision)
        elif in_flight:
            # What is unknown is asked about while another call is out; nothing else begins.
            assert isinstance(decision, Wait | Lose | Query | Send), said(decision)
            assert not isinstance(decision, Send) or decision.again
        elif unknown:
            # Nothing is compensated, sent or finished past something that is unknown (shared rule R4).
            assert isinstance(decision, Query | Send | Resend | HandOver), said(decision)
        match decision:
            case Finish(state=RunState.COMPENSATED | RunState.FAILED_CLEAN):
                assert planner.effects_left(facts) == (), facts
                assert facts.direction is Direction.UNDO
            case Finish(state=RunState.CLOSED_ACCEPTED) if facts.direction is Direction.UNDO:
                left = {a.state for a in planner.effects_left(facts)}
                assert left == {ActionState.ACCEPTED}, facts
            case Finish(state=RunState.CLOSED_ACCEPTED):
                assert any(a.state is ActionState.ACCEPTED for a in actions), facts
            case Finish():
                assert facts.direction is Direction.FORWARD
            case Turn(action=about) | Check(action=about):
                later = [
                    a for a in planner.to_compensate(facts) if (a.confirm_seq or 0) > (about.confirm_seq or 0)
                ]
                assert all(a.compensation is not None for a in later)
                assert facts.direction is Direction.UNDO
            case Send() | Prepare() | TurnBack() | ReadPrior():
                assert facts.direction is Direction.FORWARD
            case HandOver(reason=reason):
                reasons.add(reason)
    assert seen == 2 * len(TWO) ** 2
    assert {Reason.COMPENSATION_FAILED, Reason.NO_COMPENSATION} <= reasons


@pytest.mark.requirement("S2-10", "S0-36")
def test_compensations_come_in_the_reverse_order_of_confirmation_whatever_the_positions() -> None:
    facts = run(
        replace(action(1, C, "registered"), confirm_seq=2),
        replace(action(2, C, "registered"), confirm_seq=3),
        replace(action(3, C), confirm_seq=1),
        back=True,
    )

    assert [a.step for a in planner.to_compensate(facts)] == [
        "create_shipment",
        "reserve_stock",
        "send_notice",
    ]
    assert [a.step for a in planner.effects_left(facts)] == [
        "send_notice",
        "reserve_stock",
        "create_shipment",
    ]


@pytest.mark.requirement("S3-8")
def test_of_two_opposite_answers_for_one_moment_the_system_is_asked_even_after_the_end() -> None:
    disputed = replace(action(1, "confirmed"), due_at=ago(1))
    assert disputed.contract.status_query is not None

    for facts in (run(disputed), replace(run(disputed), state=RunState.COMPLETED)):
        assert decide(facts) == Query(action=disputed)
    settled = replace(run(replace(disputed, due_at=None)), state=RunState.COMPLETED)
    assert decide(settled) == Wait(until=None)
