"""Records that exist before anybody writes and count their versions: customers, devices, articles, tickets.

Whoever insists on a version is refused when somebody else wrote in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Call, Json, Refused


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of record: what its id is called and looks like, and what stands in it at first."""

    name: str
    pattern: str
    first: dict[str, Json]


KINDS: dict[str, Kind] = {
    "account": Kind(name="account", pattern=r"C-\d+", first={"tier": "standard", "phone": "", "note": ""}),
    "device": Kind(name="device", pattern=r"sw-[a-z0-9-]+", first={"vlan": 10, "mtu": 1500}),
    "article": Kind(name="id", pattern=r"ART-\d+", first={"label": "standard"}),
    "ticket_fields": Kind(
        name="ticket_id", pattern=r"T-\d+", first={"queue": "first line", "priority": "normal"}
    ),
}


def current(tables: Tables, kind: str, id_: str) -> Thing:
    """The record as it is now; at version 1 until somebody writes. 404 for an id that cannot be."""
    shape = KINDS[kind]
    if not re.fullmatch(shape.pattern, id_):
        raise Refused(404, "not_found", f"no such {kind.replace('_', ' ')}")
    history = [{"version": 1, "fields": shape.first, "key": ""}]
    body = {shape.name: id_, "fields": shape.first, "version": 1, "history": history}
    fresh = Thing(kind=kind, id=id_, business=id_, key="", state="active", parent="", body=body)
    return tables.get(kind, id_) or fresh


def shown(thing: Thing, key: str = "") -> dict[str, Json]:
    """What a reader sees: fields, version, and the write that a key made, if it made one."""
    body = {name: thing.body[name] for name in (KINDS[thing.kind].name, "fields", "version")}
    writes = [entry for entry in thing.body["history"] if key and entry["key"] == key]
    return {**body, "write": {"version": writes[0]["version"], "key": key}} if writes else body


def insist(call: Call, thing: Thing) -> None:
    """412 when a version was insisted on (If-Match, or `if_version`) that is not the present one."""
    given = [call.if_match.removeprefix("W/").strip('"'), str(call.value("if_version") or "")]
    version = str(thing.body["version"])
    if any(wanted not in {"", "0", "*", version} for wanted in given):
        raise Refused(
            412, "version", f"{thing.id} is at version {version}", version=int(thing.body["version"])
        )


def written(tables: Tables, thing: Thing, fields: Json, key: str) -> Thing:
    """The record after a write, stored: next version, history one longer."""
    version = int(thing.body["version"]) + 1
    history = [*thing.body["history"], {"version": version, "fields": fields, "key": key}]
    return tables.put(
        replace(thing, body={**thing.body, "fields": fields, "version": version, "history": history})
    )


def fields_of(call: Call, name: str = "fields") -> dict[str, Json]:
    """The fields that a writer wants; 422 without any."""
    fields = call.value(name)
    if not isinstance(fields, dict) or not fields:
        raise Refused(422, "invalid", f"{name} must be an object with at least one entry", field=name)
    return fields


def restores(kind: str, param: str, name: str = "fields") -> Callable[[Tables, Call], bool]:
    """Tells whether a write would bring back exactly what stood in the record before its last change."""

    def bring_back(tables: Tables, call: Call) -> bool:
        try:
            history = current(tables, kind, call.params[param]).body["history"]
        except Refused:
            return False
        return len(history) > 1 and history[-2]["fields"] == call.value(name)

    return bring_back
