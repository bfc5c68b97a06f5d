"""Marks and notes on customer records: tags, a block on closing, notes. None of them touches the version.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.simulator import versioned
from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, either, found, made, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused


def marks_of(tables: Tables, account: str) -> Thing:
    """Tags and block of a customer; nobody has any at first."""
    id_ = versioned.current(tables, "account", account).id
    body = {"account": id_, "tags": [], "closing_blocked": False, "reason": ""}
    fresh = Thing(kind="marks", id=id_, business=id_, key="", state="active", parent="", body=body)
    return tables.get("marks", id_) or fresh


def _marked(tables: Tables, thing: Thing, detail: dict[str, Json], **more: Json) -> Answer:
    if all(thing.body[name] == value for name, value in more.items()):
        return Answer(status=200, body=dict(thing.body))
    thing = tables.put(replace(thing, body={**thing.body, **more}))
    effect = Effect(business=thing.business, detail={"account": thing.id, **detail})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def tag_account(tables: Tables, call: Call) -> Answer:
    """Put a tag on a customer; putting it there again changes nothing."""
    thing, tag = marks_of(tables, call.params["account"]), call.params["tag"]
    tags = [*thing.body["tags"], *([] if tag in thing.body["tags"] else [tag])]
    return _marked(tables, thing, {"tag": tag}, tags=tags)


def untag_account(tables: Tables, call: Call) -> Answer:
    """Take a tag off a customer; taking it off again changes nothing."""
    thing, tag = marks_of(tables, call.params["account"]), call.params["tag"]
    return _marked(tables, thing, {"tag": tag}, tags=[one for one in thing.body["tags"] if one != tag])


def block_closing(tables: Tables, call: Call) -> Answer:
    """Keep tickets of a customer from being closed; 409 while a block for another reason stands."""
    thing, reason = marks_of(tables, call.params["account"]), call.text("reason")
    if thing.body["closing_blocked"] and thing.body["reason"] != reason:
        raise Refused(409, "blocked", "closing is blocked already", reason=thing.body["reason"])
    return _marked(tables, thing, {"blocked": True}, closing_blocked=True, reason=reason)


def lift_closing_block(tables: Tables, call: Call) -> Answer:
    """Let tickets be closed again; lifting it again changes nothing."""
    thing = marks_of(tables, call.params["account"])
    return _marked(tables, thing, {"blocked": False}, closing_blocked=False, reason="")


def get_account_marks(tables: Tables, call: Call) -> Answer:
    """Tags and block of a customer; `tagged` answers for the tag asked about."""
    body = dict(marks_of(tables, call.params["account"]).body)
    tag = call.query.get("tag", "")
    return Answer(status=200, body={**body, "tagged": tag in body["tags"]} if tag else body)


def add_note(tables: Tables, call: Call) -> Answer:
    """Write a note on a customer; a second call writes a second one."""
    account = versioned.current(tables, "account", call.params["account"]).id
    body = {"note": tables.next_id("NT-"), "account": account, "text": call.text("text"), "state": "valid"}
    return made(tables, call, kind="note", business=account, parent=account, body=body)


def strike_note(tables: Tables, call: Call) -> Answer:
    """Strike a note out, legibly; 409 when it is struck out already."""
    return changed(tables, need(tables.get("note", call.params["note"]), "note"), "struck", of="valid")


def find_note(tables: Tables, call: Call) -> Answer:
    """A note by its number, or the one that a key wrote."""
    return found(either(tables, call, "note", "note"), "note")


ROUTES: tuple[Route, ...] = (
    do("tag_account", "crm", "tag", "PUT /accounts/{account}/tags/{tag}", tag_account),
    back(
        "untag_account",
        "crm",
        "untag",
        "POST /accounts/{account}/tags/{tag}/removal",
        untag_account,
        of="tag_account",
    ),
    do("block_closing", "crm", "block", "PUT /accounts/{account}/closing-block", block_closing),
    back(
        "lift_closing_block",
        "crm",
        "lift_block",
        "POST /accounts/{account}/closing-block/lifting",
        lift_closing_block,
        of="block_closing",
    ),
    read("get_account_marks", "crm", "/accounts/{account}/marks", get_account_marks),
    do("add_note", "crm", "note", "POST /accounts/{account}/notes", add_note),
    back("strike_note", "crm", "strike_note", "POST /notes/{note}/striking", strike_note, of="add_note"),
    read("find_note", "crm", "/notes", find_note),
)
