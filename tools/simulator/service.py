"""Tickets, customer records and mail: what a service desk sets in motion.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.simulator import versioned
from tools.simulator.shelf import found, moved
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Refused

OPENING_TICKETS = 1000


def create_ticket(tables: Tables, call: Call) -> Answer:
    """Open a ticket; a second call opens a second one."""
    customer, title = call.text("customer"), call.text("title")
    id_ = tables.next_id("T-")
    body = {"ticket_id": id_, "customer": customer, "title": title, "state": "open", "labels": []}
    tables.put(
        Thing(
            kind="ticket", id=id_, business=customer, key=call.key, state="open", parent=customer, body=body
        )
    )
    return Answer(status=201, body=body, effect=Effect(business=customer, detail={"ticket_id": id_}))


def ticket_of(tables: Tables, id_: str) -> Thing:
    """A ticket; `T-1` to `T-999` have been open since before the world began, each of the customer `C-n`."""
    known = tables.get("ticket", id_)
    if known is not None:
        return known
    number = id_.removeprefix("T-")
    if not number.isdigit() or not 0 < int(number) < OPENING_TICKETS:
        raise Refused(404, "not_found", "no such ticket")
    customer = f"C-{number}"
    body = {"ticket_id": id_, "customer": customer, "title": "Opened earlier", "state": "open", "labels": []}
    return Thing(kind="ticket", id=id_, business=customer, key="", state="open", parent=customer, body=body)


def close_ticket(tables: Tables, call: Call) -> Answer:
    """Close an open ticket; 409 when it is closed already, or while closing is blocked. The ticket itself stays."""
    thing = ticket_of(tables, call.params["ticket_id"])
    if thing.state != "open":
        raise Refused(409, "closed", f"{thing.id} is closed", state=thing.state)
    marks = tables.get("marks", str(thing.body["customer"]))
    if marks is not None and marks.body["closing_blocked"]:
        raise Refused(409, "closing_blocked", f"closing is blocked: {marks.body['reason']}")
    thing = moved(tables, thing, "closed")
    effect = Effect(business=thing.business, detail={"ticket_id": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def label_ticket(tables: Tables, call: Call) -> Answer:
    """Put a label on a ticket; putting it there again changes nothing."""
    thing = ticket_of(tables, call.params["ticket_id"])
    label, labels = call.params["label"], list(thing.body["labels"])
    if label in labels:
        return Answer(status=200, body=dict(thing.body))
    thing = moved(tables, thing, thing.state, labels=[*labels, label])
    effect = Effect(business=thing.business, detail={"ticket_id": thing.id, "label": label})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_ticket(tables: Tables, call: Call) -> Answer:
    """A ticket by its number; `labelled` answers for the label asked about."""
    answer = found(ticket_of(tables, call.params["ticket_id"]), "ticket")
    label = call.query.get("label", "")
    return (
        replace(answer, body={**answer.body, "labelled": label in answer.body["labels"]}) if label else answer
    )


def find_ticket_by_key(tables: Tables, call: Call) -> Answer:
    """The ticket that was opened with a key."""
    return found(tables.by_key("ticket", call.query.get("key", "")), "ticket")


def update_account(tables: Tables, call: Call) -> Answer:
    """Overwrite the fields of a record; 412 when a version that was insisted on is not the present one."""
    return _overwritten(tables, call, versioned.current(tables, "account", call.params["account"]))


def get_account(tables: Tables, call: Call) -> Answer:
    """A record with its version; asked with a key, it also says which version that key's write made."""
    return _with_version(call, versioned.current(tables, "account", call.params["account"]))


def change_ticket(tables: Tables, call: Call) -> Answer:
    """Overwrite queue and priority of a ticket; 412 when a version that was insisted on is not the present one."""
    ticket = ticket_of(tables, call.params["ticket_id"])
    fields = versioned.current(tables, "ticket_fields", ticket.id)
    return _overwritten(tables, call, replace(fields, business=ticket.business))


def get_ticket_fields(tables: Tables, call: Call) -> Answer:
    """Queue and priority of a ticket, as `get_account` shows a customer record."""
    ticket = ticket_of(tables, call.params["ticket_id"])
    return _with_version(call, versioned.current(tables, "ticket_fields", ticket.id))


def _overwritten(tables: Tables, call: Call, thing: Thing) -> Answer:
    fields = versioned.fields_of(call)
    versioned.insist(call, thing)
    thing = versioned.written(tables, thing, fields, call.key)
    detail = {thing.kind: thing.id, "version": thing.body["version"]}
    body = versioned.shown(thing, call.key)
    return Answer(status=200, body=body, effect=Effect(business=thing.business, detail=detail))


def _with_version(call: Call, thing: Thing) -> Answer:
    headers = {"ETag": f'"{thing.body["version"]}"'}
    return Answer(status=200, body=versioned.shown(thing, call.query.get("key", "")), headers=headers)


def send_mail(tables: Tables, call: Call) -> Answer:
    """Send a mail; a second call sends a second one."""
    customer, address, text = call.text("customer"), call.text("to", r"[^@\s]+@[^@\s]+"), call.text("text")
    id_ = tables.next_id("M-")
    body = {"mail_id": id_, "customer": customer, "to": address, "text": text, "state": "sent"}
    tables.put(
        Thing(kind="mail", id=id_, business=customer, key=call.key, state="sent", parent=customer, body=body)
    )
    return Answer(status=201, body=body, effect=Effect(business=customer, detail={"mail_id": id_}))


def find_mail_by_key(tables: Tables, call: Call) -> Answer:
    """The mail that was sent with a key."""
    return found(tables.by_key("mail", call.query.get("key", "")), "mail")
