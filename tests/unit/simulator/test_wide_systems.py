"""Payments, orders, travel, devices, quota, batches, approvals, held messages, marks: what each refuses and keeps."""

from typing import Any

import pytest

from tests.unit.simulator.conftest import Outside
from tests.unit.simulator.wire import ask

ARTICLES = [{"id": f"ART-{n}"} for n in range(1, 6)]


def relabel(outside: Outside, items: Any = ARTICLES, *, key: str = "k", label: str = "sale") -> Any:
    body = {
        "batch": "B-1",
        "label": label,
        "items": [{**item, "key": f"{key}/{item['id']}"} for item in items],
    }
    return outside.call("batch", "POST", "/relabels", body, key=key)


def states(answer: Any) -> dict[str, str]:
    return {result["id"]: result["state"] for result in answer.json["results"]}


@pytest.mark.requirement("S2-1", "S1-26")
def test_a_second_charge_under_another_key_is_counted_and_a_refund_takes_one_back(outside: Outside) -> None:
    charge = {"order": "O-1", "amount": "86.40"}
    first = outside.call("pay", "POST", "/payments", charge, key="k-1").json
    outside.call("pay", "POST", "/payments", charge, key="k-1")
    assert outside.call("pay", "GET", "/orders/O-1/payments").json["standing"] == 1
    outside.call("pay", "POST", "/payments", charge, key="k-2")
    assert outside.call("pay", "GET", "/orders/O-1/payments").json == {
        "order": "O-1",
        "standing": 2,
        "amount": "172.80",
    }
    back = outside.call("pay", "POST", f"/payments/{first['payment']}/refund", key="k-1-c").json
    assert (back["state"], back["refund_key"]) == ("refunded", "k-1-c")
    again = outside.call("pay", "POST", f"/payments/{first['payment']}/refund", key="other")
    assert (again.status, again.json["error"]) == (409, "refunded")
    assert outside.effects("O-1") == {"charge_card": {"done": 2, "compensated": 1, "net": 1}}
    assert outside.admin("GET", "/books")["books"]["payments"]["taken"] == 8640
    assert outside.balanced()


@pytest.mark.requirement("S1-26")
def test_a_charge_reported_as_failed_and_repeated_without_its_key_being_looked_at_is_a_double_charge(
    outside: Outside,
) -> None:
    outside.plan(
        {"tool": "charge_card", "mode": "fail_after", "attempts": [1]},
        {"tool": "charge_card", "mode": "ignore_key"},
    )
    charge = {"order": "O-5", "amount": "10.00"}
    answers = [outside.call("pay", "POST", "/payments", charge, key="k").status for _ in range(2)]
    assert answers == [500, 201]
    assert outside.call("pay", "GET", "/orders/O-5/payments").json["standing"] == 2


def test_a_payment_from_before_the_world_can_be_refunded_and_is_no_compensation(outside: Outside) -> None:
    assert outside.call("pay", "GET", "/payments?payment=PAID-7").json["order"] == "O-7"
    assert outside.call("pay", "POST", "/payments/PAID-7/refund", key="k").status == 200
    assert outside.effects("O-7") == {"refund_payment": {"done": 1, "compensated": 0, "net": 1}}
    assert outside.balanced()


def test_an_order_is_placed_once_flagged_once_and_not_called_off_when_shipped(outside: Outside) -> None:
    order = {"order": "O-2", "sku": "SKU-118", "qty": 1}
    assert outside.call("orders", "POST", "/orders", order, key="k-1").status == 201
    assert outside.call("orders", "POST", "/orders", order, key="k-2").json["error"] == "exists"
    flagged = outside.call("orders", "PUT", "/orders/O-2/flag", {"flag": "back-order"}, key="k-3").json
    assert (flagged["flag"], flagged["flag_key"]) == ("back-order", "k-3")
    assert outside.call("orders", "PUT", "/orders/O-2/flag", {"flag": "hold"}, key="k-4").status == 409
    outside.admin("POST", "/third-party", {"kind": "order", "id": "O-2", "state": "shipped"})
    refused = outside.call("orders", "POST", "/orders/O-2/calling-off", key="k-1-c")
    assert (refused.status, refused.json["state"]) == (409, "shipped")
    assert outside.call("orders", "GET", "/orders?order=O-99999").json["state"] == "delivered"


