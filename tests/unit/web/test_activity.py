"""The trail in sentences: who, what, why, and which version they saw."""

from __future__ import annotations

import pytest

from sagas.states import MOVES
from tests import builders
from workbench.web.presenters import activity

KNOWN = {move.entry for move in MOVES}


@pytest.mark.requirement("S0-49")
def test_a_person_is_named_with_the_reason_and_the_version_they_saw() -> None:
    entry = builders.entry(
        "command.query_status",
        actor_kind="human",
        actor_id="jonas",
        actor_name="Jonas Brandt",
        reason="The carrier answered.",
        saw_version=7,
    )

    told = activity.told(entry, reader="maya", clock=builders.clock())

    assert told.says == "<b>Jonas Brandt</b> asked for the status of <b>send_notice</b>."
    assert (told.quote, told.saw, told.person) == ("The carrier answered.", "saw version 7", True)


def test_the_reader_is_you() -> None:
    entry = builders.entry(
        "human.handoff.claimed", actor_kind="human", actor_id="maya", actor_name="Maya Okafor"
    )

    assert activity.told(entry, reader="maya", clock=builders.clock()).says == "<b>You</b> claimed the case."


def test_a_refusal_says_what_was_asked_and_why_not() -> None:
    after = {"verb": "mark_acceptable", "code": "risk_limit", "said": "The risk is high."}
    entry = builders.entry(
        "command.refused", actor_kind="human", actor_id="maya", actor_name="Maya", after=after
    )

    told = activity.told(entry, reader="x", clock=builders.clock())

    assert told.refused
    assert "asked for “mark acceptable” and was refused" in told.says
    assert told.quote == "The risk is high."


@pytest.mark.parametrize("name", sorted(name for name in KNOWN if not name.startswith("approval.")))
def test_every_move_has_a_sentence(name: str) -> None:
    told = activity.told(builders.entry(name), reader="x", clock=builders.clock())

    assert name not in told.says


def test_what_the_system_repeats_is_one_line() -> None:
    entries = [builders.entry("tool.execution.queried", id=n) for n in range(5)]

    told = activity.activity(entries, reader="x", clock=builders.clock())

    assert [one.times for one in told] == ["5 times, last 11:42"]


def test_the_items_of_a_batch_are_a_line_for_each_outcome() -> None:
    entries = [builders.entry("tool.execution.started", step=f"relabel[A{n}]") for n in range(200)]
    entries += [
        builders.entry(
            "tool.execution.failed" if n % 50 == 0 else "tool.execution.succeeded", step=f"relabel[A{n}]"
        )
        for n in range(200)
    ]
    entries += [builders.entry("tool.execution.partial", step="relabel")]

    shown = activity.activity(entries, reader="maya", clock=builders.clock())

    assert [(one.says, one.times) for one in shown] == [
        ("<b>The system</b> sent <b>relabel</b>.", "(200 items)"),
        ("<b>relabel</b> was refused.", "(4 items)"),
        ("<b>relabel</b> is confirmed.", "(196 items)"),
        ("<b>relabel</b> was done in part.", ""),
    ]


def test_a_single_item_keeps_its_name() -> None:
    (shown,) = activity.activity(
        [builders.entry("tool.execution.failed", step="relabel[A7]")], reader="maya", clock=builders.clock()
    )

    assert shown.says == "<b>relabel[A7]</b> was refused."
