"""Steps that make the same call for several things: what tells them apart, and what each row says."""

from __future__ import annotations

import pytest

from sagas.facts import ActionFacts
from tests import builders
from tests.unit.sagas.pictures import action, changed, run
from workbench.web.presenters.alike import Alike, alike

ORDERS = ("O-1", "O-2", "O-3")


def push(number: int, state: str, made_up: str = "", **changes: object) -> ActionFacts:
    given = {"order": ORDERS[number - 1], "sku": "SKU-1", "qty": 1}
    return action(
        number, state, made_up, tool="reserve_stock", step=f"stock_{number}", **{"args": given, **changes}
    )


def table(*actions: ActionFacts, moved: tuple[str, ...] = ()) -> Alike:
    (one,) = alike(run(*actions), builders.clock(), changed=moved)
    return one


def test_each_thing_has_a_row_with_its_state_and_what_is_unknown_is_a_question() -> None:
    shown = table(push(1, "confirmed", "registered"), push(2, "unknown"), push(3, "not_started"))

    assert [str(row.name) for row in shown.rows] == list(ORDERS)
    assert str(shown.what) == "order"
    assert [row.question for row in shown.rows] == [False, True, False]
    assert shown.rows[1].evidence.startswith("Not known: ")
    assert str(shown.rows[2].evidence) == "never called"
    assert str(shown.rows[2].source) == ""


@pytest.mark.parametrize(
    ("third", "conflict"),
    [
        (push(3, "rejected", error_class="conflict"), True),
        (push(3, "rejected", error_class="refused"), False),
        (changed(push(3, "confirmed", "failed"), error_class="conflict"), True),
        (changed(push(3, "confirmed", "failed"), error_class="refused"), False),
    ],
)
def test_a_conflict_stands_at_its_own_row(third: ActionFacts, conflict: bool) -> None:
    shown = table(push(1, "confirmed", "registered"), push(2, "confirmed", "registered"), third)

    assert [row.conflict for row in shown.rows] == [False, False, conflict]


def test_what_moved_while_the_page_was_read_is_marked() -> None:
    shown = table(
        push(1, "confirmed", "registered"), push(2, "confirmed"), push(3, "sent"), moved=("stock_2",)
    )

    assert [row.changed for row in shown.rows] == [False, True, False]


def test_steps_that_nothing_tells_apart_and_steps_of_different_tools_are_no_table() -> None:
    same = [push(n, "confirmed", "registered", args={"order": "O-1"}) for n in (1, 2, 3)]
    other = (action(1, "confirmed", "registered"), action(2, "confirmed"), action(3, "rejected"))

    assert alike(run(*same), builders.clock()) == ()
    assert alike(run(*other), builders.clock()) == ()
    assert alike(run(push(1, "confirmed"), push(2, "confirmed")), builders.clock()) == ()