def test_a_booking_is_called_off_at_the_desk_that_made_it_and_what_is_full_is_refused(
    outside: Outside,
) -> None:
    full = outside.call("travel", "POST", "/hotels", {"trip": "TR-1", "hotel": "HARBOUR-000"}, key="k")
    assert (full.status, full.json["error"]) == (409, "full")
    car = outside.call("travel", "POST", "/cars", {"trip": "TR-1", "car": "COMPACT"}, key="k-1").json
    assert outside.call("travel", "POST", f"/hotels/{car['booking']}/calling-off", key="k-2").status == 404
    assert outside.call("travel", "POST", f"/cars/{car['booking']}/calling-off", key="k-2").status == 200
    assert outside.effects("TR-1") == {"book_car": {"done": 1, "compensated": 1, "net": 0}}


def test_a_test_mode_says_what_would_become_of_a_call_and_keeps_nothing(outside: Outside) -> None:
    room = {"trip": "TR-2", "hotel": "HARBOUR-12"}
    tried = outside.call("travel", "POST", "/hotels/trial", room)
    assert (tried.status, tried.json) == (200, {"accepted": True, "why": ""})
    full = outside.call("travel", "POST", "/hotels/trial", {**room, "hotel": "HARBOUR-000"})
    assert full.json == {"accepted": False, "why": "HARBOUR-000 is booked out"}
    assert outside.effects("TR-2") == {}

    booking = outside.call("travel", "POST", "/hotels", room, key="k").json["booking"]
    way = f"/hotels/{booking}/calling-off"
    assert outside.call("travel", "POST", f"{way}/trial").json["accepted"] is True
    assert outside.call("travel", "GET", f"/bookings?booking={booking}").json["state"] == "booked"
    assert outside.call("travel", "POST", way, key="k-c").status == 200
    assert outside.call("travel", "POST", f"{way}/trial").json["why"] == f"{booking} is called off"
    assert outside.effects("TR-2") == {"book_hotel": {"done": 1, "compensated": 1, "net": 0}}


@pytest.mark.requirement("S1-11", "S1-26")
def test_an_earlier_configuration_is_not_put_back_over_somebody_elses(outside: Outside) -> None:
    push = {"change": "CHG-1", "config": {"vlan": 20}, "if_version": 1}
    pushed = outside.call("device", "PUT", "/devices/sw-fra2-08/config", push, key="k").json
    assert pushed["write"] == {"version": 2, "key": "k"}
    outside.admin("POST", "/third-party", {"kind": "device", "id": "sw-fra2-08", "fields": {"mtu": 9000}})
    back = {"change": "CHG-1", "config": {"vlan": 10, "mtu": 1500}, "if_version": 2}
    refused = outside.call("device", "POST", "/devices/sw-fra2-08/config/restoring", back, key="k-c")
    assert (refused.status, refused.json["version"]) == (412, 3)
    now = outside.call("device", "GET", "/devices/sw-fra2-08/config").json
    assert now["config"] == {"vlan": 20, "mtu": 9000}
    assert outside.call("device", "GET", "/devices/other/config").status == 404


def test_one_device_of_many_does_not_answer(outside: Outside) -> None:
    outside.plan({"tool": "push_config", "mode": "no_answer", "match": ["CHG-1", "sw-b"]})
    push = {"change": "CHG-1", "config": {"vlan": 20}}
    assert outside.call("device", "PUT", "/devices/sw-a/config", push, key="a").status == 200
    with pytest.raises(TimeoutError):
        outside.call("device", "PUT", "/devices/sw-b/config", push, key="b", limit_s=0.2)
    other = {**push, "change": "CHG-2"}
    assert outside.call("device", "PUT", "/devices/sw-b/config", other, key="c").status == 200


def test_quota_runs_out_and_comes_back_once(outside: Outside) -> None:
    wanted = {"customer": "C-1", "units": 900}
    made = outside.call("quota", "POST", "/deductions", wanted, key="k-1").json
    assert outside.call("quota", "POST", "/deductions", wanted, key="k-2").json["error"] == "exhausted"
    path = f"/deductions/{made['deduction']}/return"
    assert outside.call("quota", "POST", path, key="k-1-c").status == 200
    assert outside.call("quota", "POST", path, key="other").status == 409
    assert outside.admin("GET", "/books")["books"]["quota/C-1"]["used"] == 0
    assert outside.balanced()


