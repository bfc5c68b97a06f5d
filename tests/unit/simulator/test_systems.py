"""Every system does what it says, once per key where it honours keys, and puts it on record."""

import pytest

from tests.unit.simulator.conftest import Outside

ORDER = {"order": "O-20931", "sku": "SKU-118", "qty": 2}
BANK = {"application": "A-1", "name": "R. Example", "id_no": "AB123456"}


def test_every_call_leaves_arrival_effect_and_reply_in_this_order(outside: Outside) -> None:
    outside.call("stock", "POST", "/reservations", ORDER, key="k-1")
    records = outside.records()
    assert [record["kind"] for record in records] == ["arrived", "effect", "replied"]
    assert [record["seq"] for record in records] == sorted({record["seq"] for record in records})
    assert {record["call"] for record in records} == {records[0]["seq"]}
    assert {(record["tool"], record["key"], record["business"]) for record in records} == {
        ("reserve_stock", "k-1", "O-20931")
    }


@pytest.mark.requirement("S1-9", "S4-13")
def test_an_honoured_key_gives_the_first_answer_again_and_no_second_effect(outside: Outside) -> None:
    first = outside.call("stock", "POST", "/reservations", ORDER, key="k-1")
    second = outside.call("stock", "POST", "/reservations", ORDER, key="k-1")
    assert (first.status, first.json) == (second.status, second.json)
    assert second.headers["idempotency-replayed"] == "true"
    assert outside.effects("O-20931")["reserve_stock"]["net"] == 1


def test_an_honoured_key_with_other_content_is_refused(outside: Outside) -> None:
    outside.call("stock", "POST", "/reservations", ORDER, key="k-1")
    again = outside.call("stock", "POST", "/reservations", {**ORDER, "qty": 3}, key="k-1")
    assert (again.status, again.json["error"]) == (422, "key_reused")
    assert outside.effects("O-20931")["reserve_stock"]["done"] == 1


def test_a_refusal_is_not_kept_for_the_key(outside: Outside) -> None:
    sold_out = outside.call("stock", "POST", "/reservations", {**ORDER, "sku": "SKU-000"}, key="k-1")
    assert (sold_out.status, sold_out.json["error"]) == (409, "out_of_stock")
    assert outside.call("stock", "POST", "/reservations", ORDER, key="k-1").status == 201


def test_a_tool_that_ignores_keys_acts_twice_and_the_query_finds_the_first(outside: Outside) -> None:
    first = outside.call("notify", "POST", "/messages", {"order": "O-1"}, key="k-1").json
    second = outside.call("notify", "POST", "/messages", {"order": "O-1"}, key="k-1").json
    assert first["message_id"] != second["message_id"]
    assert outside.call("notify", "GET", "/messages?key=k-1").json["message_id"] == first["message_id"]
    assert outside.effects("O-1")["send_notice"]["net"] == 2


@pytest.mark.requirement("S2-5")
def test_stock_goes_out_and_comes_back_and_the_books_balance(outside: Outside) -> None:
    made = outside.call("stock", "POST", "/reservations", ORDER, key="k-1").json
    books = outside.admin("GET", "/books")["books"]["stock/SKU-118"]
    assert books["reserved"] == 2
    for _ in range(2):
        back = outside.call("stock", "POST", f"/reservations/{made['reservation']}/release", key="k-1-c")
        assert (back.status, back.json["state"]) == (200, "released")
    assert outside.admin("GET", "/books")["books"]["stock/SKU-118"]["reserved"] == 0
    assert outside.effects("O-20931")["reserve_stock"] == {"done": 1, "compensated": 1, "net": 0}
    assert outside.balanced()
    other = outside.call("stock", "POST", f"/reservations/{made['reservation']}/release", key="other")
    assert (other.status, other.json["state"]) == (409, "released")


