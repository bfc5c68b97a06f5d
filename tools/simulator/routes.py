"""Which address is which tool, and what the tool does with a key.

The table is the one place that joins HTTP and the systems' operations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import unquote

from tools.simulator import bank, orders, service
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call

type Operation = Callable[[Tables, Call], Answer]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One tool. `honours_key`: a repeat with the same key gets the first answer again and changes nothing.

    `makes_up_for` names the tool whose effect a compensation takes back.
    """

    tool: str
    system: str
    operation: str
    direction: str
    method: str
    path: str
    run: Operation
    honours_key: bool = False
    makes_up_for: str = ""
    restoring: Callable[[Tables, Call], bool] | None = None


def _do(
    tool: str, system: str, operation: str, address: str, run: Operation, *, honours_key: bool = False
) -> Route:
    method, path = address.split()
    return Route(
        tool=tool,
        system=system,
        operation=operation,
        direction="do",
        method=method,
        path=path,
        run=run,
        honours_key=honours_key,
    )


def _back(tool: str, system: str, operation: str, address: str, run: Operation, *, of: str) -> Route:
    route = _do(tool, system, operation, address, run, honours_key=True)
    return replace(route, direction="compensate", makes_up_for=of)


def _read(tool: str, system: str, path: str, run: Operation) -> Route:
    return replace(_do(tool, system, "read", f"GET {path}", run), direction="query")


ROUTES: tuple[Route, ...] = (
    _do("reserve_stock", "stock", "reserve", "POST /reservations", orders.reserve_stock, honours_key=True),
    _back(
        "release_stock",
        "stock",
        "release",
        "POST /reservations/{reservation}/release",
        orders.release_stock,
        of="reserve_stock",
    ),
    _read("get_reservation", "stock", "/reservations", orders.get_reservation),
    _do("create_shipment", "shipping", "book", "POST /shipments", orders.create_shipment, honours_key=True),
    _back(
        "cancel_shipment",
        "shipping",
        "call_off",
        "POST /shipments/{shipment}/cancellation",
        orders.cancel_shipment,
        of="create_shipment",
    ),
    _read("get_shipment", "shipping", "/shipments", orders.get_shipment),
    _do("send_notice", "notify", "send", "POST /messages", orders.send_notice),
    _read("query_notice", "notify", "/messages", orders.query_notice),
    _do("create_ticket", "ticket", "open", "POST /tickets", service.create_ticket),
    _back(
        "close_ticket",
        "ticket",
        "close",
        "POST /tickets/{ticket_id}/close",
        service.close_ticket,
        of="create_ticket",
    ),
    _do("label_ticket", "ticket", "label", "PUT /tickets/{ticket_id}/labels/{label}", service.label_ticket),
    _read("get_ticket", "ticket", "/tickets/{ticket_id}", service.get_ticket),
    _read("find_ticket_by_key", "ticket", "/tickets", service.find_ticket_by_key),
    replace(
        _do("update_account", "crm", "update", "PUT /accounts/{account}", service.update_account),
        makes_up_for="update_account",
        restoring=service.restores,
    ),
    _read("get_account", "crm", "/accounts/{account}", service.get_account),
    _do("send_mail", "mail", "send", "POST /mails", service.send_mail),
    _read("find_mail_by_key", "mail", "/mails", service.find_mail_by_key),
    _do("create_customer", "core", "create", "POST /customers", bank.create_customer),
    _back(
        "release_customer_no",
        "core",
        "release",
        "POST /customers/{customer_no}/release",
        bank.release_customer_no,
        of="create_customer",
    ),
    _read("find_customer", "core", "/customers", bank.find_customer),
    _do("create_file", "archive", "file", "POST /files", bank.create_file),
    _back(
        "withdraw_file",
        "archive",
        "withdraw",
        "POST /files/{file_id}/withdrawal",
        bank.withdraw_file,
        of="create_file",
    ),
    _read("find_file", "archive", "/files", bank.find_file),
    _do("allocate_limit", "credit", "allocate", "POST /allocations", bank.allocate_limit, honours_key=True),
    _back(
        "reclaim_limit",
        "credit",
        "reclaim",
        "POST /allocations/{allocation_id}/reclaim",
        bank.reclaim_limit,
        of="allocate_limit",
    ),
    _read("get_allocation", "credit", "/allocations", bank.get_allocation),
    _do("send_sms", "sms", "send", "POST /messages", bank.send_sms, honours_key=True),
    _read("find_sms", "sms", "/messages", bank.find_sms),
    _do("debit_fee", "ledger", "debit", "POST /entries", bank.debit_fee, honours_key=True),
    _back(
        "reverse_fee",
        "ledger",
        "reverse",
        "POST /entries/{entry_id}/reversal",
        bank.reverse_fee,
        of="debit_fee",
    ),
    _read("find_entry", "ledger", "/entries", bank.find_entry),
)

SYSTEMS: tuple[str, ...] = tuple(dict.fromkeys(route.system for route in ROUTES))


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


def business_of(tables: Tables, call: Call) -> str:
    """The case a call belongs to, as far as the world can tell; empty when it cannot."""
    for name in ("order", "application", "customer"):
        if isinstance(call.value(name), str):
            return str(call.value(name))
    given = {
        **call.query,
        **call.params,
        "customer_no": call.value("customer_no") or _named(call, "customer_no"),
    }
    if given.get("account"):
        return given["account"]
    for kind, name in OWNERS:
        thing = tables.get(kind, str(given[name])) if given.get(name) else None
        if thing is not None:
            return thing.business
    return _business_of_key(tables, call.query.get("key", ""))


OWNERS = (
    ("reservation", "reservation"),
    ("shipment", "shipment"),
    ("ticket", "ticket_id"),
    ("file", "file_id"),
    ("allocation", "allocation_id"),
    ("entry", "entry_id"),
    ("customer", "customer_no"),
)


def _named(call: Call, name: str) -> str:
    return call.params.get(name) or call.query.get(name, "")


def _business_of_key(tables: Tables, key: str) -> str:
    if not key:
        return ""
    rows = tables.records("WHERE key = ? AND business <> ''", (key,), limit=1)
    return str(rows[0]["business"]) if rows else ""
