"""The system whose tools are told to it: keys, queries, items, takings-back, and calls that are held at gates."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.unit.simulator.conftest import Outside
from tests.unit.simulator.wire import Heard, wait_until

ABOUT = "case-1.s1."


@pytest.fixture
def told(outside: Outside) -> Outside:
    outside.admin(
        "POST",
        "/generic/tools",
        {
            "tools": [
                {"tool": "book", "role": "do", "honours_key": True, "effect": True},
                {"tool": "book_twice", "role": "do", "honours_key": False, "effect": True},
                {"tool": "set", "role": "do", "natural": True, "effect": True},
                {"tool": "send", "role": "do", "item_keys": True, "effect": True},
                {"tool": "unbook", "role": "undo", "of": "book", "honours_key": True},
                {"tool": "book_status", "role": "query", "of": "book", "by_key": True},
            ]
        },
    )
    return outside


def do(outside: Outside, tool: str, key: str = "k1", **body: Any) -> Heard:
    return outside.call("generic", "POST", f"/{tool}", {"about": ABOUT, **body}, key=key)


def done(outside: Outside, tool: str) -> int:
    return len(outside.records(kind="effect", tool=tool))


@pytest.mark.parametrize(("tool", "times"), [("book", 1), ("book_twice", 2), ("set", 1)])
def test_a_repeat_counts_as_the_tool_was_told_to_take_it(told: Outside, tool: str, times: int) -> None:
    first, again = do(told, tool), do(told, tool)

    assert (first.status, again.status, done(told, tool)) == (200, 200, times)


def test_what_was_done_is_undone_once_and_found_by_key_and_by_what_it_is_about(told: Outside) -> None:
    ref = do(told, "book").json["ref"]
    found = told.call("generic", "GET", "/book_status?about=other&key=k1").json["state"]
    undone = do(told, "unbook", key="k1~c", ref=ref)
    again = do(told, "unbook", key="k2", ref=ref)

    assert (found, undone.status, again.status) == ("done", 200, 409)
    assert told.call("generic", "GET", f"/book_status?about={ABOUT}").json["state"] == "undone"
    assert done(told, "unbook") == 1


def test_nobody_knows_a_tool_that_was_not_told(told: Outside) -> None:
    assert do(told, "unknown").status == 404


def test_each_item_takes_effect_as_planned_and_once_for_its_key(told: Outside) -> None:
    items = [{"id": name, "about": f"case-1.s1.{name}", "key": f"k-{name}"} for name in ("a", "b", "c")]
    answers = {"b": "reject", "c": "timeout-but-applied"}
    course = {"mode": "ok", "told": {"answers": answers}, "attempts": [1]}
    told.plan({"tool": "send", "match": ABOUT, "per": "rule", "courses": [course]})

    first, second = do(told, "send", items=items), do(told, "send", items=items)

    states = [result["state"] for result in first.json["results"]]
    assert (first.status, states) == (207, ["done", "refused", "no_answer"])
    assert (second.status, done(told, "send")) == (200, 3)


def test_courses_follow_one_another(told: Outside) -> None:
    courses = [{"mode": "refuse", "attempts": [2]}, {"mode": "throttle", "from": 4}]
    told.plan({"tool": "book_twice", "match": ABOUT, "per": "rule", "courses": courses})

    assert [do(told, "book_twice", key=f"k{n}").status for n in range(5)] == [200, 422, 200, 429, 429]


@pytest.mark.parametrize(("gate", "effects"), [("gate", 0), ("gate_of_answer", 1)])
def test_a_call_is_held_before_its_effect_or_before_its_answer(
    told: Outside, gate: str, effects: int
) -> None:
    told.plan({"tool": "book", "match": ABOUT, "mode": "ok", gate: "here"})
    heard: list[Heard] = []
    caller = threading.Thread(target=lambda: heard.append(do(told, "book")))
    caller.start()

    wait_until(lambda: "here" in told.admin("GET", "/gates")["waiting"])
    assert (done(told, "book"), heard) == (effects, [])
    told.admin("POST", "/gates", {"open": "here"})
    caller.join(60)

    assert (done(told, "book"), heard[0].status) == (1, 200)


def test_accepted_work_takes_effect_when_it_ends(told: Outside) -> None:
    told.plan({"tool": "book", "match": ABOUT, "mode": "ok", "told": {"pending": True, "ref": "R-1"}})

    taken = do(told, "book")
    pending = told.call("generic", "GET", f"/book_status?about={ABOUT}").status
    assert (taken.status, pending, done(told, "book")) == (202, 202, 0)
    told.admin("POST", "/generic/settle", {"about": ABOUT, "state": "done"})

    assert told.call("generic", "GET", f"/book_status?about={ABOUT}").json["ref"] == "R-1"
    assert done(told, "book") == 1