def test_a_picked_up_parcel_cannot_be_called_off(outside: Outside) -> None:
    made = outside.call("shipping", "POST", "/shipments", {"order": "O-1", "address": "Dock 4"}, key="k").json
    change = {"kind": "shipment", "id": made["shipment"], "state": "picked_up"}
    outside.admin("POST", "/third-party", change)
    answer = outside.call("shipping", "POST", f"/shipments/{made['shipment']}/cancellation", key="k-c")
    assert (answer.status, answer.json["error"]) == (409, "picked_up")
    read = outside.call("shipping", "GET", f"/shipments?key=&shipment={made['shipment']}").json
    assert read["state"] == "picked_up"
    assert outside.records(kind="third_party", business="O-1")[0]["detail"]["state"] == "picked_up"


@pytest.mark.requirement("S1-11")
def test_a_record_is_overwritten_only_at_the_version_that_was_read(outside: Outside) -> None:
    before = outside.call("crm", "GET", "/accounts/C-7").json
    wanted = {"fields": {"tier": "gold"}}
    wrote = outside.call(
        "crm", "PUT", "/accounts/C-7", wanted, key="k", if_match=f'"{before["version"]}"'
    ).json
    assert (wrote["version"], wrote["write"]) == (2, {"version": 2, "key": "k"})
    stale = outside.call("crm", "PUT", "/accounts/C-7", wanted, key="k", if_match=str(before["version"]))
    assert stale.status == 412
    outside.admin("POST", "/third-party", {"kind": "account", "id": "C-7", "fields": {"tier": "platinum"}})
    now = outside.call("crm", "GET", "/accounts/C-7?key=k").json
    assert (now["version"], now["write"]["version"], now["fields"]["tier"]) == (3, 2, "platinum")
    back = {"fields": before["fields"], "if_version": wrote["write"]["version"]}
    assert outside.call("crm", "PUT", "/accounts/C-7", back, key="k-c").status == 412


def test_bringing_back_the_earlier_values_counts_as_compensation(outside: Outside) -> None:
    before = outside.call("crm", "GET", "/accounts/C-8").json
    outside.call("crm", "PUT", "/accounts/C-8", {"fields": {"tier": "gold"}}, key="k")
    back = {"fields": before["fields"], "if_version": 2}
    assert outside.call("crm", "PUT", "/accounts/C-8", back, key="k-c").status == 200
    assert outside.effects("C-8")["update_account"] == {"done": 1, "compensated": 1, "net": 0}


def test_a_customer_number_is_given_out_once_and_not_released_while_something_hangs_on_it(
    outside: Outside,
) -> None:
    made = outside.call("core", "POST", "/customers", BANK, key="k-1").json
    again = outside.call("core", "POST", "/customers", BANK, key="k-1")
    assert (again.status, again.json["error"]) == (409, "exists")
    file = outside.call("archive", "POST", "/files", {"customer_no": made["customer_no"]}, key="k-2").json
    release = f"/customers/{made['customer_no']}/release"
    assert outside.call("core", "POST", release, key="k-1-c").json["holds"] == "file"
    outside.call("archive", "POST", f"/files/{file['file_id']}/withdrawal", key="k-2-c")
    assert outside.call("core", "POST", release, key="k-1-c").status == 200
    assert outside.call("core", "GET", "/customers?id_no=AB123456").status == 404
    read = outside.call("core", "GET", f"/customers?customer_no={made['customer_no']}").json
    assert read["state"] == "released"
    assert {name: row["net"] for name, row in outside.effects("A-1").items()} == {
        "create_customer": 0,
        "create_file": 0,
    }


