"""Approvals: a request is submitted and withdrawn here; a person decides through the admin port.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, either, found, made, need
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call


def submit_request(tables: Tables, call: Call) -> Answer:
    """Ask for an approval; a second call with another key asks a second time."""
    customer, kind, text = call.text("customer"), call.text("kind", r"[a-z_-]{1,40}"), call.text("text")
    body = {
        "request": tables.next_id("AR-"),
        "customer": customer,
        "kind": kind,
        "text": text,
        "state": "submitted",
    }
    return made(tables, call, kind="request", business=customer, parent=customer, body=body)


def withdraw_request(tables: Tables, call: Call) -> Answer:
    """Withdraw a request that nobody has decided; 409 otherwise."""
    thing = need(tables.get("request", call.params["request"]), "request")
    return changed(tables, thing, "withdrawn", of="submitted")


def void_request(tables: Tables, call: Call) -> Answer:
    """Mark a granted request as void, so that nobody acts on it; 409 in any other state."""
    thing = need(tables.get("request", call.params["request"]), "request")
    return changed(tables, thing, "void", of="granted")


def get_request(tables: Tables, call: Call) -> Answer:
    """A request by its number, or the one that a key submitted."""
    return found(either(tables, call, "request", "request"), "request")


ROUTES: tuple[Route, ...] = (
    do("submit_request", "approval", "submit", "POST /requests", submit_request, honours_key=True),
    back(
        "withdraw_request",
        "approval",
        "withdraw",
        "POST /requests/{request}/withdrawal",
        withdraw_request,
        of="submit_request",
    ),
    do(
        "void_request",
        "approval",
        "void",
        "POST /requests/{request}/voiding",
        void_request,
        honours_key=True,
    ),
    read("get_request", "approval", "/requests", get_request),
)
