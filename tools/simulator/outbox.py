"""Messages that wait: queued under a key of the sender's choice, dropped while unsent, sent as the last act.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, found, made, moved, need
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call, Effect, Refused


def queue_message(tables: Tables, call: Call) -> Answer:
    """Store a message; the same message again changes nothing, another one under its key is refused (409)."""
    message, about, text = call.params["message_key"], call.text("about"), call.text("text")
    known = tables.get("message", message)
    if known is None:
        body = {"message_key": message, "about": about, "text": text, "state": "queued", "message_id": ""}
        return made(tables, call, kind="message", business=about, body=body)
    if (known.body["about"], known.body["text"]) != (about, text) or known.state == "dropped":
        raise Refused(409, "taken", f"{message} was used for another message")
    return Answer(status=200, body=dict(known.body))


def drop_message(tables: Tables, call: Call) -> Answer:
    """Drop a message; 409 once it is sent, or when it is dropped already."""
    thing = need(tables.get("message", call.params["message_key"]), "message")
    return changed(tables, thing, "dropped", of="queued")


def send_queued(tables: Tables, call: Call) -> Answer:
    """Send a stored message; sending it again changes nothing, a dropped one is refused (409)."""
    thing = need(tables.get("message", call.params["message_key"]), "message")
    if thing.state == "sent":
        return Answer(status=200, body=dict(thing.body))
    if thing.state != "queued":
        raise Refused(409, thing.state, f"{thing.id} is {thing.state}", state=thing.state)
    thing = moved(tables, thing, "sent", message_id=tables.next_id("MS-"))
    effect = Effect(business=thing.business, detail={"message_key": thing.id})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def get_message(tables: Tables, call: Call) -> Answer:
    """A message by its key."""
    return found(tables.get("message", call.params["message_key"]), "message")


ROUTES: tuple[Route, ...] = (
    do("queue_message", "outbox", "queue", "PUT /messages/{message_key}", queue_message, honours_key=True),
    back(
        "drop_message",
        "outbox",
        "drop",
        "POST /messages/{message_key}/dropping",
        drop_message,
        of="queue_message",
    ),
    do(
        "send_queued",
        "outbox",
        "send",
        "POST /messages/{message_key}/sending",
        send_queued,
        honours_key=True,
    ),
    read("get_message", "outbox", "/messages/{message_key}", get_message),
)
