"""A proving ground: placements that differ only in what the system does with keys and with being asked.

Nothing here protects the caller: whatever is called twice takes effect twice, unless a key is honoured.
Each function is one operation, run inside the transaction that applies it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import either, found, made, need
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call

KINDS = {"plain": True, "keyed": True, "natural": False, "asked": False, "blind": False}
"""Kind of placement, and whether its keys are honoured."""


def place(tables: Tables, call: Call) -> Answer:
    """Put something into a place; a second call puts in a second one."""
    about = call.text("about")
    body = {"placement": tables.next_id("P-"), "about": about, "state": "placed"}
    return made(tables, call, kind="placement", business=about, parent=about, body=body)


def lift(tables: Tables, call: Call) -> Answer:
    """Take a placement out again; a second call takes out once more, whatever is there."""
    placement = need(tables.get("placement", call.params["placement"]), "placement")
    tables.put(replace(placement, state="lifted", body={**placement.body, "state": "lifted"}))
    body = {"lifting": tables.next_id("L-"), "placement": placement.id, "state": "lifted"}
    return made(tables, call, kind="lifting", business=placement.business, parent=placement.parent, body=body)


def find_placement(tables: Tables, call: Call) -> Answer:
    """A placement by its number, by the key that made it, or else what lies in a place."""
    if call.query.get("placement") or call.query.get("key"):
        return found(either(tables, call, "placement", "placement"), "placement")
    return found(_first(tables.of("placement", call.query.get("about", ""))), "placement")


def find_lifting(tables: Tables, call: Call) -> Answer:
    """What a key lifted."""
    return found(tables.by_key("lifting", call.query.get("key", "")), "lifting")


def _first(things: list[Thing]) -> Thing | None:
    return things[0] if things else None


def _pair(kind: str, *, honours_key: bool) -> tuple[Route, Route]:
    placing = do(f"place_{kind}", "ground", "place", f"POST /{kind}", place, honours_key=honours_key)
    lifting = back(
        f"lift_{kind}",
        "ground",
        "lift",
        f"POST /{kind}/{{placement}}/lifting",
        lift,
        of=f"place_{kind}",
    )
    return placing, replace(lifting, honours_key=honours_key)


ROUTES: tuple[Route, ...] = (
    *(route for kind, honours_key in KINDS.items() for route in _pair(kind, honours_key=honours_key)),
    read("find_placement", "ground", "/placements", find_placement),
    read("find_lifting", "ground", "/liftings", find_lifting),
)