@pytest.mark.requirement("S2-5", "S2-15")
def test_reclaiming_a_credit_line_under_a_second_key_breaks_the_books(outside: Outside) -> None:
    number = outside.call("core", "POST", "/customers", BANK, key="k-1").json["customer_no"]
    wanted = {"customer_no": number, "amount": "500.00"}
    line = outside.call("credit", "POST", "/allocations", wanted, key="k-2").json["allocation_id"]
    for _ in range(2):
        outside.call("credit", "POST", f"/allocations/{line}/reclaim", key="k-2-c")
    assert outside.balanced()
    assert outside.effects("A-1")["allocate_limit"]["net"] == 0
    outside.call("credit", "POST", f"/allocations/{line}/reclaim", key="another")
    assert not outside.balanced()
    assert outside.effects("A-1")["allocate_limit"]["net"] == -1


def test_a_fee_is_corrected_by_a_reversing_entry(outside: Outside) -> None:
    number = outside.call("core", "POST", "/customers", BANK, key="k-1").json["customer_no"]
    entry = outside.call(
        "ledger", "POST", "/entries", {"customer_no": number, "amount": "25.00"}, key="k-5"
    ).json["entry_id"]
    assert outside.admin("GET", "/books")["books"]["fees"]["income"] == 2500
    reversed_ = outside.call("ledger", "POST", f"/entries/{entry}/reversal", key="k-5-c").json
    assert reversed_["reversal_id"].startswith("LE-")
    assert outside.admin("GET", "/books")["books"]["fees"]["income"] == 0
    assert outside.balanced()


def test_a_label_is_put_on_once_and_can_be_asked_for(outside: Outside) -> None:
    ticket = outside.call("ticket", "POST", "/tickets", {"customer": "C-7", "title": "Late"}, key="k").json
    address = f"/tickets/{ticket['ticket_id']}"
    assert outside.call("ticket", "GET", f"{address}?label=by-hand").json["labelled"] is False
    for _ in range(2):
        assert outside.call("ticket", "PUT", f"{address}/labels/by-hand").json["labels"] == ["by-hand"]
    assert outside.call("ticket", "GET", f"{address}?label=by-hand").json["labelled"] is True
    assert outside.effects("C-7")["label_ticket"]["done"] == 1


@pytest.mark.parametrize(
    ("system", "path", "body"),
    [
        ("stock", "/reservations", {**ORDER, "qty": 0}),
        ("stock", "/reservations", [1, 2]),
        ("sms", "/messages", {"customer_no": "1"}),
        ("credit", "/allocations", {"customer_no": "x", "amount": "1e9"}),
        ("mail", "/mails", {"customer": "C-1", "to": "nobody", "text": "x"}),
    ],
)
def test_malformed_content_is_refused_and_changes_nothing(
    outside: Outside, system: str, path: str, body: object
) -> None:
    answer = outside.call(system, "POST", path, body, key="k")
    assert answer.status in {409, 422}
    assert not outside.records(kind="effect")


def test_an_unknown_address_is_no_call_of_a_tool(outside: Outside) -> None:
    assert outside.call("stock", "DELETE", "/reservations").status == 404
    assert not outside.records()


def test_numbering_goes_on_after_a_reset(outside: Outside) -> None:
    made = outside.call("stock", "POST", "/reservations", ORDER, key="k-1").json["reservation"]
    last = outside.records()[-1]["seq"]
    outside.admin("POST", "/reset")
    assert outside.records() == []
    again = outside.call("stock", "POST", "/reservations", ORDER, key="k-1").json["reservation"]
    assert int(again.removeprefix("R-")) > int(made.removeprefix("R-"))
    assert outside.records()[0]["seq"] > last


def test_the_ledger_can_be_read_on_from_where_a_reader_stopped(outside: Outside) -> None:
    outside.call("stock", "POST", "/reservations", ORDER, key="k-1")
    last = outside.admin("GET", "/ledger")["last"]
    outside.call("notify", "POST", "/messages", {"order": "O-1"}, key="k-2")
    assert {record["tool"] for record in outside.records(since=str(last))} == {"send_notice"}
    assert [record["key"] for record in outside.records(kind="effect", tool="send_notice")] == ["k-2"]
