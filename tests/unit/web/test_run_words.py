"""The run page: what was let pass at publishing, what it is a remedy for, what an agent said and what a person did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sagas.facts import EntryFacts, RunFacts, WaiverFacts
from sagas.readings import TrailState
from sagas.states import ActionState
from tests import builders
from workbench.web.presenters import runs


def shown(
    facts: RunFacts, *waivers: WaiverFacts, entries: Sequence[EntryFacts] = (), **more: Any
) -> runs.Run:
    return runs.run(
        facts,
        entries,
        next_allowed=(),
        word="handoff",
        reader="maya",
        clock=builders.clock(),
        full=False,
        waivers=waivers,
        **more,
    )


def long_run(steps: int, *, unknown: int) -> RunFacts:
    """A run of so many steps, one of which got no answer."""
    states = {unknown: ActionState.UNKNOWN}
    made = (
        builders.action("reserve_stock", number, states.get(number, ActionState.CONFIRMED))
        for number in range(1, steps + 1)
    )
    return builders.run(*(replace(one, step=f"s{one.position}") for one in made))


def test_what_was_let_pass_at_publishing_names_who_and_why() -> None:
    waiver = WaiverFacts(
        code="AM104",
        title="an irreversible step before a write",
        steps=("send_sms", "debit_fee"),
        reason="The bank wants the message first.",
        by="ada",
        by_name="Ada",
        at=builders.NOW,
    )

    (one,) = shown(builders.run(), waiver).waivers

    assert (one.code, one.steps, one.by) == ("AM104", "send_sms, debit_fee", "Ada")
    assert one.reason == "The bank wants the message first."
    assert one.at


def test_the_reason_of_whoever_opened_a_remedy_is_not_an_agents_intent() -> None:
    remedy = shown(builders.run(parent_ref="run_0", intent="A person's reason"))
    plain = shown(builders.run(intent="Send the order"))

    assert remedy.intent == ""
    assert remedy.parent is not None
    assert plain.intent == "Send the order"


def test_few_steps_are_boxes_and_many_a_page_at_a_time() -> None:
    few, many = shown(long_run(8, unknown=8)).shape, shown(long_run(120, unknown=77)).shape

    assert (few.table, len(few.boxes), few.said) == (False, 8, "")
    assert (many.table, len(many.boxes), many.said) == (True, runs.STEPS, "1 to 50 of 120")
    assert many.first_url == ""


def test_every_step_of_a_long_run_is_on_one_page_and_no_more() -> None:
    facts, seen, asked = long_run(120, unknown=77), [], runs.Asked()
    while True:
        page = shown(facts, asked=asked).shape
        seen += [box.step for box in page.boxes]
        if not page.next_url:
            break
        asked = runs.Asked(steps_after=page.next_url.rpartition("steps=")[2])

    assert seen == [f"s{number}" for number in range(1, 121)]


def test_the_first_step_in_trouble_is_one_link_away() -> None:
    page = shown(long_run(120, unknown=77)).shape

    there = shown(
        long_run(120, unknown=77), asked=runs.Asked(steps_after=page.trouble_url.rpartition("=")[2])
    )

    assert there.shape.boxes[0].step == "s77"
    assert shown(long_run(9, unknown=0)).shape.trouble_url == ""


def test_a_step_leads_to_its_own_events_and_the_other_wishes_stay() -> None:
    page = shown(builders.run(), asked=runs.Asked(failures=True, after=40))

    assert page.shape.boxes[0].url == "/runs/run_1/?step=reserve_stock&only=failures"
    assert page.filters.failures_url == "/runs/run_1/"
    assert page.first_url == "/runs/run_1/?only=failures"


def test_what_the_system_did_again_and_again_is_one_line_and_a_person_never_is() -> None:
    asked = [builders.entry("tool.execution.queried", seq=seq) for seq in range(1, 5)]
    people = [
        builders.entry("handoff.comment", seq=seq, actor_kind="human", actor_id="maya", reason="Seen.")
        for seq in (5, 6)
    ]

    page = shown(builders.run(), entries=(*asked, *people))

    assert len(page.entries) == 3
    assert page.entries[0].told.times


def test_the_events_say_how_many_there_are_and_whether_they_have_left() -> None:
    assert shown(builders.run(), trail=TrailState(entries=1204, waiting=0, parked=0)).counted == "0 of 1,204"
    left = {
        trail: shown(builders.run(), trail=trail).published
        for trail in (
            TrailState(entries=3, waiting=0, parked=0),
            TrailState(entries=3, waiting=2, parked=0),
            TrailState(entries=3, waiting=2, parked=1),
        )
    }
    assert list(left.values()) == ["all delivered", "2 parcels wait", "1 parcel set aside"]
