"""Work that takes its time: accepted at once (202), done later, told by a callback and to whoever asks.

Each function is one operation of one system, run inside the transaction that applies it. Nothing is sent from
here: what is to be called back is left in the store, and `callbacks` sends it.
"""

from __future__ import annotations

from tools.simulator import clock
from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, either, found, made, moved, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused

TAKES_MS = 500
LONGEST_MS = 86_400_000
RUNNING = "running"
ENDED = 2
"""The version that a job's end carries; its acceptance is version 1."""


def provision_line(tables: Tables, call: Call) -> Answer:
    """Take the order to set up a line for a customer; it takes `delay_ms` (500 when nothing is said)."""
    customer, product = call.text("customer"), call.text("product", r"[a-z0-9_-]{1,40}")
    takes = call.told.get("delay_ms", call.value("delay_ms"))
    if call.told.get("callback") == "early":
        takes = 0
    takes = TAKES_MS if not isinstance(takes, int) or isinstance(takes, bool) else takes
    if not 0 <= takes <= LONGEST_MS:
        raise Refused(422, "invalid", f"delay_ms must be 0 to {LONGEST_MS}", field="delay_ms")
    url = call.callback_url or str(call.value("callback_url") or "")
    body = {
        "job": tables.next_id("J-"),
        "customer": customer,
        "product": product,
        "state": RUNNING,
        "version": 1,
    }
    made(tables, call, kind="job", business=customer, parent=customer, body=body)
    due_at = clock.now() + takes / 1000
    tables.add_callback(due_at, {"job": body["job"], "key": call.key, "url": url, **call.told})
    return Answer(status=202, body=body)


def ended(tables: Tables, job: str, *, fails: bool) -> tuple[Thing, Effect | None]:
    """The job at its end, stored, and the effect that its success has; a withdrawn one stays as it is."""
    thing = need(tables.get("job", job), "job")
    if thing.state != RUNNING:
        return thing, None
    if fails:
        return moved(tables, thing, "failed", version=ENDED, error="no_line_free"), None
    line = tables.next_id("LN-")
    thing = moved(tables, thing, "done", version=ENDED, line=line)
    return thing, Effect(business=thing.business, detail={"job": job, "line": line})


def release_line(tables: Tables, call: Call) -> Answer:
    """Release a line; an order that still runs is withdrawn and has no effect. 409 when that was done already."""
    thing = need(tables.get("job", call.params["job"]), "job")
    if thing.state == RUNNING:
        thing = moved(tables, thing, "withdrawn", version=ENDED + 1)
        return Answer(status=200, body=dict(thing.body))
    return changed(tables, thing, "released", of="done", version=ENDED + 1)


def get_line(tables: Tables, call: Call) -> Answer:
    """A job by its number or by its key; 202 while it runs, so that nobody takes that for an answer."""
    answer = found(either(tables, call, "job", "job"), "job")
    return Answer(status=202 if answer.body["state"] == RUNNING else 200, body=answer.body)


def told_of(thing: Thing, **more: Json) -> dict[str, Json]:
    """What a callback says about a job."""
    body = {"key": thing.key, "reference": thing.id, "state": thing.state, "version": thing.body["version"]}
    return {**body, "result": dict(thing.body), **more}


ROUTES: tuple[Route, ...] = (
    do("provision_line", "jobs", "provision", "POST /jobs", provision_line, honours_key=True),
    back(
        "release_line",
        "jobs",
        "release",
        "POST /jobs/{job}/release",
        release_line,
        of="provision_line",
    ),
    read("get_line", "jobs", "/jobs", get_line),
)
