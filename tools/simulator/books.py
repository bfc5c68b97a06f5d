"""What the world adds up to: net effects per tool, and whether every book agrees with its records."""

from __future__ import annotations

from tools.simulator.bank import minor_units
from tools.simulator.routes import ROUTES
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Json

WATCHED = {"credit": None, "fees": "income", "payments": "taken", "stock": "reserved", "quota": "used"}
"""The account of each family of books that its records account for; None = every one but the pool."""


def effects(tables: Tables, business: str = "") -> dict[str, Json]:
    """Net effects per forward tool: how often done, how often compensated, what is left."""
    net: dict[str, dict[str, int]] = {}
    back = {route.tool: route.makes_up_for for route in ROUTES if route.makes_up_for}
    where = (
        ("WHERE kind = 'effect' AND business = ?", (business,)) if business else ("WHERE kind = 'effect'", ())
    )
    for record in tables.records(*where):
        compensates = record["direction"] == "compensate"
        tool = str(back.get(record["tool"], record["tool"]) if compensates else record["tool"])
        row = net.setdefault(tool, {"done": 0, "compensated": 0, "net": 0})
        row["compensated" if compensates else "done"] += 1
        row["net"] += -1 if compensates else 1
    return dict(net)


def books(tables: Tables) -> dict[str, Json]:
    """The books and whether they balance: every book sums to zero and agrees with the records behind it."""
    sums, complaints = tables.balances(), []
    expected: dict[tuple[str, str], int] = {}
    for thing in tables.all_things():
        standing = _standing(thing)
        if standing is not None:
            book, account, amount = standing
            expected[book, account] = expected.get((book, account), 0) + amount
    for book, accounts in sums.items():
        if sum(accounts.values()):
            complaints.append(f"{book} does not sum to zero")
        watched = WATCHED[book.partition("/")[0]]
        for account, amount in accounts.items():
            seen = account != "pool" if watched is None else account == watched
            if seen and amount != expected.get((book, account), 0):
                complaints.append(
                    f"{book}, {account}: booked {amount}, on record {expected.get((book, account), 0)}"
                )
    return {"books": sums, "balanced": not complaints, "complaints": complaints}


def _standing(thing: Thing) -> tuple[str, str, int] | None:
    """Where a record that stands should be found in the books: (book, account, amount)."""
    match thing.kind, thing.state:
        case "reservation", "held":
            return f"stock/{thing.body['sku']}", "reserved", int(thing.body["qty"])
        case "allocation", "active":
            return "credit", str(thing.body["customer_no"]), minor_units(str(thing.body["amount"]))
        case "entry", "booked":
            return "fees", "income", minor_units(str(thing.body["amount"]))
        case "payment", "captured":
            return "payments", "taken", minor_units(str(thing.body["amount"]))
        case "deduction", "active":
            return f"quota/{thing.business}", "used", int(thing.body["units"])
    return None
