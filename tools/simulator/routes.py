"""Which address is which tool, and what the tool does with a key.

The table is the one place that joins HTTP and the systems' operations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from urllib.parse import unquote

from tools.simulator import (
    approval,
    bank,
    batch,
    crm,
    device,
    generic,
    ground,
    jobs,
    order_book,
    orders,
    outbox,
    pay,
    quota,
    service,
    tasks,
    travel,
    versioned,
)
from tools.simulator.route import Route, back, do, read
from tools.simulator.store import Tables
from tools.simulator.wire import Call, Refused

ROUTES: tuple[Route, ...] = (
    do("reserve_stock", "stock", "reserve", "POST /reservations", orders.reserve_stock, honours_key=True),
    back(
        "release_stock",
        "stock",
        "release",
        "POST /reservations/{reservation}/release",
        orders.release_stock,
        of="reserve_stock",
    ),
    read("get_reservation", "stock", "/reservations", orders.get_reservation),
    do("create_shipment", "shipping", "book", "POST /shipments", orders.create_shipment, honours_key=True),
    back(
        "cancel_shipment",
        "shipping",
        "call_off",
        "POST /shipments/{shipment}/cancellation",
        orders.cancel_shipment,
        of="create_shipment",
    ),
    read("get_shipment", "shipping", "/shipments", orders.get_shipment),
    do("send_notice", "notify", "send", "POST /messages", orders.send_notice),
    read("query_notice", "notify", "/messages", orders.query_notice),
    do("create_ticket", "ticket", "open", "POST /tickets", service.create_ticket),
    back(
        "close_ticket",
        "ticket",
        "close",
        "POST /tickets/{ticket_id}/close",
        service.close_ticket,
        of="create_ticket",
    ),
    do("label_ticket", "ticket", "label", "PUT /tickets/{ticket_id}/labels/{label}", service.label_ticket),
    replace(
        do("change_ticket", "ticket", "change", "PUT /tickets/{ticket_id}/fields", service.change_ticket),
        makes_up_for="change_ticket",
        restoring=versioned.restores("ticket_fields", "ticket_id"),
    ),
    read("get_ticket_fields", "ticket", "/tickets/{ticket_id}/fields", service.get_ticket_fields),
    read("get_ticket", "ticket", "/tickets/{ticket_id}", service.get_ticket),
    read("find_ticket_by_key", "ticket", "/tickets", service.find_ticket_by_key),
    replace(
        do("update_account", "crm", "update", "PUT /accounts/{account}", service.update_account),
        makes_up_for="update_account",
        restoring=versioned.restores("account", "account"),
    ),
    read("get_account", "crm", "/accounts/{account}", service.get_account),
    do("send_mail", "mail", "send", "POST /mails", service.send_mail),
    read("find_mail_by_key", "mail", "/mails", service.find_mail_by_key),
    do("create_customer", "core", "create", "POST /customers", bank.create_customer),
    back(
        "release_customer_no",
        "core",
        "release",
        "POST /customers/{customer_no}/release",
        bank.release_customer_no,
        of="create_customer",
    ),
    read("find_customer", "core", "/customers", bank.find_customer),
    do("create_file", "archive", "file", "POST /files", bank.create_file),
    back(
        "withdraw_file",
        "archive",
        "withdraw",
        "POST /files/{file_id}/withdrawal",
        bank.withdraw_file,
        of="create_file",
    ),
    read("find_file", "archive", "/files", bank.find_file),
    do("allocate_limit", "credit", "allocate", "POST /allocations", bank.allocate_limit, honours_key=True),
    back(
        "reclaim_limit",
        "credit",
        "reclaim",
        "POST /allocations/{allocation_id}/reclaim",
        bank.reclaim_limit,
        of="allocate_limit",
    ),
    read("get_allocation", "credit", "/allocations", bank.get_allocation),
    do("send_sms", "sms", "send", "POST /messages", bank.send_sms, honours_key=True),
    read("find_sms", "sms", "/messages", bank.find_sms),
    do("debit_fee", "ledger", "debit", "POST /entries", bank.debit_fee, honours_key=True),
    back(
        "reverse_fee",
        "ledger",
        "reverse",
        "POST /entries/{entry_id}/reversal",
        bank.reverse_fee,
        of="debit_fee",
    ),
    read("find_entry", "ledger", "/entries", bank.find_entry),
    *pay.ROUTES,
    *order_book.ROUTES,
    *travel.ROUTES,
    *device.ROUTES,
    *quota.ROUTES,
    *batch.ROUTES,
    *approval.ROUTES,
    *outbox.ROUTES,
    *jobs.ROUTES,
    *tasks.ROUTES,
    *crm.ROUTES,
    *ground.ROUTES,
)

SYSTEMS: tuple[str, ...] = (*dict.fromkeys(route.system for route in ROUTES), generic.SYSTEM)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


def find_route(system: str, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
    """The route of a request below a system's address and the values in its path, or None."""
    for route in ROUTES:
        if route.system == system and route.method == method:
            match = _pattern(route.path).fullmatch(path)
            if match:
                return route, {name: unquote(value) for name, value in match.groupdict().items()}
    return None


CASES = ("order", "application", "customer", "trip", "change", "batch", "about")
"""Names that a body gives to the case a call belongs to, the first that is there counts."""


def business_of(tables: Tables, call: Call) -> str:
    """The case a call belongs to, as far as the world can tell; empty when it cannot."""
    if call.target.startswith(f"/{generic.SYSTEM}/"):
        return generic.business_of(call)
    for name in CASES:
        if isinstance(call.value(name), str):
            return str(call.value(name))
    given = {
        **call.query,
        **call.params,
        "customer_no": call.value("customer_no") or _named(call, "customer_no"),
    }
    for name in ("account", "order", "about"):
        if given.get(name):
            return given[name]
    if given.get("ticket_id"):
        try:
            return service.ticket_of(tables, given["ticket_id"]).business
        except Refused:
            return ""
    for kind, name in OWNERS:
        thing = tables.get(kind, str(given[name])) if given.get(name) else None
        if thing is not None:
            return thing.business
    return _business_of_key(tables, call.query.get("key", ""))


OWNERS = (
    *((name, name) for name in ("reservation", "shipment", "payment", "booking", "deduction", "record")),
    *((name, name) for name in ("request", "job", "task", "note", "placement")),
    ("message", "message_key"),
    ("file", "file_id"),
    ("allocation", "allocation_id"),
    ("entry", "entry_id"),
    ("customer", "customer_no"),
)
"""Kind of record and the name that its id has in an address."""


def _named(call: Call, name: str) -> str:
    return call.params.get(name) or call.query.get(name, "")


def _business_of_key(tables: Tables, key: str) -> str:
    if not key:
        return ""
    rows = tables.records("WHERE key = ? AND business <> ''", (key,), limit=1)
    return str(rows[0]["business"]) if rows else ""
