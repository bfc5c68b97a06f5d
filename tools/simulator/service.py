"""Tickets, customer records and mail: what a service desk sets in motion.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.simulator.orders import found, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused

FIRST_FIELDS: dict[str, Json] = {"tier": "standard", "phone": "", "note": ""}


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


def close_ticket(tables: Tables, call: Call) -> Answer:
    """Close an open ticket; 409 when it is closed already. The ticket itself stays."""
    thing = need(tables.get("ticket", call.params["ticket_id"]), "ticket")
    if thing.state != "open":
        raise Refused(409, "closed", f"{thing.id} is closed", state=thing.state)
    thing = moved(tables, thing, "closed")
    effect = Effect(business=thing.business, detail={"ticket_id": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def label_ticket(tables: Tables, call: Call) -> Answer:
    """Put a label on a ticket; putting it there again changes nothing."""
    thing = need(tables.get("ticket", call.params["ticket_id"]), "ticket")
    label, labels = call.params["label"], list(thing.body["labels"])
    if label in labels:
        return Answer(status=200, body=dict(thing.body))
    thing = moved(tables, thing, thing.state, labels=[*labels, label])
    effect = Effect(business=thing.business, detail={"ticket_id": thing.id, "label": label})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_ticket(tables: Tables, call: Call) -> Answer:
    """A ticket by its number; `labelled` answers for the label asked about."""
    answer = found(tables.get("ticket", call.params["ticket_id"]), "ticket")
    label = call.query.get("label", "")
    return (
        replace(answer, body={**answer.body, "labelled": label in answer.body["labels"]}) if label else answer
    )


def find_ticket_by_key(tables: Tables, call: Call) -> Answer:
    """The ticket that was opened with a key."""
    return found(tables.by_key("ticket", call.query.get("key", "")), "ticket")


def account_of(tables: Tables, id_: str) -> Thing:
    """A customer record; every C-number has one, at version 1 until somebody writes."""
    if not id_.startswith("C-") or not id_[2:].isdigit():
        raise Refused(404, "not_found", "no such account")
    first = {"version": 1, "fields": FIRST_FIELDS, "key": ""}
    body = {"account": id_, "fields": FIRST_FIELDS, "version": 1, "history": [first]}
    fresh = Thing(kind="account", id=id_, business=id_, key="", state="active", parent="", body=body)
    return tables.get("account", id_) or fresh


def shown(thing: Thing, key: str = "") -> dict[str, Json]:
    """What a reader sees: fields, version, and the write that a key made, if it made one."""
    body = {name: thing.body[name] for name in ("account", "fields", "version")}
    writes = [entry for entry in thing.body["history"] if key and entry["key"] == key]
    return {**body, "write": {"version": writes[0]["version"], "key": key}} if writes else body


def _wanted_versions(call: Call) -> list[str]:
    """The versions a writer insists on: from If-Match and from the body; 0, empty and missing mean any."""
    given = [call.if_match.removeprefix("W/").strip('"'), str(call.value("if_version") or "")]
    return [version for version in given if version not in {"", "0", "*"}]


def update_account(tables: Tables, call: Call) -> Answer:
    """Overwrite the fields of a record; 412 when a version that was insisted on is not the present one."""
    thing = account_of(tables, call.params["account"])
    fields, version = call.value("fields"), int(thing.body["version"])
    if not isinstance(fields, dict) or not fields:
        raise Refused(422, "invalid", "fields must be an object with at least one entry", field="fields")
    if any(wanted != str(version) for wanted in _wanted_versions(call)):
        raise Refused(412, "version", f"the record is at version {version}", version=version)
    thing = written(tables, thing, fields, call.key)
    detail = {"account": thing.id, "version": version + 1}
    return Answer(status=200, body=shown(thing, call.key), effect=Effect(business=thing.id, detail=detail))


def written(tables: Tables, thing: Thing, fields: Json, key: str) -> Thing:
    """The record after a write, stored: next version, history one longer."""
    version = int(thing.body["version"]) + 1
    history = [*thing.body["history"], {"version": version, "fields": fields, "key": key}]
    return tables.put(
        replace(thing, body={**thing.body, "fields": fields, "version": version, "history": history})
    )


def restores(tables: Tables, call: Call) -> bool:
    """Whether a write to a record would bring back exactly what stood there before its last change."""
    try:
        history = account_of(tables, call.params["account"]).body["history"]
    except Refused:
        return False
    return len(history) > 1 and history[-2]["fields"] == call.value("fields")


def get_account(tables: Tables, call: Call) -> Answer:
    """A record with its version; asked with a key, it also says which version that key's write made."""
    thing = account_of(tables, call.params["account"])
    headers = {"ETag": f'"{thing.body["version"]}"'}
    return Answer(status=200, body=shown(thing, call.query.get("key", "")), headers=headers)


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
