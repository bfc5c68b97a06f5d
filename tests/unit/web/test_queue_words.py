"""The queue: the load in one sentence, rows in finished words."""

from __future__ import annotations

import pytest
from django.utils import translation

from sagas.facts import FreezeFacts, QueuePage
from tests import builders
from workbench.web.presenters import queue


def shown(*rows: object, counts: dict[str, int] | None = None, **given: object) -> queue.Queue:
    page = QueuePage(rows=tuple(rows), after=str(given.get("after_key", "")), now=builders.NOW, cursor="1:1:")  # type: ignore[arg-type]
    return queue.queue(
        page,
        counts=counts or {"open": len(rows)},
        view="open",
        search="",
        after="",
        reader="maya",
        clock=builders.clock(),
        freezes=given.get("freezes", ()),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"open": 0}, "Nothing needs a decision."),
        ({"open": 1}, "1 needs a decision."),
        ({"open": 21, "late": 1, "unknown": 6}, "21 need a decision. 1 is late. 6 have an unknown outcome."),
        ({"open": 1000}, "1000+ need a decision."),
    ],
)
def test_the_load_is_one_line(counts: dict[str, int], sentence: str) -> None:
    assert queue.load_sentence(counts) == sentence


def test_a_row_names_the_tool_it_is_about() -> None:
    row = shown(builders.row("confirmed", "unknown")).rows[0]

    assert row.why == "<b>tool_2</b> got no answer and asking did not settle it: did it take effect?"
    assert row.about == ("O-1", "C-1", "86.40 EUR")


def test_an_unknown_compensation_is_not_a_failed_one() -> None:
    assert queue.trouble(builders.row("compensation_unknown", "confirmed")) == "tool_1"


def test_a_freeze_of_everything_stands_on_the_rows() -> None:
    freeze = FreezeFacts(id=1, scope="forward", applies_to="all", reason="r", by="Ada", at=builders.NOW)

    assert shown(builders.row("unknown"), freezes=(freeze,)).rows[0].frozen


def test_the_first_run_is_told_from_an_empty_view() -> None:
    assert shown(counts={"open": 0, "closed": 0}).first_run
    assert not shown(counts={"open": 0, "closed": 3}).first_run


def test_a_title_is_in_the_readers_language_where_the_workflow_has_one() -> None:
    row = builders.row("unknown", titles={"zh-hans": "批量更换商品标签"})

    assert shown(row).rows[0].title == "Order shipped, notice unconfirmed"
    with translation.override("zh-hans"):
        assert shown(row).rows[0].title == "批量更换商品标签"


def test_the_next_page_is_an_address() -> None:
    assert shown(builders.row("unknown"), after_key="k").next_url == "/handoffs/?view=open&after=k"
