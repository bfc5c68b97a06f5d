"""The admin port: plan misbehaviour, read the ledger, play the third party. The product never sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from tools.simulator import callbacks, generic, order_book, pay, service, versioned
from tools.simulator.behaviour import MODES, problems
from tools.simulator.books import books, effects
from tools.simulator.routes import ROUTES, SYSTEMS
from tools.simulator.server import Gateway, JsonHandler, Unreadable
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Json, Refused
from tools.simulator.world import World

LEDGER_PAGE = 10_000
SINCE_EVER: Mapping[str, Callable[[Tables, str], Thing | None]] = {
    "order": order_book.order_of,
    "payment": pay.payment_of,
    "ticket": service.ticket_of,
}


class Admin:
    """What the admin port can do; every method returns (status, JSON)."""

    def __init__(self, world: World, gateway: Gateway) -> None:
        self._store = world.store
        self._callbacks = world.callbacks
        self._gateway = gateway
        self._world = world
        self._gates = world.gates

    def get(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """Reads."""
        with self._store.change() as tables:
            if path == "/ledger":
                return 200, self._ledger(tables, query)
            if path == "/effects":
                business = query.get("business", "")
                return 200, {"business": business, "effects": effects(tables, business)}
            if path == "/books":
                return 200, books(tables)
            if path == "/world":
                return 200, _world(tables)
            if path == "/plan":
                rules = [{"id": id_, "used": used, **spec} for id_, spec, used in tables.rules()]
                return 200, {"rules": rules, "down": self._gateway.down}
        if path == "/tools":
            return 200, {"tools": [_described(route) for route in ROUTES], "modes": list(MODES)}
        if path == "/callbacks/held":
            return 200, {"held": self._callbacks.fetch()}
        if path == "/callbacks":
            return 200, {"secret": self._callbacks.secret, "header": callbacks.HEADER}
        if path == "/gates":
            return 200, {"waiting": dict(self._gates.waiting())}
        if path == "/health":
            return 200, {"ok": True}
        return 404, {"error": "no_such_address"}

    def _ledger(self, tables: Tables, query: Mapping[str, str]) -> Json:
        if "last" in query:
            return {"records": [], "last": tables.last()}
        clauses, values = ["seq > ?"], [query.get("since") or "0"]
        for name in ("business", "key", "tool", "kind", "system", "direction"):
            if name in query:
                clauses.append(f"{name} = ?")
                values.append(query[name])
        records = tables.records("WHERE " + " AND ".join(clauses), tuple(values), LEDGER_PAGE)
        return {"records": records, "last": records[-1]["seq"] if records else int(values[0])}

    def post(self, path: str, body: Json) -> tuple[int, Json]:
        """Changes. Raises Refused."""
        body = body if isinstance(body, dict) else {}
        if path == "/plan":
            return self._plan(body)
        if path == "/gates":
            self._gates.open(str(body.get("open", "")))
            return 200, {"waiting": dict(self._gates.waiting())}
        if path == "/generic/tools":
            with self._store.change() as tables:
                return 200, {"tools": generic.learn(tables, body.get("tools"))}
        if path == "/generic/settle":
            with self._store.change() as tables:
                return 200, generic.settle(tables, str(body.get("about", "")), str(body.get("state", "")))
        if path == "/reset":
            self._gates.clear()
            for system in self._gateway.down:
                self._gateway.set_down(system, False)
            with self._store.change() as tables:
                tables.clear()
            return 200, {"ok": True}
        if path in {"/down", "/up"}:
            system = body.get("system", "*")
            if system not in {*SYSTEMS, "*"}:
                raise Refused(422, "invalid", f"system must be * or one of {', '.join(SYSTEMS)}")
            for name in SYSTEMS if system == "*" else (system,):
                self._gateway.set_down(name, path == "/down")
            return 200, {"down": self._gateway.down}
        if path == "/clock":
            self._world.put_forward(float(body.get("seconds", 0.0)))
            return 200, {"held": self._callbacks.fetch()}
        if path == "/callbacks/fetched":
            self._callbacks.fetched(int(body["id"]), int(body["status"]))
            return 200, {"ok": True}
        if path == "/third-party":
            with self._store.change() as tables:
                return 200, third_party(tables, body)
        return 404, {"error": "no_such_address"}

    def _plan(self, body: dict[str, Json]) -> tuple[int, Json]:
        rules = body.get("rules")
        found = ["rules is a list"] if not isinstance(rules, list) else []
        for number, rule in enumerate(rules if isinstance(rules, list) else []):
            found += [f"rule {number}: {problem}" for problem in problems(rule)]
        if found or not isinstance(rules, list):
            raise Refused(422, "invalid", "; ".join(found))
        with self._store.change() as tables:
            if body.get("replace"):
                tables.drop_rules()
            return 200, {"ids": tables.add_rules(rules)}

    def delete(self, path: str) -> tuple[int, Json]:
        """Forget rules: all, or the one whose number is given."""
        head, _, tail = path.strip("/").partition("/")
        if head != "plan" or not (tail.isdigit() or not tail):
            return 404, {"error": "no_such_address"}
        with self._store.change() as tables:
            return 200, {"dropped": tables.drop_rules(int(tail) if tail else None)}


def third_party(tables: Tables, body: Mapping[str, Json]) -> Json:
    """Somebody else changes a record past the tool port: `state`, `body` fields, an account's `fields`."""
    kind, id_ = str(body.get("kind", "")), str(body.get("id", ""))
    detail = {"kind": kind, "id": id_}
    known = _known(tables, kind, id_)
    business = known.business
    if kind in versioned.KINDS and isinstance(body.get("fields"), dict):
        thing = versioned.written(tables, known, {**known.body["fields"], **body["fields"]}, "")
    else:
        state = str(body.get("state", known.state))
        change = body.get("body") if isinstance(body.get("body"), dict) else {}
        thing = tables.put(replace(known, state=state, body={**known.body, **(change or {}), "state": state}))
    tables.record(
        kind="third_party",
        tool="",
        system="",
        operation="change",
        direction="",
        key="",
        business=business,
        detail={**detail, **{name: body[name] for name in ("state", "fields", "body") if name in body}},
    )
    return dict(thing.body)


