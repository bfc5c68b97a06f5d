"""The queue: the load in one line, rows in finished words, what waits behind the pill."""

from __future__ import annotations

import pytest
from django.utils import translation

from sagas import api
from sagas.facts import Closing, FreezeFacts, QueueFilter
from tests import builders
from workbench.queries.views import View, read_query, read_view
from workbench.web.presenters import queue
from workbench.web.presenters.queue import Teller


def teller(*freezes: FreezeFacts, viewers: queue.Viewers | None = None) -> Teller:
    return Teller(reader="maya", clock=builders.clock(), freezes=freezes, viewers=viewers)


def freeze(applies_to: str) -> FreezeFacts:
    return FreezeFacts(id=1, scope="forward", applies_to=applies_to, reason="r", by="Ada", at=builders.NOW)


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


def test_amounts_of_different_currencies_are_never_added_up() -> None:
    said = queue.load_sentence({"open": 2}, (("86.40", "EUR"), ("50000", "JPY")))

    assert said == "2 need a decision. 86.40 EUR and 50000 JPY at stake."


def test_a_row_names_the_tool_it_is_about() -> None:
    row = teller().row(builders.row("confirmed", "unknown"))

    assert row.why == "<b>tool_2</b> got no answer and asking did not settle it: did it take effect?"
    assert row.about == ("O-1", "C-1", "86.40 EUR")


def test_an_unknown_compensation_is_not_a_failed_one() -> None:
    mark = api.trouble(builders.row("compensation_unknown", "confirmed").strip)

    assert mark is not None
    assert mark.tool == "tool_1"


@pytest.mark.parametrize(
    ("applies_to", "stopped"),
    [
        ("all", True),
        ("tool:tool_1", True),
        ("workflow:orders", True),
        ("team:night", True),
        ("tool:other", False),
        ("workflow:refunds", False),
        ("team:day", False),
    ],
)
def test_a_freeze_stands_on_the_rows_that_it_holds_back(applies_to: str, stopped: bool) -> None:
    row = builders.row("unknown", team="night")

    assert teller(freeze(applies_to)).row(row).frozen is stopped


def test_a_row_that_somebody_closed_says_who_and_when() -> None:
    row = builders.row("accepted", state="resolved")

    shown = teller().row(row, closing=Closing(by="Jonas Weber", at=builders.NOW), left=True)

    assert shown.closed_by == f"Closed by Jonas Weber {builders.clock().short(builders.NOW)}"
    assert shown.gone
    assert not shown.owner.claim_url


def test_who_else_looks_is_named_and_of_the_owner_the_word_is_enough() -> None:
    there = {"HF-2001": (("jonas", "Jonas Weber"), ("maya", "Maya Okafor"))}

    assert teller(viewers=there).row(builders.row("unknown")).viewing == "Jonas Weber viewing"
    held = builders.row("unknown", claimed_by="jonas", claimed_by_name="Jonas Weber")
    assert teller(viewers=there).row(held).viewing == "viewing"
    alone = {"HF-2001": (("maya", "Maya Okafor"),)}
    assert teller(viewers=alone).row(builders.row("unknown")).viewing == ""


def test_a_title_is_in_the_readers_language_where_the_workflow_has_one() -> None:
    row = builders.row("unknown", titles={"zh-hans": "批量更换商品标签"})

    assert teller().row(row).title == "Order shipped, notice unconfirmed"
    with translation.override("zh-hans"):
        assert teller().row(row).title == "批量更换商品标签"


# --- What waits behind the pill ---------------------------------------------------------------------------------

ABCD = ("HF-1", "HF-2", "HF-3", "HF-4")


@pytest.mark.parametrize(
    ("fresh", "touched", "words"),
    [
        (ABCD, ("HF-1",), ""),
        (("HF-9", *ABCD), ("HF-9",), "1 new"),
        (("HF-1", "HF-3", "HF-4"), ("HF-2",), "1 changed"),
        (("HF-9", "HF-8", "HF-1", "HF-3", "HF-4"), ("HF-2", "HF-8", "HF-9"), "2 new, 1 changed"),
        (("HF-1", "HF-3", "HF-4", "HF-2"), ("HF-2",), "1 changed"),
    ],
)
def test_what_would_add_remove_or_reorder_rows_is_counted(
    fresh: tuple[str, ...], touched: tuple[str, ...], words: str
) -> None:
    assert queue.pill(queue.difference(ABCD, fresh, touched)) == words


def test_a_case_that_joins_a_folded_group_is_new_and_one_that_leaves_is_a_change() -> None:
    shown = ("HF-1", "aa11aa11x3")

    assert queue.difference(shown, ("HF-1", "aa11aa11x5"), ()).new == 2
    assert queue.difference(shown, ("HF-1", "aa11aa11x2"), ()).changed == 1


# --- A view is its query string ---------------------------------------------------------------------------------


def test_a_view_is_its_query_string_and_back() -> None:
    view = View(filter=QueueFilter(state="unknown", level="high", owner="nobody", search="O 1"), grouped=True)

    assert view.query == "state=unknown&q=O+1&risk=high&owner=nobody&group=similar"
    assert read_query(view.query) == view
    assert View().query == ""


def test_a_standard_view_is_named_and_may_be_narrowed() -> None:
    assert read_view({"view": "mine"}).filter == QueueFilter(owner="me")
    assert read_view({"view": "mine", "risk": "high"}).filter == QueueFilter(owner="me", level="high")
    assert read_view({"view": "mine", "owner": ""}).filter == QueueFilter()
    assert read_view({"view": "of somebody else", "colour": "red"}) == View()
