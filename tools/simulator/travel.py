"""Travel: flights, cars and hotels are booked, called off and looked up.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.simulator.route import Route, back, do, read, trial
from tools.simulator.shelf import changed, either, found, made, need
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call, Refused

FULL = "-000"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where one kind of thing is booked. Numbers ending in -000 are booked out. `test_mode`: both calls can be tried."""

    what: str
    prefix: str
    test_mode: bool = False

    def book(self, tables: Tables, call: Call) -> Answer:
        """Book for a trip; a second call with another key books a second time."""
        trip, wanted = call.text("trip"), call.text(self.what, r"[A-Z0-9][A-Z0-9-]{1,30}")
        if wanted.endswith(FULL):
            raise Refused(409, "full", f"{wanted} is booked out")
        body = {
            "booking": tables.next_id(self.prefix),
            "kind": self.what,
            "trip": trip,
            "booked": wanted,
            "state": "booked",
        }
        return made(tables, call, kind="booking", business=trip, parent=trip, body=body)

    def call_off(self, tables: Tables, call: Call) -> Answer:
        """Call a booking off; 409 once it is used or called off already."""
        thing = tables.get("booking", call.params["booking"])
        thing = need(thing if thing is not None and thing.body["kind"] == self.what else None, "booking")
        return changed(tables, thing, "called_off", of="booked")

    def routes(self) -> tuple[Route, ...]:
        """The two tools of this desk, and their test modes."""
        tool, place = f"book_{self.what}", f"/{self.what}s"
        book = do(tool, "travel", tool, f"POST {place}", self.book, honours_key=True)
        call_off = back(
            f"cancel_{self.what}",
            "travel",
            f"call_off_{self.what}",
            f"POST {place}/{{booking}}/calling-off",
            self.call_off,
            of=tool,
        )
        tried = tuple(trial(f"try_{one.tool}", one) for one in (book, call_off)) if self.test_mode else ()
        return (book, call_off, *tried)


def get_booking(tables: Tables, call: Call) -> Answer:
    """A booking by its number, or the one that a key made."""
    return found(either(tables, call, "booking", "booking"), "booking")


DESKS = (
    Desk(what="flight", prefix="FL-"),
    Desk(what="car", prefix="CA-"),
    Desk(what="hotel", prefix="HO-", test_mode=True),
)
ROUTES: tuple[Route, ...] = (
    *(route for desk in DESKS for route in desk.routes()),
    read("get_booking", "travel", "/bookings", get_booking),
)
