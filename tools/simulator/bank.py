"""The bank core: customer numbers, files, credit lines, text messages, fees.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.shelf import found, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Refused


def amount_text(minor: int) -> str:
    """Minor units as an amount with two decimals."""
    return f"{minor // 100}.{minor % 100:02d}"


def minor_units(text: str) -> int:
    """The reverse of `amount_text`."""
    return int(text.replace(".", ""))


def customer_of(tables: Tables, call: Call) -> Thing:
    """The customer a request is about; 409 when the number is not in use."""
    number = call.text("customer_no", r"\d+")
    thing = tables.get("customer", number)
    if thing is None or thing.state != "assigned":
        raise Refused(409, "no_customer", f"customer number {number} is not in use")
    return thing


def create_customer(tables: Tables, call: Call) -> Answer:
    """Give out a customer number; 409 when the identity number has one already."""
    application, name = call.text("application"), call.text("name")
    id_no = call.text("id_no", r"[A-Z0-9]{6,20}")
    if tables.by_parent("customer", id_no, "assigned") is not None:
        raise Refused(409, "exists", "this person has a customer number already")
    number = tables.next_id("", start=700001)
    body = {
        "customer_no": number,
        "application": application,
        "name": name,
        "id_no": id_no,
        "state": "assigned",
    }
    tables.put(
        Thing(
            kind="customer",
            id=number,
            business=application,
            key=call.key,
            state="assigned",
            parent=id_no,
            body=body,
        )
    )
    return Answer(status=201, body=body, effect=Effect(business=application, detail={"customer_no": number}))


def release_customer_no(tables: Tables, call: Call) -> Answer:
    """Take a customer number back; 409 while a file or a credit line still hangs on it."""
    thing = need(tables.get("customer", call.params["customer_no"]), "customer")
    if thing.state != "assigned":
        raise Refused(409, "released", f"{thing.id} is {thing.state}", state=thing.state)
    for kind, state in (("file", "filed"), ("allocation", "active")):
        if tables.by_parent(kind, thing.id, state) is not None:
            raise Refused(409, "in_use", f"{thing.id} still has a {kind}", holds=kind)
    thing = moved(tables, thing, "released")
    effect = Effect(business=thing.business, detail={"customer_no": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def find_customer(tables: Tables, call: Call) -> Answer:
    """The customer with a number, or the one that an identity number belongs to now."""
    number, id_no = call.query.get("customer_no", ""), call.query.get("id_no", "")
    thing = tables.get("customer", number) if number else tables.by_parent("customer", id_no, "assigned")
    return found(thing, "customer")


def create_file(tables: Tables, call: Call) -> Answer:
    """Open the customer's file; 409 when there is one."""
    customer = customer_of(tables, call)
    if tables.by_parent("file", customer.id, "filed") is not None:
        raise Refused(409, "exists", f"{customer.id} has a file already")
    id_ = tables.next_id("F-")
    body = {"file_id": id_, "customer_no": customer.id, "state": "filed"}
    tables.put(
        Thing(
            kind="file",
            id=id_,
            business=customer.business,
            key=call.key,
            state="filed",
            parent=customer.id,
            body=body,
        )
    )
    return Answer(status=201, body=body, effect=Effect(business=customer.business, detail={"file_id": id_}))


