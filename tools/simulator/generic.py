"""A system whose tools are told to it: any name, with or without keys, queries, items and takings-back.

Every call is about something (`about`, CASE.STEP.ITEM): that is its natural key. What is known of a tool stands in the
store, so that a simulator that was killed goes on with the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tools.simulator.route import Route
from tools.simulator.shelf import moved
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused

SYSTEM = "generic"
KIND = "generic"
TOOL = "generic_tool"
ROLES = {"do": "do", "undo": "compensate", "query": "query"}
STATES = ("done", "undone", "pending", "denied", "gone")


def learn(tables: Tables, tools: Json) -> int:
    """Take in tools: `{"tool", "role": do | undo | query, ...}`. Returns how many. Raises Refused."""
    if not isinstance(tools, list) or not all(
        isinstance(one, dict) and one.get("role") in ROLES and isinstance(one.get("tool"), str)
        for one in tools
    ):
        raise Refused(422, "invalid", "tools is a list of objects with a tool and a role (do, undo or query)")
    for one in tools:
        name = str(one["tool"])
        tables.put(Thing(kind=TOOL, id=name, business="", key="", state="known", parent="", body=one))
    return len(tools)


def route_of(tables: Tables, tool: str) -> Route | None:
    """The route of a tool that was told, or None."""
    known = tables.get(TOOL, tool)
    if known is None:
        return None
    rules, role = known.body, str(known.body["role"])
    operations = {"do": _do, "undo": _undo, "query": _query}
    return Route(
        tool=tool,
        system=SYSTEM,
        operation=tool,
        direction=ROLES[role],
        method="GET" if role == "query" else "POST",
        path=f"/{tool}",
        run=partial(operations[role], rules),
        honours_key=bool(rules.get("honours_key")),
        makes_up_for=str(rules.get("of", "")) if role == "undo" else "",
    )


def business_of(call: Call) -> str:
    """The case that a call belongs to: the first part of what it is about."""
    given = call.query.get("about") or str(call.value("about") or "")
    return given.partition(".")[0]


def seen(call: Call) -> dict[str, Json]:
    """What the ledger keeps of a call besides its address."""
    return {"about": call.query.get("about") or call.value("about"), "body": call.body}


def settle(tables: Tables, about: str, state: str) -> Json:
    """Work that was accepted ends, or somebody else changes a thing: `state` is done, denied, undone or gone."""
    if state not in STATES:
        raise Refused(422, "invalid", f"state is one of {', '.join(STATES)}")
    thing = _newest(tables, about)
    if thing is None:
        raise Refused(404, "not_found", f"nothing is known of {about}")
    if state == "done" and thing.state == "pending":
        _book(tables, thing)
    if state in ("undone", "gone") and thing.state == "done":
        tables.record(
            kind="third_party",
            tool=str(thing.body["tool"]),
            system=SYSTEM,
            operation="change",
            direction="do",
            key="",
            business=thing.business,
            detail={"about": about, "ref": thing.body["ref"], "state": state},
        )
    return dict(moved(tables, thing, state).body)


def _book(tables: Tables, thing: Thing) -> None:
    tool = str(thing.body["tool"])
    tables.record(
        kind="effect",
        tool=tool,
        system=SYSTEM,
        operation=tool,
        direction="do",
        key=thing.key,
        business=thing.business,
        detail={"about": thing.parent, "ref": thing.body["ref"], "settled": True},
    )


def _newest(tables: Tables, about: str) -> Thing | None:
    found = tables.of(KIND, about)
    standing = [one for one in found if one.state in ("done", "pending")]
    latest = standing or found
    return latest[-1] if latest else None


def _do(rules: Mapping[str, Json], tables: Tables, call: Call) -> Answer:
    if not rules.get("effect", True):
        return Answer(status=200, body=_padded(call, {"about": call.text("about"), "ref": "read"}))
    if isinstance(call.value("items"), list):
        return _do_many(rules, tables, call)
    about = call.text("about")
    thing, new = _made(rules, tables, call, about, call.key, str(call.told.get("ref", "")))
    effect = (
        Effect(business=thing.business, detail={"about": about, "ref": thing.body["ref"]}) if new else None
    )
    status = 202 if thing.state == "pending" else 200
    return Answer(status=status, body=_padded(call, _shown(thing)), effect=effect)


def _made(
    rules: Mapping[str, Json], tables: Tables, call: Call, about: str, key: str, ref: str
) -> tuple[Thing, bool]:
    if rules.get("natural"):
        same = [one for one in tables.of(KIND, about) if one.state == "done"]
        if same:
            return same[-1], False
    pending = bool(call.told.get("pending"))
    number = tables.next_id("X-")
    ref = ref or number
    body = {"about": about, "ref": ref, "tool": rules["tool"], "state": "pending" if pending else "done"}
    case = about.partition(".")[0]
    thing = Thing(kind=KIND, id=number, business=case, key=key, state=body["state"], parent=about, body=body)
    return tables.put(thing), not pending


def _do_many(rules: Mapping[str, Json], tables: Tables, call: Call) -> Answer:
    told = call.told.get("answers", {})
    results: list[dict[str, Json]] = []
    effects: list[Effect] = []
    for item in call.value("items"):
        word, key = str(told.get(item["id"], "ok")), str(item.get("key") or call.key)
        result: dict[str, Json] = {"id": item["id"], "state": "done"}
        if word in ("ok", "timeout-but-applied"):
            kept = tables.by_key(KIND, key) if rules.get("item_keys") else None
            thing, new = (kept, False) if kept else _made(rules, tables, call, item["about"], key, "")
            result["ref"] = thing.body["ref"]
            if new:
                detail = {"about": item["about"], "item": item["id"], "ref": thing.body["ref"]}
                effects.append(Effect(business=thing.business, detail=detail, key=key))
        if word == "reject":
            result["state"] = "refused"
        elif word != "ok":
            result = {"id": item["id"], "state": "no_answer"}
        if word != "missing":
            results.append(result)
    whole = all(result["state"] == "done" for result in results) and len(results) == len(call.value("items"))
    body = {"about": call.text("about"), "ref": tables.next_id("X-"), "results": results}
    return Answer(status=200 if whole else 207, body=_padded(call, body), more=tuple(effects))


def _shown(thing: Thing) -> dict[str, Json]:
    return {"about": thing.parent, "ref": thing.body["ref"], "state": thing.state}


def _padded(call: Call, body: dict[str, Json]) -> dict[str, Json]:
    more = call.told.get("result", {})
    size = int(call.told.get("bytes", 0))
    return {**body, **more, **({"echo": "x" * size} if size else {})}


def _undo(rules: Mapping[str, Json], tables: Tables, call: Call) -> Answer:
    about, ref = call.text("about"), str(call.value("ref") or "")
    things = [one for one in tables.of(KIND, about) if one.state != "pending"]
    thing = next((one for one in reversed(things) if one.body["ref"] == ref), None)
    if thing is None or thing.state == "gone":
        raise Refused(404, "not_found", f"there is no {about}")
    if thing.state == "undone":
        if rules.get("natural"):
            return Answer(status=200, body=_shown(thing))
        raise Refused(409, "undone", f"{about} is undone already")
    for step in rules.get("only_after", ()):
        if _stands(tables, thing.business, str(step)):
            raise Refused(409, "precondition", f"{step} still stands")
    thing = moved(tables, thing, "undone")
    effect = Effect(business=thing.business, detail={"about": about, "ref": thing.body["ref"]})
    return Answer(status=200, body=_shown(thing), effect=effect)


def _stands(tables: Tables, case: str, step: str) -> bool:
    beginning = f"{case}.{step}."
    return any(one.state == "done" for one in tables.beginning(KIND, beginning))


def _query(rules: Mapping[str, Json], tables: Tables, call: Call) -> Answer:
    told = call.told.get("answer", {})
    verdict, about = told.get("verdict", "truth"), call.query.get("about", "")
    if verdict == "absent":
        raise Refused(404, "not_found", f"there is no {about}")
    if verdict == "pending":
        return Answer(status=202, body={"about": about, "state": "pending"})
    if verdict in ("found", "denied"):
        state = "done" if verdict == "found" else "denied"
        return Answer(status=200, body={"about": about, "state": state, "ref": told.get("ref", about)})
    thing = _asked(rules, tables, call, about)
    if thing is None or thing.state == "gone":
        raise Refused(404, "not_found", f"there is no {about}")
    status = 202 if thing.state == "pending" else 200
    return Answer(status=status, body=_shown(thing))


def _asked(rules: Mapping[str, Json], tables: Tables, call: Call, about: str) -> Thing | None:
    if ref := call.query.get("ref"):
        things = tables.of(KIND, about)
        return next((one for one in reversed(things) if one.body["ref"] == ref), None)
    if rules.get("by_key") and call.query.get("key"):
        return tables.by_key(KIND, call.query["key"])
    return _newest(tables, about)
