"""Calls over many: partial success, re-entry and compensation, item by item (S0-56)."""

from collections.abc import Callable
from typing import Any

import pytest

from sagas import api
from sagas.errors import NotAllowed
from sagas.facts import RunFacts
from sagas.models import Entry
from sagas.states import ActionState, RunState
from tests.conftest import Clock, Simulator
from tests.integration.sagas.conftest import OPERATOR, effects, settle
from tests.integration.sagas.test_commands import on_the_desk
from tools.contract import Contract
from tools.outcome import Observation
from tools.reader import definition_from_document
from tools.world import World

PATIENCE_S = 2.0
"""How long most tools are waited for; the tool of these batches, which may take 20 s, is not when its answer is lost."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call waits longer than `PATIENCE_S` for its answer."""
    call = World.call

    def call_shortly(self: World, contract: Contract, **given: Any) -> Observation:
        limit_s = min(given.pop("time_limit_s", None) or PATIENCE_S, PATIENCE_S)
        return call(self, contract, time_limit_s=limit_s, **given)

    monkeypatch.setattr(World, "call", call_shortly)


def batch(size: int) -> dict[str, Any]:
    items = [{"id": f"ART-{number}"} for number in range(1, size + 1)]
    return {"batch": "B-77", "label": "summer", "items": items}


def item_states(facts: RunFacts) -> dict[str, str]:
    return {item.item: item.state.value for item in facts.action("relabel").items}


