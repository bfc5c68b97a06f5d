"""One call through the world: arrival on record, behaviour chosen, effect applied, answer decided.

Every call leaves `arrived` before anything else, `effect` in the transaction that changes something, and
`replied` before the first byte of an answer. How the answer leaves the process is the server's work.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from tools.simulator import clock, generic
from tools.simulator.behaviour import Course, Reply, choose
from tools.simulator.callbacks import Callbacks
from tools.simulator.gates import Gates
from tools.simulator.route import Route
from tools.simulator.routes import ROUTES, business_of, find_route
from tools.simulator.store import Store, Tables
from tools.simulator.wire import Answer, Call, Json, Refused


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """What the server shall send, and how. `text` goes out as it is; otherwise `body` as JSON."""

    status: int
    body: Json
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    reply: Reply = Reply.OWN
    delay_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A call that is on record, with the names its further records carry."""

    seq: int
    route: Route
    call: Call
    direction: str
    business: str

    def record(
        self,
        tables: Tables,
        kind: str,
        *,
        business: str = "",
        key: str = "",
        status: int | None = None,
        detail: Mapping[str, Json] | None = None,
    ) -> None:
        """Append a record that belongs to this call."""
        tables.record(
            kind=kind,
            tool=self.route.tool,
            system=self.route.system,
            operation=self.route.operation,
            direction=self.direction,
            key=key or self.call.key,
            business=business or self.business,
            call=self.seq,
            status=status,
            detail=detail,
        )


