"""The parts of a call over many: those not settled by name, the others by number, none of them forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sagas import api
from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState
from tests import builders
from tools.reader import read_definition
from workbench.commands import fields_of
from workbench.commands._arguments import parse
from workbench.commands.retry import Retry, RetryArguments
from workbench.web import forms
from workbench.web.presenters import case, items, marks, steps
from workbench.web.presenters import known as told

REASON = "The lock on these articles was released."


def batch(**states: ActionState) -> ActionFacts:
    """A relabelling whose parts have these states, by name."""
    parts = tuple(
        builders.action(
            "relabel_items",
            1,
            state,
            id=100 + number,
            item=name,
            key=f"k-{name}",
            args={"id": name, "key": f"k-{name}"},
            error_class="refused" if state is ActionState.REJECTED else "",
            error_detail="the answer says 'locked'" if state is ActionState.REJECTED else "",
        )
        for number, (name, state) in enumerate(states.items())
    )
    given = {"batch": "B-1", "label": "summer", "items": [{"id": name} for name in states]}
    return builders.action("relabel_items", 1, ActionState.PARTIAL, items=parts, args=given)


@pytest.fixture
def seven_of_two_hundred() -> RunFacts:
    named = {f"ART{n}": ActionState.REJECTED if n < 8 else ActionState.CONFIRMED for n in range(1, 201)}
    return builders.run(batch(**named))


@pytest.mark.requirement("S0-56")
def test_only_the_refused_are_named_and_the_others_are_said_to_be_untouched(
    seven_of_two_hundred: RunFacts,
) -> None:
    (shown,) = items.batches(seven_of_two_hundred)

    assert [item.name for item in shown.listed] == [f"ART{n}" for n in range(1, 8)]
    assert shown.listed[0].why == "refused: the answer says &#x27;locked&#x27;"
    assert shown.listed[0].key == "k-ART1"
    assert shown.summary == "193 confirmed, 7 rejected of 200 items"
    assert shown.others == "The other 193 items are settled (193 confirmed) and are not touched by a retry."


def test_what_was_refused_for_a_reason_that_passes_is_safe_to_retry_and_picked_beforehand() -> None:
    made = batch(A=ActionState.REJECTED, B=ActionState.REJECTED, C=ActionState.UNKNOWN)
    busy = replace(made.items[0], error_class="temporary")
    facts = builders.run(replace(made, items=(busy, *made.items[1:])))

    (shown,) = items.batches(facts)

    assert {str(item.name): str(item.can) for item in shown.listed} == {
        "A": "Safe to retry",
        "B": "Needs a decision",
        "C": "",
    }
    assert items.safe_to_retry(facts, "relabel_items") == ["A"]


def test_the_bar_and_the_sentence_say_the_same(seven_of_two_hundred: RunFacts) -> None:
    bar = marks.long_strip(api.strip(seven_of_two_hundred))

    assert bar is not None
    assert bar.says == "193 confirmed, 7 rejected of 200"
    assert "“Articles relabelled” was done in part: 193 confirmed, 7 rejected." in case.lede(
        seven_of_two_hundred
    )


@pytest.mark.requirement("S3-4")
def test_a_part_without_an_answer_is_a_question_and_no_failure() -> None:
    facts = builders.run(batch(A=ActionState.CONFIRMED, B=ActionState.UNKNOWN))

    known = told.known(facts, builders.clock())

    assert [(fact.icon, fact.question) for fact in known] == [("held", False), ("unk", True)]
    assert known[1].says == "Not known: which articles carry the new label?"


def test_the_worst_come_first() -> None:
    made = batch(
        A=ActionState.PREPARED, B=ActionState.REJECTED, C=ActionState.CONFIRMED, D=ActionState.UNKNOWN
    )
    stuck = replace(
        made.items[2], compensation=builders.compensation(made.items[2], CompensationState.FAILED)
    )
    facts = builders.run(replace(made, items=(*made.items[:2], stuck, made.items[3])))

    (shown,) = items.batches(facts)

    assert [item.name for item in shown.listed] == ["C", "D", "B", "A"]
    assert shown.others == ""


def test_hundreds_of_open_parts_are_counted_beyond_a_screen() -> None:
    facts = builders.run(batch(**{f"A{n}": ActionState.REJECTED for n in range(150)}))

    (shown,) = items.batches(facts)

    assert len(shown.listed) == items.MOST
    assert shown.more == "50 more are not shown here."


def test_a_loop_calls_its_parts_by_the_element_that_each_is_made_for() -> None:
    definition = read_definition(builders.ROOT / "examples" / "order_fulfilment.toml")
    step = replace(definition.steps[0], each={"from": "input", "pointer": "/orders"})
    facts = builders.run(
        replace(
            builders.action(step.id, 1, ActionState.PARTIAL),
            items=(
                builders.action(step.id, 1, ActionState.CONFIRMED, item="1"),
                builders.action(step.id, 1, ActionState.NOT_STARTED, item="2"),
            ),
        ),
        definition=replace(definition, steps=(step, *definition.steps[1:])),
        input={"orders": ["sw-1", {"device": "sw-2", "port": 1}]},
    )

    assert items.names(facts.actions[0], facts) == {"1": "sw-1", "2": "sw-2"}


@pytest.mark.requirement("S0-56", "S1-16")
def test_a_retry_shows_one_call_with_the_refused_parts_only(seven_of_two_hundred: RunFacts) -> None:
    (call,) = api.preview(seven_of_two_hundred, "retry", step="relabel_items").calls

    assert call.items == tuple(f"ART{n}" for n in range(1, 8))
    assert isinstance(call.body, dict)
    assert [part["id"] for part in call.body["items"]] == list(call.items)
    assert len(seven_of_two_hundred.actions[0].args["items"]) == 200  # type: ignore[index]


def test_refused_parts_are_all_picked_until_somebody_picks(seven_of_two_hundred: RunFacts) -> None:
    asked = fields_of(Retry)
    choices = {"items": items.refused(seven_of_two_hundred, "relabel_items")}

    fresh = next(field for field in forms.fields(asked, choices=choices) if field.name == "items")
    kept = next(
        field
        for field in forms.fields(asked, choices=choices, draft={"items": ["", "ART2"]})
        if field.name == "items"
    )

    assert [choice.picked for choice in fresh.choices] == [True] * 7
    assert [choice.value for choice in kept.choices if choice.picked] == ["ART2"]
    assert fresh.asks


def test_nothing_picked_is_not_everything() -> None:
    none = parse(Retry, {"step": "s", "reason": REASON, "items": [""]})
    unsaid = parse(Retry, {"step": "s", "reason": REASON})

    assert isinstance(none, dict)
    assert str(none["items"]) == "Pick at least one item."
    assert unsaid == RetryArguments(step="s", reason=REASON)


@pytest.mark.requirement("S1-21")
def test_an_agents_account_is_told_from_the_workflows_own_words() -> None:
    own = builders.definition().steps[0]
    facts = builders.run(
        builders.action(own.id, 1, ActionState.CONFIRMED, why=own.why),
        builders.action(
            "create_shipment", 2, ActionState.CONFIRMED, why="cheapest carrier", evidence_note="quote 7"
        ),
    )

    assert steps.accounts(facts) == (
        steps.Account(step="create_shipment", why="cheapest carrier", evidence="quote 7"),
    )


def test_late_news_says_that_the_run_stays_closed() -> None:
    handoff = builders.handoff("late_fact", linked=True)
    shown = case.case(
        builders.run(handoff=handoff, remedies=("run_2",), parent_ref="run_0"),
        handoff,
        reader="maya",
        clock=builders.clock(),
        level="low",
    )

    assert "stays closed" in shown.linked
    assert [one.url for one in shown.remedies] == ["/runs/run_2/"]
    assert shown.parent is not None
    assert shown.parent.url == "/runs/run_0/"