def withdraw_file(tables: Tables, call: Call) -> Answer:
    """Withdraw a file; 409 when it is withdrawn already."""
    thing = need(tables.get("file", call.params["file_id"]), "file")
    if thing.state != "filed":
        raise Refused(409, "withdrawn", f"{thing.id} is {thing.state}", state=thing.state)
    thing = moved(tables, thing, "withdrawn")
    effect = Effect(business=thing.business, detail={"file_id": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def find_file(tables: Tables, call: Call) -> Answer:
    """A file by its number, or the one a customer has now."""
    id_ = call.query.get("file_id", "")
    thing = (
        tables.get("file", id_)
        if id_
        else tables.by_parent("file", call.query.get("customer_no", ""), "filed")
    )
    return found(thing, "file")


def allocate_limit(tables: Tables, call: Call) -> Answer:
    """Set part of the credit pool aside for a customer; a second call with another key sets aside more."""
    customer, amount = customer_of(tables, call), call.money("amount")
    id_ = tables.next_id("CL-")
    body = {
        "allocation_id": id_,
        "customer_no": customer.id,
        "amount": amount_text(amount),
        "state": "active",
    }
    tables.put(
        Thing(
            kind="allocation",
            id=id_,
            business=customer.business,
            key=call.key,
            state="active",
            parent=customer.id,
            body=body,
        )
    )
    tables.post(
        book="credit",
        source="pool",
        target=customer.id,
        amount=amount,
        business=customer.business,
        reason=id_,
    )
    detail = {"allocation_id": id_, "amount": amount_text(amount)}
    return Answer(status=201, body=body, effect=Effect(business=customer.business, detail=detail))


def reclaim_limit(tables: Tables, call: Call) -> Answer:
    """Book an allocation back, whether or not that was done before: twice breaks the books."""
    thing = need(tables.get("allocation", call.params["allocation_id"]), "allocation")
    amount = minor_units(thing.body["amount"])
    customer = str(thing.body["customer_no"])
    tables.post(
        book="credit", source=customer, target="pool", amount=amount, business=thing.business, reason=thing.id
    )
    thing = moved(tables, thing, "reclaimed")
    effect = Effect(
        business=thing.business, detail={"allocation_id": thing.id, "amount": "-" + amount_text(amount)}
    )
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_allocation(tables: Tables, call: Call) -> Answer:
    """An allocation by its number, or the active one of a customer."""
    id_ = call.query.get("allocation_id", "")
    customer = call.query.get("customer_no", "")
    return found(
        tables.get("allocation", id_) if id_ else tables.by_parent("allocation", customer, "active"),
        "allocation",
    )


def send_sms(tables: Tables, call: Call) -> Answer:
    """Send a text message to a customer."""
    customer, template = customer_of(tables, call), call.text("template")
    phone = call.text("phone", r"\+?[0-9][0-9 ]{5,18}")
    id_ = tables.next_id("SMS-")
    body = {"sms_id": id_, "customer_no": customer.id, "phone": phone, "template": template, "state": "sent"}
    tables.put(
        Thing(
            kind="sms",
            id=id_,
            business=customer.business,
            key=call.key,
            state="sent",
            parent=customer.id,
            body=body,
        )
    )
    return Answer(status=201, body=body, effect=Effect(business=customer.business, detail={"sms_id": id_}))


def find_sms(tables: Tables, call: Call) -> Answer:
    """The text message that was sent with a key."""
    return found(tables.by_key("sms", call.query.get("key", "")), "message")


def debit_fee(tables: Tables, call: Call) -> Answer:
    """Book a fee from the customer to the bank's income."""
    customer, amount = customer_of(tables, call), call.money("amount")
    id_ = tables.next_id("LE-")
    body = {"entry_id": id_, "customer_no": customer.id, "amount": amount_text(amount), "state": "booked"}
    tables.put(
        Thing(
            kind="entry",
            id=id_,
            business=customer.business,
            key=call.key,
            state="booked",
            parent=customer.id,
            body=body,
        )
    )
    tables.post(
        book="fees",
        source=customer.id,
        target="income",
        amount=amount,
        business=customer.business,
        reason=id_,
    )
    detail = {"entry_id": id_, "amount": amount_text(amount)}
    return Answer(status=201, body=body, effect=Effect(business=customer.business, detail=detail))


def reverse_fee(tables: Tables, call: Call) -> Answer:
    """Correct a fee by a reversing entry; 409 when it is reversed already."""
    thing = need(tables.get("entry", call.params["entry_id"]), "entry")
    if thing.state != "booked":
        raise Refused(409, "reversed", f"{thing.id} is {thing.state}", state=thing.state)
    amount = minor_units(thing.body["amount"])
    customer = str(thing.body["customer_no"])
    tables.post(
        book="fees", source="income", target=customer, amount=amount, business=thing.business, reason=thing.id
    )
    thing = moved(tables, thing, "reversed", reversal_id=tables.next_id("LE-"))
    effect = Effect(
        business=thing.business, detail={"entry_id": thing.id, "amount": "-" + amount_text(amount)}
    )
    return Answer(status=200, body=dict(thing.body), effect=effect)


def find_entry(tables: Tables, call: Call) -> Answer:
    """An entry by its number or by the key it was booked with."""
    id_ = call.query.get("entry_id", "")
    return found(
        tables.get("entry", id_) if id_ else tables.by_key("entry", call.query.get("key", "")), "entry"
    )