def _known(tables: Tables, kind: str, id_: str) -> Thing:
    """The record, also one that has been there since before the world began. Raises Refused."""
    if kind in versioned.KINDS:
        return versioned.current(tables, kind, id_)
    known = SINCE_EVER[kind](tables, id_) if kind in SINCE_EVER else tables.get(kind, id_)
    if known is None:
        raise Refused(404, "not_found", f"no {kind} {id_}")
    return known


def _world(tables: Tables) -> Json:
    kinds: dict[str, list[Json]] = {}
    for thing in tables.all_things():
        kinds.setdefault(thing.kind, []).append({**thing.body, "business": thing.business, "key": thing.key})
    return kinds


def _described(route: Json) -> Json:
    return {
        "tool": route.tool,
        "system": route.system,
        "direction": route.direction,
        "method": route.method,
        "path": f"/{route.system}{route.path}",
        "honours_key": route.honours_key,
        "makes_up_for": route.makes_up_for,
    }


def admin_handler(admin: Admin) -> type[JsonHandler]:
    """A handler class for the admin port."""

    class AdminHandler(JsonHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            try:
                body = self.read_body()
                if self.command == "GET":
                    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                    status, value = admin.get(parts.path, query)
                elif self.command == "DELETE":
                    status, value = admin.delete(parts.path)
                else:
                    status, value = admin.post(parts.path, body)
            except Unreadable as problem:
                status, value = 400, {"error": "unreadable", "message": str(problem)}
            except Refused as refusal:
                status, value = refusal.status, refusal.body
            self.send_json(status, value)

        do_GET = do_POST = do_DELETE = answer

    return AdminHandler
