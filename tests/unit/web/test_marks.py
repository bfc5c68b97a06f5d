"""Marks, strips, counts and risk: shape and word for every state, unknown never dressed as a failure."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import translation

from sagas.facts import Counts, StripMark
from sagas.states import ActionState, CompensationState, RunState
from tests import builders
from tools.contract import Level
from workbench.web.presenters import marks, words

FAILED = {"bad", "compfailed"}


def test_every_state_has_a_shape_and_a_word() -> None:
    assert {str(state) for state in ActionState} <= set(words.STATES)
    assert {str(state) for state in CompensationState} <= set(words.COMPENSATION_STATES)
    assert {str(state) for state in RunState} <= set(words.RUN_STATES)
    for look in (*words.STATES.values(), *words.COMPENSATION_STATES.values(), *words.RUN_STATES.values()):
        assert look.icon
        assert str(look.word)


@pytest.mark.requirement("S3-4", "S1-2")
@pytest.mark.parametrize("name", ["unknown", "compensation_unknown"])
def test_unknown_never_looks_like_a_failure(name: str) -> None:
    look = words.state(name)

    assert look.icon == "unk"
    assert look.tone == "unkt"
    assert not any(word in str(look.word).lower() for word in ("fail", "error", "reject", "pending"))


@pytest.mark.parametrize(
    ("made_up", "icon"),
    [
        ("due", "compensating"),
        ("sent", "compensating"),
        ("unknown", "unk"),
        ("failed", "compfailed"),
        ("voided", "ok"),
    ],
)
def test_a_confirmed_step_shows_how_its_compensation_stands(made_up: str, icon: str) -> None:
    assert marks.state_of(builders.contract("reserve_stock"), "confirmed", made_up).icon == icon


def test_a_strip_says_each_step_in_words() -> None:
    shown = marks.strip(builders.row("confirmed", "unknown", classes=("compensable", "irreversible")).strip)

    assert shown.says == "2 steps"
    assert [one.says for one in shown.marks] == [
        "1. tool_1: confirmed, compensable",
        "2. tool_2: unknown, irreversible",
    ]
    assert [one.bar for one in shown.marks] == ["cmp", "irr"]


def test_from_nine_steps_a_bar_stands_for_the_strip() -> None:
    states = ("confirmed",) * 6 + ("rejected", "unknown", "not_started", "not_started")
    shown = marks.strip(builders.row(*states).strip)

    assert shown.marks == ()
    assert [part.tone for part in shown.bar] == ["ok", "bad", "unk", "wait"]
    assert shown.says == "6 confirmed, 1 rejected, 1 unknown, 2 not sent of 10"


def batch(**items: int) -> StripMark:
    return StripMark(
        position=1,
        step="relabel",
        tool="relabel_items",
        state="partial",
        recovery_class="compensable",
        items=tuple(items.items()),
    )


def test_a_step_with_nine_parts_is_a_bar_of_its_parts() -> None:
    shown = marks.strip((batch(rejected=7, confirmed=193),))

    assert [part.tone for part in shown.bar] == ["ok", "bad"]
    assert shown.bar[0].width > 100
    assert shown.says == "193 confirmed, 7 rejected of 200"


def test_a_step_with_a_few_parts_is_one_mark() -> None:
    shown = marks.strip((batch(rejected=1, confirmed=2),))

    assert [one.icon for one in shown.marks] == ["held"]


def test_parts_on_their_way_are_not_counted_as_never_sent() -> None:
    shown = marks.strip((batch(compensating=5, compensated=5, sent=1),))

    assert [part.tone for part in shown.bar] == ["cmp", "run"]
    assert "not sent" not in shown.says


def test_zero_is_a_dot() -> None:
    shown = marks.counts(Counts(ok=2, failed=0, unknown=1, irreversible=1, compensable=2))

    assert [(one.value, one.tone) for one in shown] == [(2, "g"), (0, "z"), (1, "u"), (1, ""), (2, "")]


def test_every_level_has_bars_and_words() -> None:
    assert [marks.risk(str(level)).level for level in Level] == [1, 2, 3, 4]


def test_a_lease_that_has_run_out_is_nobodys() -> None:
    clock = builders.clock()

    shown = marks.owner(
        claimed_by="maya",
        name="Maya",
        until=builders.NOW - timedelta(seconds=1),
        since=None,
        reader="maya",
        clock=clock,
    )

    assert shown.nobody


def test_ones_own_claim_says_you() -> None:
    until = builders.NOW + timedelta(minutes=5)
    own = marks.owner(
        claimed_by="maya", name="Maya Okafor", until=until, since=None, reader="maya", clock=builders.clock()
    )

    assert (str(own.name), own.initials, own.mine) == ("You", "MO", True)


def test_words_follow_the_reader() -> None:
    with translation.override("zh-hans"):
        assert str(words.state("unknown").word) == "未知"
