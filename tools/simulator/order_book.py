"""The order book: orders are placed, called off, and flagged so that nobody goes on with them.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, found, made, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Refused


def order_of(tables: Tables, id_: str) -> Thing | None:
    """An order; every `O-n` that nobody placed here was delivered long ago."""
    known = tables.get("order", id_)
    if known is not None or not id_.removeprefix("O-").isdigit():
        return known
    body = {"order": id_, "state": "delivered", "flag": ""}
    return Thing(kind="order", id=id_, business=id_, key="", state="delivered", parent="", body=body)


def place_order(tables: Tables, call: Call) -> Answer:
    """Place an order; 409 when one of this number was placed already."""
    order, sku, qty = call.text("order", r"O-\d+"), call.text("sku", r"SKU-\d+"), call.whole("qty")
    if tables.get("order", order) is not None:
        raise Refused(409, "exists", f"{order} was placed already")
    body = {"order": order, "state": "placed", "flag": "", "sku": sku, "qty": qty}
    return made(tables, call, kind="order", business=order, body=body)


def call_off_order(tables: Tables, call: Call) -> Answer:
    """Call a placed order off; 409 once it is shipped or called off already. The order stays on the books."""
    thing = need(tables.get("order", call.params["order"]), "order")
    return changed(tables, thing, "called_off", of="placed")


def flag_order(tables: Tables, call: Call) -> Answer:
    """Put a flag on an order; 409 while it carries one."""
    thing = need(order_of(tables, call.params["order"]), "order")
    flag = call.text("flag", r"[a-z-]{1,40}")
    if thing.body["flag"]:
        raise Refused(409, "flagged", f"{thing.id} is flagged {thing.body['flag']}", flag=thing.body["flag"])
    return _flagged(tables, thing, flag, call.key)


def clear_order_flag(tables: Tables, call: Call) -> Answer:
    """Take the flag off an order; 409 when it carries none."""
    thing = need(order_of(tables, call.params["order"]), "order")
    if not thing.body["flag"]:
        raise Refused(409, "no_flag", f"{thing.id} carries no flag")
    return _flagged(tables, thing, "", "")


def _flagged(tables: Tables, thing: Thing, flag: str, key: str) -> Answer:
    thing = moved(tables, thing, thing.state, flag=flag, flag_key=key)
    effect = Effect(business=thing.business, detail={"order": thing.id, "flag": flag})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_order(tables: Tables, call: Call) -> Answer:
    """An order by its number, or the one that a key placed."""
    id_ = call.query.get("order", "")
    thing = order_of(tables, id_) if id_ else tables.by_key("order", call.query.get("key", ""))
    return found(thing, "order")


ROUTES: tuple[Route, ...] = (
    do("place_order", "orders", "place", "POST /orders", place_order, honours_key=True),
    back(
        "call_off_order",
        "orders",
        "call_off",
        "POST /orders/{order}/calling-off",
        call_off_order,
        of="place_order",
    ),
    do("flag_order", "orders", "flag", "PUT /orders/{order}/flag", flag_order, honours_key=True),
    back(
        "clear_order_flag",
        "orders",
        "clear_flag",
        "POST /orders/{order}/flag/clearing",
        clear_order_flag,
        of="flag_order",
    ),
    read("get_order", "orders", "/orders", get_order),
)
