"""Stock, shipping and notices: what an order sets in motion.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.shelf import found, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Refused

OPENING_STOCK = 1_000_000
SOLD_OUT = "SKU-000"


def reserve_stock(tables: Tables, call: Call) -> Answer:
    """Hold a quantity of an article for an order; 409 when too little is left."""
    order, sku, qty = call.text("order"), call.text("sku", r"SKU-\d+"), call.whole("qty")
    book = f"stock/{sku}"
    if sku != SOLD_OUT and not tables.balance(book, "received"):
        tables.post(
            book=book,
            source="received",
            target="available",
            amount=OPENING_STOCK,
            business="",
            reason="opening",
        )
    if tables.balance(book, "available") < qty:
        raise Refused(409, "out_of_stock", f"{sku} has too little left", sku=sku)
    id_ = tables.next_id("R-")
    body = {"reservation": id_, "order": order, "sku": sku, "qty": qty, "state": "held"}
    tables.put(
        Thing(kind="reservation", id=id_, business=order, key=call.key, state="held", parent=sku, body=body)
    )
    tables.post(book=book, source="available", target="reserved", amount=qty, business=order, reason=id_)
    return Answer(status=201, body=body, effect=Effect(business=order, detail={"reservation": id_, sku: qty}))


def release_stock(tables: Tables, call: Call) -> Answer:
    """Give a held quantity back; 409 when it is not held any more."""
    thing = need(tables.get("reservation", call.params["reservation"]), "reservation")
    if thing.state != "held":
        raise Refused(409, "not_held", f"{thing.id} is {thing.state}", state=thing.state)
    sku, qty = str(thing.body["sku"]), int(thing.body["qty"])
    tables.post(
        book=f"stock/{sku}",
        source="reserved",
        target="available",
        amount=qty,
        business=thing.business,
        reason=thing.id,
    )
    thing = moved(tables, thing, "released")
    effect = Effect(business=thing.business, detail={"reservation": thing.id, sku: -qty})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_reservation(tables: Tables, call: Call) -> Answer:
    """A reservation by its number or by the key it was made with."""
    id_ = call.query.get("reservation", "")
    thing = tables.get("reservation", id_) if id_ else tables.by_key("reservation", call.query.get("key", ""))
    return found(thing, "reservation")


def create_shipment(tables: Tables, call: Call) -> Answer:
    """Book a shipment for an order."""
    order, address = call.text("order"), call.text("address")
    id_ = tables.next_id("SH-")
    body = {"shipment": id_, "order": order, "address": address, "state": "booked"}
    tables.put(
        Thing(kind="shipment", id=id_, business=order, key=call.key, state="booked", parent=order, body=body)
    )
    return Answer(status=201, body=body, effect=Effect(business=order, detail={"shipment": id_}))


def cancel_shipment(tables: Tables, call: Call) -> Answer:
    """Call a booked shipment off; 409 once it is picked up or called off already."""
    thing = need(tables.get("shipment", call.params["shipment"]), "shipment")
    if thing.state != "booked":
        raise Refused(409, thing.state, f"{thing.id} is {thing.state.replace('_', ' ')}", state=thing.state)
    thing = moved(tables, thing, "cancelled")
    effect = Effect(business=thing.business, detail={"shipment": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_shipment(tables: Tables, call: Call) -> Answer:
    """A shipment by its number or by the key it was booked with."""
    id_ = call.query.get("shipment", "")
    thing = tables.get("shipment", id_) if id_ else tables.by_key("shipment", call.query.get("key", ""))
    return found(thing, "shipment")


def send_notice(tables: Tables, call: Call) -> Answer:
    """Send a notice about an order; a second call sends a second one."""
    order = call.text("order")
    id_ = tables.next_id("N-")
    body = {"message_id": id_, "order": order, "text": str(call.value("text") or ""), "state": "sent"}
    tables.put(
        Thing(kind="notice", id=id_, business=order, key=call.key, state="sent", parent=order, body=body)
    )
    return Answer(status=201, body=body, effect=Effect(business=order, detail={"message_id": id_}))


def query_notice(tables: Tables, call: Call) -> Answer:
    """The notice that was sent with a key."""
    return found(tables.by_key("notice", call.query.get("key", "")), "notice")