@pytest.mark.requirement("S0-56")
def test_every_item_of_a_batch_has_a_state_and_a_key_of_its_own(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    facts = drained("batch_relabel", batch(5))

    assert facts.state is RunState.COMPLETED
    assert set(item_states(facts).values()) == {"confirmed"}
    assert len({item.key for item in facts.action("relabel").items}) == 5


@pytest.mark.requirement("S0-56", "S1-18")
def test_seven_of_two_hundred_fail_and_a_person_sees_just_these(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    refused = [f"ART-{number}" for number in (3, 30, 60, 90, 120, 150, 180)]
    simulator.plan({"tool": "relabel_items", "mode": "ok", "items": refused, "item_state": "locked"})

    facts = drained("batch_relabel", batch(200))

    assert facts.state is RunState.HANDOFF
    assert facts.action("relabel").state is ActionState.PARTIAL
    assert [name for name, state in item_states(facts).items() if state == "rejected"] == refused

    simulator.plan({"tool": "relabel_items", "mode": "ok"})
    with on_the_desk(facts) as desk:
        desk.retry("relabel", items=tuple(refused[:5]))
    facts = settle(facts.ref, clock)

    states = item_states(facts)
    assert [states[name] for name in refused] == ["confirmed"] * 5 + ["rejected"] * 2
    second = simulator.ledger(tool="relabel_items", kind="arrived")[-1]
    assert second["key"] != facts.action("relabel").key


@pytest.mark.requirement("S0-56", "S1-18")
@pytest.mark.parametrize(
    "refusal",
    [{"mode": "refuse"}, {"mode": "ok", "items": ["ART-1", "ART-2", "ART-3"], "item_state": "locked"}],
    ids=["the call", "each item"],
)
def test_a_batch_that_was_refused_as_a_whole_goes_out_again_as_a_whole(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock, refusal: dict[str, Any]
) -> None:
    simulator.plan({"tool": "relabel_items", **refusal})
    facts = drained("batch_relabel", batch(3))
    assert facts.action("relabel").state is ActionState.REJECTED

    simulator.plan({"tool": "relabel_items", "mode": "ok"})
    with on_the_desk(facts) as desk:
        desk.retry("relabel")
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert set(item_states(facts).values()) == {"confirmed"}
    assert effects(simulator, "relabel_items") == 3


@pytest.mark.requirement("S0-56", "S2-5")
def test_a_batch_is_compensated_item_by_item_in_reverse_and_only_what_took_effect(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan({"tool": "relabel_items", "mode": "ok", "items": ["ART-2"], "item_state": "locked"})
    facts = drained("batch_relabel", batch(4))

    with on_the_desk(facts) as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.COMPENSATED
    assert item_states(facts) == {
        "ART-1": "compensated",
        "ART-2": "rejected",
        "ART-3": "compensated",
        "ART-4": "compensated",
    }
    order = [
        entry.step
        for entry in Entry.objects.filter(run_ref=facts.ref, name="tool.compensation.succeeded").order_by(
            "seq"
        )
    ]
    assert order == ["relabel[ART-4]", "relabel[ART-3]", "relabel[ART-1]"]
    assert len(simulator.ledger(tool="restore_label", kind="effect")) == 3


@pytest.mark.requirement("S0-56", "S3-20")
def test_of_a_batch_one_item_is_left_as_it_is_and_the_others_are_made_up_for(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan(
        {"tool": "relabel_items", "mode": "ok", "items": ["ART-2"], "item_state": "locked"},
        {"tool": "restore_label", "mode": "refuse", "times": 1},
    )
    facts = drained("batch_relabel", batch(4))
    with on_the_desk(facts) as desk:
        desk.compensate()
    facts = settle(facts.ref, clock)

    with pytest.raises(NotAllowed), on_the_desk(facts) as desk:
        desk.skip_compensation("relabel", items=("ART-3",))
    with on_the_desk(facts) as desk:
        desk.skip_compensation("relabel", items=("ART-4",))
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.CLOSED_ACCEPTED
    assert item_states(facts) == {
        "ART-1": "compensated",
        "ART-2": "rejected",
        "ART-3": "compensated",
        "ART-4": "accepted",
    }
    assert facts.action("relabel").state is ActionState.ACCEPTED
    assert len(simulator.ledger(tool="restore_label", kind="effect")) == 2


@pytest.mark.requirement("S0-56", "S3-8")
@pytest.mark.usefixtures("impatient")
def test_a_lost_answer_of_a_batch_is_asked_for_item_by_item_and_nothing_is_done_twice(
    simulator: Simulator, drained: Callable[..., RunFacts]
) -> None:
    simulator.plan({"tool": "relabel_items", "mode": "applied_no_answer", "attempts": [1]})

    facts = drained("batch_relabel", batch(4))

    assert facts.state is RunState.COMPLETED
    assert set(item_states(facts).values()) == {"confirmed"}
    assert len(simulator.ledger(tool="relabel_items", kind="effect")) == 4


@pytest.mark.requirement("S0-23", "S0-24", "S0-25")
def test_accepting_the_rest_opens_the_task_that_the_end_state_names(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan({"tool": "relabel_items", "mode": "ok", "items": ["ART-2"], "item_state": "locked"})
    facts = drained("batch_relabel", batch(3))
    looked = api.look(facts, "mark_acceptable")

    with on_the_desk(facts) as desk:
        desk.mark_acceptable(end_state="rest_by_hand", looked=looked)
    facts = api.run_facts(facts.ref)
    (follow_up,) = [row.ref for row in api.runs().rows if row.ref != facts.ref]
    remedy = settle(follow_up, clock)

    assert facts.state is RunState.CLOSED_ACCEPTED
    assert remedy.state is RunState.COMPLETED
    assert len(simulator.ledger(tool="create_task", kind="effect")) == 1


REFUSED = ("ART-2", "ART-5", "ART-7")


@pytest.fixture
def three_of_nine(simulator: Simulator, drained: Callable[..., RunFacts]) -> RunFacts:
    """Three of nine articles are locked; the others carry the new label."""
    simulator.plan({"tool": "relabel_items", "mode": "ok", "items": list(REFUSED), "item_state": "locked"})
    return drained("batch_relabel", batch(9))


@pytest.mark.requirement("S0-56", "S3-20")
def test_refused_items_are_accepted_one_by_one_and_a_retry_sends_only_the_rest(
    three_of_nine: RunFacts, simulator: Simulator, clock: Clock
) -> None:
    facts = three_of_nine
    with on_the_desk(facts) as desk:
        desk.accept_items("relabel", items=("ART-5",))
    part = settle(facts.ref, clock)
    simulator.plan({"tool": "relabel_items", "mode": "ok"})
    with pytest.raises(NotAllowed), on_the_desk(part) as desk:
        desk.retry("relabel", items=("ART-5",))
    with on_the_desk(part) as desk:
        desk.retry("relabel")
    facts = settle(facts.ref, clock)

    assert part.handoff is not None
    assert (part.state, part.action("relabel").state) == (RunState.HANDOFF, ActionState.PARTIAL)
    assert [name for name, state in item_states(part).items() if state == "rejected"] == ["ART-2", "ART-7"]
    assert len(simulator.ledger(tool="relabel_items", kind="effect")) == 8
    assert {name: state for name, state in item_states(facts).items() if state != "confirmed"} == {
        "ART-5": "accepted"
    }
    assert facts.state is RunState.CLOSED_ACCEPTED
    assert facts.action("relabel").state is ActionState.CONFIRMED
    assert facts.action("relabel").settled_as is ActionState.ACCEPTED
    told = Entry.objects.get(
        run_ref=facts.ref, name="tool.execution.accepted_by_person", step="relabel[ART-5]"
    )
    assert (told.actor_id, told.reason) == (OPERATOR.id, "because it is right")
    assert isinstance(told.after, dict)
    assert told.after["was"] == "rejected"


@pytest.mark.requirement("S0-56")
def test_the_last_accepted_item_lets_the_run_go_on_and_no_effect_is_made_up(
    three_of_nine: RunFacts, clock: Clock
) -> None:
    with pytest.raises(NotAllowed), on_the_desk(three_of_nine) as desk:
        desk.accept_items("relabel", items=("ART-1", "ART-2"))
    with on_the_desk(three_of_nine) as desk:
        desk.accept_items("relabel", items=REFUSED)
    facts = settle(three_of_nine.ref, clock)

    assert facts.state is RunState.CLOSED_ACCEPTED
    assert facts.effects_left == ("relabel",) * 6
    assert facts.handoff is not None
    assert facts.handoff.resolved_at is not None


@pytest.mark.requirement("S0-56", "S2-5")
def test_what_was_accepted_without_an_effect_has_nothing_to_compensate(
    three_of_nine: RunFacts, simulator: Simulator, clock: Clock
) -> None:
    with on_the_desk(three_of_nine) as desk:
        desk.accept_items("relabel", items=("ART-2", "ART-5"))
    with on_the_desk(three_of_nine) as desk:
        desk.compensate()
    facts = settle(three_of_nine.ref, clock)

    assert facts.state is RunState.COMPENSATED
    assert facts.action("relabel").state is ActionState.COMPENSATED
    assert len(simulator.ledger(tool="restore_label", kind="effect")) == 6


LOOP: dict[str, Any] = {
    "name": "reserve_each",
    "version": 1,
    "title": "Hold every line of an order",
    "on_failure": "compensate",
    "recovery_deadline_s": 15.0,
    "input_schema": {"type": "object"},
    "steps": [
        {
            "id": "reserve",
            "tool": "reserve_stock",
            "contract_version": 1,
            "each": {"from": "input", "pointer": "/lines"},
            "args": {
                "order": {"from": "input", "pointer": "/order"},
                "sku": {"from": "item", "pointer": "/sku"},
                "qty": {"from": "item", "pointer": "/qty"},
            },
        },
        {
            "id": "ship",
            "tool": "create_shipment",
            "contract_version": 1,
            "args": {"order": {"from": "input", "pointer": "/order"}, "address": "Harbour Street 4"},
        },
    ],
}
LINES: dict[str, Any] = {
    "order": "O-31",
    "lines": [{"sku": "SKU-1", "qty": 1}, {"sku": "SKU-2", "qty": 2}, {"sku": "SKU-3", "qty": 3}],
}


@pytest.fixture
def loop(published: None) -> str:
    api.publish_definition(definition_from_document(LOOP), actor=OPERATOR)
    return "reserve_each"


@pytest.mark.requirement("S0-56")
def test_a_loop_calls_once_for_every_element_one_after_another(
    simulator: Simulator, drained: Callable[..., RunFacts], loop: str
) -> None:
    facts = drained(loop, LINES)

    assert facts.state is RunState.COMPLETED
    assert [item.state for item in facts.action("reserve").items] == [ActionState.CONFIRMED] * 3
    assert effects(simulator, "reserve_stock") == 3


@pytest.mark.requirement("S0-56", "S2-5", "S0-36")
def test_a_loop_is_compensated_as_often_as_it_took_effect_and_in_reverse(
    simulator: Simulator, drained: Callable[..., RunFacts], loop: str
) -> None:
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})

    facts = drained(loop, LINES)

    assert facts.state is RunState.COMPENSATED
    assert facts.action("reserve").state is ActionState.COMPENSATED
    assert effects(simulator, "release_stock") == 3
    released = Entry.objects.filter(run_ref=facts.ref, name="tool.compensation.succeeded").order_by("seq")
    assert [entry.step for entry in released] == ["reserve[3]", "reserve[2]", "reserve[1]"]


@pytest.mark.requirement("S0-56")
def test_a_loop_whose_only_element_was_refused_goes_out_again_as_a_loop(
    simulator: Simulator, drained: Callable[..., RunFacts], published: None, clock: Clock
) -> None:
    asks = {**LOOP, "name": "reserve_or_ask", "on_failure": "handoff"}
    api.publish_definition(definition_from_document(asks), actor=OPERATOR)
    simulator.plan({"tool": "reserve_stock", "mode": "refuse"})
    facts = drained("reserve_or_ask", {**LINES, "lines": LINES["lines"][:1]})
    assert facts.action("reserve").state is ActionState.REJECTED

    simulator.plan({"tool": "reserve_stock", "mode": "ok"})
    with on_the_desk(facts) as desk:
        desk.retry("reserve")
    facts = settle(facts.ref, clock)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, "reserve_stock") == 1


@pytest.mark.requirement("S0-56")
def test_each_call_of_a_loop_is_compensated_with_its_own_arguments(
    simulator: Simulator, drained: Callable[..., RunFacts], published: None
) -> None:
    tags = {
        "id": "tag",
        "tool": "tag_account",
        "contract_version": 1,
        "each": {"from": "input", "pointer": "/tags"},
        "args": {
            "account": {"from": "input", "pointer": "/account"},
            "tag": {"from": "item", "pointer": "/tag"},
        },
    }
    api.publish_definition(
        definition_from_document({**LOOP, "name": "tag_each", "steps": [tags, LOOP["steps"][1]]}),
        actor=OPERATOR,
    )
    simulator.plan({"tool": "create_shipment", "mode": "refuse"})

    facts = drained(
        "tag_each", {"order": "O-31", "account": "C-31", "tags": [{"tag": "vip"}, {"tag": "late"}]}
    )

    assert facts.state is RunState.COMPENSATED
    made_up = [item.compensation for item in facts.action("tag").items]
    assert [one.args for one in made_up if one is not None] == [
        {"account": "C-31", "tag": "vip"},
        {"account": "C-31", "tag": "late"},
    ]
    assert effects(simulator, "untag_account") == 2


@pytest.mark.requirement("S0-56")
def test_a_loop_stops_at_the_element_that_is_refused_and_makes_up_for_those_before_it(
    simulator: Simulator, drained: Callable[..., RunFacts], loop: str
) -> None:
    simulator.plan({"tool": "reserve_stock", "mode": "refuse", "match": "SKU-2"})

    facts = drained(loop, LINES)

    assert facts.state is RunState.COMPENSATED
    assert [item.state.value for item in facts.action("reserve").items] == [
        "compensated",
        "rejected",
        "skipped",
    ]
    assert effects(simulator, "create_shipment") == 0


@pytest.mark.requirement("S0-56", "S3-8")
def test_a_lost_answer_inside_a_loop_is_asked_for_and_the_loop_goes_on(
    simulator: Simulator, drained: Callable[..., RunFacts], loop: str
) -> None:
    simulator.plan({"tool": "reserve_stock", "mode": "applied_no_answer", "match": "SKU-2", "attempts": [1]})

    facts = drained(loop, LINES)

    assert facts.state is RunState.COMPLETED
    assert effects(simulator, "reserve_stock") == 3


@pytest.mark.requirement("S0-56", "S3-8")
@pytest.mark.usefixtures("impatient")
def test_evidence_resolves_the_unclaimed_handoff_of_a_batch_only_when_its_last_item_is_known(
    simulator: Simulator, drained: Callable[..., RunFacts], clock: Clock
) -> None:
    simulator.plan(
        {"tool": "relabel_items", "mode": "applied_no_answer", "attempts": [1]},
        {"tool": "get_label", "mode": "query_down"},
    )
    facts = drained("batch_relabel", batch(3))
    assert facts.state is RunState.HANDOFF

    simulator.plan({"tool": "get_label", "mode": "ok"})
    for _ in range(20):
        clock.put_forward(30)
        facts = settle(facts.ref, clock)
        if facts.finished_at is not None:
            break

    assert facts.state is RunState.COMPLETED
    assert [handoff.resolution for handoff in facts.handoffs] == ["settled by evidence"]
