"""What people's verbs do to a run, judged by the simulator's ledger."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sagas import api
from sagas.errors import NotAllowed
from sagas.facts import RunFacts
from sagas.states import ActionState, CompensationState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import OPERATOR, drain, effects, settle
from tests.integration.sagas.test_failures import BANK


@contextmanager
def on_the_desk(facts: RunFacts) -> Iterator[api.Desk]:
    assert facts.handoff is not None
    with api.transaction(), api.desk(facts.handoff.ref, actor=OPERATOR, reason="because it is right") as desk:
        yield desk


@pytest.mark.requirement("S3-10")
def test_other_arguments_are_a_new_generation_with_a_key_of_its_own(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, order: dict[str, Any]
) -> None:
    simulator.plan({"tool": "send_notice", "mode": "refuse", "times": 1})
    facts = drained("order_fulfilment", order)

    with on_the_desk(facts) as desk:
        desk.edit_and_retry("send_notice", args={"order": "O-20931", "text": "Another text."})
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.COMPLETED
    notices = [action for action in facts.actions if action.step == "send_notice"]
    assert [notice.state for notice in notices] == [ActionState.SUPERSEDED, ActionState.CONFIRMED]
    assert notices[0].key != notices[1].key
    assert effects(simulator, "send_notice") == 1


@pytest.mark.requirement("S3-10")
def test_what_is_unknown_cannot_be_edited(
    simulator: Simulator, drained: Callable[..., RunFacts], order: dict[str, Any]
) -> None:
    simulator.plan(
        {"tool": "send_notice", "mode": "applied_no_answer"}, {"tool": "query_notice", "mode": "query_down"}
    )
    facts = drained("order_fulfilment", order)

    with pytest.raises(NotAllowed) as refused, on_the_desk(facts) as desk:
        desk.edit_and_retry("send_notice", args={"order": "O-20931", "text": "Another text."})

    assert refused.value.code == "not_rejected"
    assert api.run_facts(facts.ref).version == facts.version


@pytest.mark.requirement("S0-88", "S3-20")
def test_a_left_out_compensation_lets_the_earlier_ones_go_on_and_its_effect_counts_as_left(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan(
        {"tool": "send_sms", "mode": "refuse"},
        {"tool": "withdraw_file", "mode": "refuse"},
    )
    facts = drained("bank_opening", BANK)
    assert facts.action("grant_credit_line").state is ActionState.COMPENSATED

    with on_the_desk(facts) as desk:
        desk.skip_compensation("file_customer")
    facts = settle(facts.ref, clock)

    # The number cannot be released while the file hangs on it: the world says so, and a person hears of it.
    assert facts.state is RunState.HANDOFF
    assert facts.handoff is not None
    assert facts.handoff.params["step"] == "create_customer"
    assert facts.effects_left == ("create_customer", "file_customer")
    made_up = facts.action("file_customer").compensation
    assert made_up is not None
    assert made_up.state is CompensationState.SKIPPED_BY_OPERATOR


@pytest.mark.requirement("S0-88", "S3-20", "S2-10")
def test_a_run_with_a_left_out_compensation_closes_as_accepted_and_says_what_stays(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan({"tool": "send_sms", "mode": "refuse"}, {"tool": "release_customer_no", "mode": "refuse"})
    facts = drained("bank_opening", BANK)
    withdrawn = effects(simulator, "withdraw_file")
    with on_the_desk(facts) as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)

    with on_the_desk(facts) as desk:
        desk.skip_compensation("create_customer")
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.CLOSED_ACCEPTED
    assert facts.effects_left == ("create_customer",)
    assert facts.action("create_customer").state is ActionState.ACCEPTED
    assert effects(simulator, "withdraw_file") == withdrawn == 1
    trail = api.entries(facts.ref)
    (left_out,) = [entry for entry in trail if entry.name == "tool.compensation.skipped"]
    assert (left_out.actor_name, left_out.reason) == (OPERATOR.name, "because it is right")
    assert left_out.after["stays"]
    (closed,) = [entry for entry in trail if entry.name == "run.closed_accepted"]
    assert closed.after == {"effects_left": ["create_customer"]}


@pytest.mark.requirement("S1-17", "S3-4")
def test_secrets_are_masked_for_readers_and_used_for_calls(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    facts = drained("bank_opening", BANK)

    assert facts.state is RunState.COMPLETED
    assert BANK["id_no"] not in str(facts.action("create_customer").args)
    assert effects(simulator, "create_customer") == 1


@pytest.mark.requirement("S0-46")
def test_a_query_without_an_answer_and_a_comment_leave_the_page_that_somebody_reads_good(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, order: dict[str, Any]
) -> None:
    simulator.plan(
        {"tool": "send_notice", "mode": "applied_no_answer"}, {"tool": "query_notice", "mode": "query_down"}
    )
    facts = drained("order_fulfilment", order)
    cursor = api.queue().cursor

    clock.put_forward(120)
    drain()
    with on_the_desk(facts) as desk:
        desk.comment("called the carrier")

    later = api.run_facts(facts.ref)
    assert later.actions[2].queries > facts.actions[2].queries
    assert later.version == facts.version
    assert api.queue_changes(cursor).refs == ()