class World:
    """The systems behind the tool port, on one store."""

    def __init__(self, store: Store, *, callback_secret: str) -> None:
        self.store = store
        self.callbacks = Callbacks(store, callback_secret)
        self.gates = Gates()
        self._wake = threading.Event()
        threading.Thread(target=self._land_late_effects, name="late-effects", daemon=True).start()

    def find(self, system: str, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        """The route of a request below a system's address and the values in its path, or None."""
        if system != generic.SYSTEM:
            return find_route(system, method, path)
        with self.store.change() as tables:
            route = generic.route_of(tables, path.lstrip("/"))
        return None if route is None or route.method != method else (route, {})

    def handle(self, route: Route, call: Call) -> Outgoing:
        """Take one call to its answer. Waits where the planned behaviour says so."""
        arrival, course = self._arrive(route, call)
        if course.before_ms:
            time.sleep(course.before_ms / 1000)
        if course.gate:
            self.gates.pass_through(course.gate, arrival.seq)
        with self.store.change() as tables:
            if course.applied and course.effect_after_ms:
                due_at = clock.now() + course.effect_after_ms / 1000
                tables.add_later(due_at, arrival.seq, {"tool": route.tool, "call": asdict(arrival.call)})
                self._wake.set()
            answer = None
            if course.applied and not course.effect_after_ms:
                answer = apply(tables, arrival, ignore_key=course.ignore_key)
            outgoing = _outgoing(course, answer)
            early = course.told.get("callback") == "early"
            if not early and not course.gate_of_answer:
                _reply(tables, arrival, course, outgoing)
        if course.gate_of_answer:
            self.gates.pass_through(course.gate_of_answer, arrival.seq)
            with self.store.change() as tables:
                _reply(tables, arrival, course, outgoing)
        if early:
            self.callbacks.run_due()
            with self.store.change() as tables:
                _reply(tables, arrival, course, outgoing)
        elif route.system == "jobs":
            self.callbacks.wake()
        return outgoing

    def _arrive(self, route: Route, call: Call) -> tuple[Arrival, Course]:
        with self.store.change() as tables:
            direction = route.direction
            if route.restoring is not None and route.restoring(tables, call):
                direction = "compensate"
            business = business_of(tables, call)
            course, attempt = choose(tables, tool=route.tool, system=route.system, call=call)
            detail = {"target": call.target, **({"attempt": attempt, "mode": course.mode} if attempt else {})}
            if route.system == generic.SYSTEM:
                detail |= generic.seen(call)
            seq = tables.record(
                kind="arrived",
                tool=route.tool,
                system=route.system,
                operation=route.operation,
                direction=direction,
                key=call.key,
                business=business,
                detail=detail,
            )
        call = replace(call, told=course.told)
        return Arrival(seq=seq, route=route, call=call, direction=direction, business=business), course

    def put_forward(self, seconds: float) -> None:
        """Make it later, and have everything happen that is due by then, before this returns."""
        clock.put_forward(seconds)
        self.land_due()
        self.callbacks.run_due()

    def land_due(self) -> float | None:
        """Have the late effects land that are due; returns when the next one is."""
        while True:
            with self.store.change() as tables:
                taken = tables.take_later()
                if taken is None:
                    return tables.next_due()
                _land(tables, *taken)

    def _land_late_effects(self) -> None:
        while True:
            due_at = self.land_due()
            self._wake.clear()
            if due_at is None:
                self._wake.wait(timeout=1.0)
            elif (wait_s := due_at - clock.now()) > 0:
                self._wake.wait(timeout=min(1.0, wait_s))


def _land(tables: Tables, seq: int, request: dict[str, Json]) -> None:
    route = next((route for route in ROUTES if route.tool == request["tool"]), None)
    route = route or generic.route_of(tables, request["tool"])
    if route is None:
        return
    call = Call(**request["call"])
    business = business_of(tables, call)
    arrival = Arrival(seq=seq, route=route, call=call, direction=route.direction, business=business)
    apply(tables, arrival, late=True)


def apply(tables: Tables, arrival: Arrival, *, ignore_key: bool = False, late: bool = False) -> Answer:
    """Run the operation; a repeat under an honoured key gets the first answer and no second effect.

    Only successes are kept for a key. The same key with other content is refused (422).
    """
    route, call = arrival.route, arrival.call
    dedupe = route.honours_key and bool(call.key) and not ignore_key
    digest = hashlib.sha256(f"{call.target} {json.dumps(call.body, sort_keys=True)}".encode()).hexdigest()
    kept = tables.kept_answer(route.tool, call.key) if dedupe else None
    if kept is not None:
        if kept[0] != digest:
            return Answer(
                status=422, body={"error": "key_reused", "message": "this key came with other content"}
            )
        return Answer(status=kept[1], body=kept[2], headers={"Idempotency-Replayed": "true"})
    try:
        answer = route.run(tables, call)
    except Refused as refusal:
        return Answer(status=refusal.status, body=refusal.body)
    for effect in (answer.effect, *answer.more):
        if effect is not None:
            detail = {**effect.detail, **({"late": True} if late else {})}
            named = {"business": effect.business, "key": effect.key}
            arrival.record(tables, "effect", **named, status=answer.status, detail=detail)
    if dedupe:
        tables.keep_answer(route.tool, call.key, digest, answer.status, answer.body)
    return answer


def _reply(tables: Tables, arrival: Arrival, course: Course, outgoing: Outgoing) -> None:
    note = {} if course.mode == "ok" else {"mode": course.mode}
    silent = outgoing.reply in {Reply.HOLD, Reply.RESET}
    arrival.record(tables, "replied", status=None if silent else outgoing.status, detail=note)


def _outgoing(course: Course, answer: Answer | None) -> Outgoing:
    if course.reply is Reply.OWN and answer is not None:
        return Outgoing(
            status=answer.status, body=answer.body, headers=answer.headers, delay_ms=course.reply_after_ms
        )
    if course.reply in {Reply.DRIP, Reply.CUT} and answer is not None:
        return Outgoing(
            status=answer.status, body=answer.body, reply=course.reply, delay_ms=course.reply_after_ms
        )
    reply = Reply.CANNED if course.reply is Reply.OWN else course.reply
    return Outgoing(
        status=course.status,
        body=course.body,
        text=course.text,
        headers=course.headers,
        reply=reply,
        delay_ms=course.reply_after_ms,
    )
