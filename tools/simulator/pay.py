"""Card payments: money taken and money given back, each booked twice.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tools.simulator.bank import amount_text, minor_units
from tools.simulator.route import Route, do, read
from tools.simulator.shelf import found, made, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Refused

BOOK = "payments"
EARLIER = re.compile(r"PAID-(\d+)")
EARLIER_AMOUNT = 8640


def charge_card(tables: Tables, call: Call) -> Answer:
    """Take an amount for an order from a card; a second call with another key takes it again."""
    order, amount = call.text("order"), call.money("amount")
    body = {
        "payment": tables.next_id("P-"),
        "order": order,
        "amount": amount_text(amount),
        "state": "captured",
    }
    tables.post(
        book=BOOK,
        source=f"card/{order}",
        target="taken",
        amount=amount,
        business=order,
        reason=body["payment"],
    )
    return made(tables, call, kind="payment", business=order, parent=order, body=body)


def payment_of(tables: Tables, id_: str) -> Thing | None:
    """A payment; `PAID-n` stands for 86.40 that was taken for the order `O-n` before the world began."""
    known, earlier = tables.get("payment", id_), EARLIER.fullmatch(id_)
    if known is not None or earlier is None:
        return known
    order = f"O-{earlier[1]}"
    body = {"payment": id_, "order": order, "amount": amount_text(EARLIER_AMOUNT), "state": "captured"}
    return Thing(kind="payment", id=id_, business=order, key="", state="captured", parent=order, body=body)


def of_ours(tables: Tables, call: Call) -> bool:
    """Whether a refund makes up for a charge that came through here, and not for an earlier payment."""
    return tables.get("payment", call.params["payment"]) is not None


def refund_payment(tables: Tables, call: Call) -> Answer:
    """Give the whole amount back; 409 when that was done already. Money that is out does not come back."""
    known = tables.get("payment", call.params["payment"])
    thing = need(known or payment_of(tables, call.params["payment"]), "payment")
    if thing.state != "captured":
        raise Refused(409, thing.state, f"{thing.id} is {thing.state}", state=thing.state)
    amount, card = minor_units(thing.body["amount"]), f"card/{thing.business}"
    if known is None:
        tables.post(book=BOOK, source=card, target="taken", amount=amount, business="", reason="opening")
        thing = replace(thing, body={**thing.body, "earlier": True})
    tables.post(
        book=BOOK, source="taken", target=card, amount=amount, business=thing.business, reason=thing.id
    )
    thing = moved(tables, thing, "refunded", refund=tables.next_id("RF-"), refund_key=call.key)
    effect = Effect(
        business=thing.business, detail={"payment": thing.id, "amount": "-" + amount_text(amount)}
    )
    return Answer(status=200, body=dict(thing.body), effect=effect)


def find_payment(tables: Tables, call: Call) -> Answer:
    """A payment by its number, or the one that a key took."""
    id_ = call.query.get("payment", "")
    thing = payment_of(tables, id_) if id_ else tables.by_key("payment", call.query.get("key", ""))
    return found(thing, "payment")


def get_order_payments(tables: Tables, call: Call) -> Answer:
    """How many payments for an order stand now, and how much they come to."""
    order = call.params["order"]
    standing = [thing for thing in tables.of("payment", order) if thing.state == "captured"]
    amount = sum(minor_units(thing.body["amount"]) for thing in standing)
    return Answer(status=200, body={"order": order, "standing": len(standing), "amount": amount_text(amount)})


ROUTES: tuple[Route, ...] = (
    do("charge_card", "pay", "charge", "POST /payments", charge_card, honours_key=True),
    replace(
        do(
            "refund_payment",
            "pay",
            "refund",
            "POST /payments/{payment}/refund",
            refund_payment,
            honours_key=True,
        ),
        makes_up_for="charge_card",
        restoring=of_ours,
    ),
    read("find_payment", "pay", "/payments", find_payment),
    read("get_order_payments", "pay", "/orders/{order}/payments", get_order_payments),
)
