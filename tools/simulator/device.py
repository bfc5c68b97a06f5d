"""Network devices: a configuration is pushed, read back, and put back by a command of its own.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator import versioned
from tools.simulator.route import Route, back, do, read
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json


def push_config(tables: Tables, call: Call) -> Answer:
    """Overwrite the configuration of a device; 412 at another version than the one insisted on."""
    thing = versioned.current(tables, "device", call.params["device"])
    change, config = call.text("change"), versioned.fields_of(call, "config")
    versioned.insist(call, thing)
    thing = versioned.written(tables, thing, config, call.key)
    detail = {"device": thing.id, "version": thing.body["version"]}
    return Answer(status=200, body=_shown(thing, call.key), effect=Effect(business=change, detail=detail))


def restore_config(tables: Tables, call: Call) -> Answer:
    """Put an earlier configuration back; 412 when somebody has changed the device since."""
    return push_config(tables, call)


def get_config(tables: Tables, call: Call) -> Answer:
    """Configuration and version; asked with a key, also which version that key's push made."""
    thing = versioned.current(tables, "device", call.params["device"])
    headers = {"ETag": f'"{thing.body["version"]}"'}
    return Answer(status=200, body=_shown(thing, call.query.get("key", "")), headers=headers)


def _shown(thing: Thing, key: str) -> dict[str, Json]:
    body = versioned.shown(thing, key)
    return {"device": body.pop("device"), "config": body.pop("fields"), **body}


ROUTES: tuple[Route, ...] = (
    do("push_config", "device", "push", "PUT /devices/{device}/config", push_config),
    back(
        "restore_config",
        "device",
        "restore",
        "POST /devices/{device}/config/restoring",
        restore_config,
        of="push_config",
    ),
    read("get_config", "device", "/devices/{device}/config", get_config),
)