def test_a_record_that_was_used_further_down_is_not_withdrawn(outside: Outside) -> None:
    made = outside.call("records", "POST", "/records", {"customer": "C-1", "subject": "u/1"}, key="k").json
    assert outside.call("records", "GET", "/records?subject=u/1").json["record"] == made["record"]
    outside.admin("POST", "/third-party", {"kind": "record", "id": made["record"], "state": "consumed"})
    assert outside.call("records", "POST", f"/records/{made['record']}/withdrawal", key="k-c").status == 409


@pytest.mark.requirement("S0-56")
def test_a_batch_answers_for_each_article_and_can_be_asked_again_for_the_rest(outside: Outside) -> None:
    rule = {"tool": "relabel_items", "mode": "partial", "items": ["ART-2", "ART-4"], "times": 1}
    outside.plan({**rule, "item_state": "locked"})
    first = relabel(outside)
    assert first.status == 207
    assert [id_ for id_, state in states(first).items() if state == "locked"] == ["ART-2", "ART-4"]
    rest = relabel(outside, [{"id": "ART-2"}, {"id": "ART-4"}], key="k2")
    assert (rest.status, set(states(rest).values())) == (200, {"done"})
    assert relabel(outside).status == 200
    effects = outside.records(kind="effect", tool="relabel_items")
    assert [record["key"] for record in effects] == [
        *("k/ART-1", "k/ART-3", "k/ART-5"),
        *("k2/ART-2", "k2/ART-4"),
    ]
    assert outside.effects("B-1")["relabel_items"]["net"] == 5


@pytest.mark.requirement("S0-56")
def test_two_hundred_articles_go_in_one_call(outside: Outside) -> None:
    refused = [f"ART-{n}" for n in range(100, 107)]
    outside.plan({"tool": "relabel_items", "mode": "partial", "items": refused, "item_state": "locked"})
    answer = relabel(outside, [{"id": f"ART-{n}"} for n in range(1, 201)])
    assert answer.status == 207
    assert [id_ for id_, state in states(answer).items() if state != "done"] == refused
    assert outside.effects("B-1")["relabel_items"]["net"] == 193


def test_an_article_may_be_missing_from_the_answer_and_is_then_found_by_its_own_key(outside: Outside) -> None:
    outside.plan({"tool": "relabel_items", "mode": "partial", "items": ["ART-3"], "item_state": "missing"})
    answer = relabel(outside)
    assert answer.status == 207
    assert "ART-3" not in states(answer)
    found = outside.call("batch", "GET", "/articles/ART-1?key=k/ART-1").json
    assert (found["reference"], found["before"], found["version"]) == ("ART-1/2", "standard", 2)
    assert "reference" not in outside.call("batch", "GET", "/articles/ART-3?key=k/ART-3").json


def test_each_article_is_put_back_alone_unless_somebody_else_was_there(outside: Outside) -> None:
    relabel(outside)
    back = {"batch": "B-1", "label": "standard", "if_version": 2}
    assert outside.call("batch", "POST", "/articles/ART-1/restoring", back, key="k/ART-1~c").status == 200
    outside.admin("POST", "/third-party", {"kind": "article", "id": "ART-2", "fields": {"label": "recall"}})
    assert outside.call("batch", "POST", "/articles/ART-2/restoring", back, key="k/ART-2~c").status == 412
    assert outside.effects("B-1")["relabel_items"] == {"done": 5, "compensated": 1, "net": 4}
    outside.admin("POST", "/third-party", {"kind": "article", "id": "ART-9", "state": "locked"})
    assert states(relabel(outside, [{"id": "ART-9"}, {"id": "X"}])) == {
        "ART-9": "locked",
        "X": "unknown_article",
    }


@pytest.mark.requirement("S0-55")
def test_a_decided_request_is_not_withdrawn_but_marked_void(outside: Outside) -> None:
    wanted = {"customer": "C-1", "kind": "credit", "text": "More"}
    one, two = (outside.call("approval", "POST", "/requests", wanted, key=key).json for key in ("a", "b"))
    assert outside.call("approval", "POST", f"/requests/{one['request']}/withdrawal", key="a~c").status == 200
    outside.admin("POST", "/third-party", {"kind": "request", "id": two["request"], "state": "granted"})
    late = outside.call("approval", "POST", f"/requests/{two['request']}/withdrawal", key="b~c")
    assert (late.status, late.json["state"]) == (409, "granted")
    assert outside.call("approval", "POST", f"/requests/{two['request']}/voiding", key="v").status == 200
    assert outside.call("approval", "GET", f"/requests?request={two['request']}").json["state"] == "void"


