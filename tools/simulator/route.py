"""What a route is: one tool at one address, and what it does with a key. Four ways to write one down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call, Refused

type Operation = Callable[[Tables, Call], Answer]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One tool. `honours_key`: a repeat with the same key gets the first answer again and changes nothing.

    `makes_up_for` names the tool whose effect a compensation takes back; `restoring` tells which calls do.
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


def do(
    tool: str, system: str, operation: str, address: str, run: Operation, *, honours_key: bool = False
) -> Route:
    """A tool that has an effect. `address` is method and path."""
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


def back(tool: str, system: str, operation: str, address: str, run: Operation, *, of: str) -> Route:
    """A tool that makes up for the effect of another one; keys are honoured."""
    route = do(tool, system, operation, address, run, honours_key=True)
    return replace(route, direction="compensate", makes_up_for=of)


def read(tool: str, system: str, path: str, run: Operation) -> Route:
    """A tool that only reads."""
    return replace(do(tool, system, "read", f"GET {path}", run), direction="query")


def trial(tool: str, of: Route) -> Route:
    """The test mode of another tool: runs that very operation, says whether it was accepted, keeps nothing of it."""

    def run(tables: Tables, call: Call) -> Answer:
        with tables.nothing_kept():
            try:
                of.run(tables, call)
            except Refused as no:
                return Answer(status=200, body={"accepted": False, "why": no.body["message"]})
        return Answer(status=200, body={"accepted": True, "why": ""})

    return replace(do(tool, of.system, "read", f"{of.method} {of.path}/trial", run), direction="query")
