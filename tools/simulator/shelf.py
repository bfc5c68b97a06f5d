"""How operations find, make and move the records of the world: what every system has in common."""

from __future__ import annotations

from dataclasses import replace

from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused


def found(thing: Thing | None, what: str) -> Answer:
    """A read's answer: the record, or 404."""
    if thing is None:
        raise Refused(404, "not_found", f"no such {what}")
    return Answer(status=200, body=dict(thing.body))


def moved(tables: Tables, thing: Thing, state: str, **more: Json) -> Thing:
    """The record in its new state, stored."""
    return tables.put(replace(thing, state=state, body={**thing.body, "state": state, **more}))


def need(thing: Thing | None, what: str) -> Thing:
    """The record a change is about; 404 without one."""
    if thing is None:
        raise Refused(404, "not_found", f"no such {what}")
    return thing


def made(
    tables: Tables, call: Call, *, kind: str, business: str, body: dict[str, Json], parent: str = ""
) -> Answer:
    """A new record and the answer that tells of it. The first name in `body` is its id; `state` is in it."""
    name, id_ = next(iter(body.items()))
    thing = Thing(
        kind=kind, id=id_, business=business, key=call.key, state=body["state"], parent=parent, body=body
    )
    tables.put(thing)
    return Answer(status=201, body=body, effect=Effect(business=business, detail={name: id_}))


def changed(
    tables: Tables, thing: Thing, state: str, *, of: str, detail: dict[str, Json] | None = None, **more: Json
) -> Answer:
    """The record in its new state, and the answer that tells of it; 409 unless it is in the state `of`."""
    if thing.state != of:
        raise Refused(409, thing.state, f"{thing.id} is {thing.state.replace('_', ' ')}", state=thing.state)
    thing = moved(tables, thing, state, **more)
    effect = Effect(business=thing.business, detail={thing.kind: thing.id, **(detail or {})})
    return Answer(status=200, body=dict(thing.body), effect=effect)


def either(tables: Tables, call: Call, kind: str, name: str) -> Thing | None:
    """The record by its number (`name` in the address) or by the key that made it."""
    id_ = call.query.get(name, "")
    return tables.get(kind, id_) if id_ else tables.by_key(kind, call.query.get("key", ""))