@pytest.mark.requirement("S2-9")
def test_a_stored_message_goes_out_once_and_can_be_dropped_only_before(outside: Outside) -> None:
    message = {"about": "O-1", "text": "Placed"}
    for _ in range(2):
        assert outside.call("outbox", "PUT", "/messages/m-1", message, key="k").json["state"] == "queued"
    other = outside.call("outbox", "PUT", "/messages/m-1", {**message, "text": "No"}, key="k-2")
    assert (other.status, other.json["error"]) == (409, "taken")
    sent = [
        outside.call("outbox", "POST", "/messages/m-1/sending", key=f"s-{n}").json["message_id"]
        for n in (1, 2)
    ]
    assert len(set(sent)) == 1
    assert outside.call("outbox", "POST", "/messages/m-1/dropping", key="k~c").status == 409
    outside.call("outbox", "PUT", "/messages/m-2", message, key="k-3")
    assert outside.call("outbox", "POST", "/messages/m-2/dropping", key="k-3~c").status == 200
    assert outside.call("outbox", "POST", "/messages/m-2/sending", key="s-3").status == 409
    assert outside.effects("O-1") == {
        "queue_message": {"done": 2, "compensated": 1, "net": 1},
        "send_queued": {"done": 1, "compensated": 0, "net": 1},
    }


@pytest.mark.requirement("S0-24")
def test_a_block_keeps_tickets_of_the_customer_from_being_closed(outside: Outside) -> None:
    reason = {"reason": "refund paid, record says pending"}
    assert outside.call("crm", "PUT", "/accounts/C-7/closing-block", reason, key="b").status == 200
    other = outside.call("crm", "PUT", "/accounts/C-7/closing-block", {"reason": "x"}, key="b-2")
    assert (other.status, other.json["error"]) == (409, "blocked")
    assert outside.call("ticket", "POST", "/tickets/T-7/close", key="k").json["error"] == "closing_blocked"
    assert outside.call("ticket", "POST", "/tickets/T-8/close", key="k-8").status == 200
    outside.call("crm", "POST", "/accounts/C-7/closing-block/lifting", key="b~c")
    assert outside.call("ticket", "POST", "/tickets/T-7/close", key="k").status == 200
    assert outside.call("ticket", "POST", "/tickets/T-1000/close", key="k-9").status == 404


def test_tags_and_notes_do_not_touch_the_version_that_a_writer_insists_on(outside: Outside) -> None:
    outside.call("crm", "PUT", "/accounts/C-7/tags/sync-by-hand", key="t")
    note = outside.call("crm", "POST", "/accounts/C-7/notes", {"text": "Decided"}, key="n").json
    assert outside.call("crm", "GET", "/accounts/C-7/marks?tag=sync-by-hand").json["tagged"] is True
    assert outside.call("crm", "GET", "/accounts/C-7").json["version"] == 1
    outside.call("crm", "POST", "/accounts/C-7/tags/sync-by-hand/removal", key="t~c")
    outside.call("crm", "POST", f"/notes/{note['note']}/striking", key="n~c")
    assert {tool: row["net"] for tool, row in outside.effects("C-7").items()} == {
        "tag_account": 0,
        "add_note": 0,
    }


def test_an_open_task_about_a_case_is_found_until_it_is_closed(outside: Outside) -> None:
    task = {"about": "O-1", "kind": "crm_repair", "title": "Set the refund to paid"}
    made = outside.call("tasks", "POST", "/tasks", task, key="k").json
    asked = "/tasks?kind=crm_repair&about=O-1"
    assert outside.call("tasks", "GET", asked).json["task"] == made["task"]
    outside.call("tasks", "POST", f"/tasks/{made['task']}/closing", key="k~c")
    assert outside.call("tasks", "GET", asked).status == 404


@pytest.mark.parametrize("more", [{"items": "ART-1"}, {"items": [1]}, {"match": 7}, {"match": [7]}])
def test_a_rule_with_malformed_lists_is_refused(outside: Outside, more: dict[str, Any]) -> None:
    rule = {"tool": "relabel_items", "mode": "partial", **more}
    assert ask(outside.admin_url, "POST", "/plan", {"rules": [rule]}).status == 422
