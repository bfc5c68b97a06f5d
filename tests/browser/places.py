"""Pages that exist only once something has happened: `{name}` in a path stands for one, made when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sagas import api
from tests.conftest import Simulator
from tests.integration.workbench import bulking, flows, signing
from tests.integration.workbench.conftest import CUT, MUTE, REFUSED, ref_of

STUCK = {"tool": "release_stock", "mode": "refuse"}

LISTED = {"/signoffs/": "sheet", "/handoffs/bulk/": "bulk"}
"""What a list is empty without; the others have at least one open case."""


class Places:
    """The addresses of one test; what a page needs is made once."""

    def __init__(self, world: Simulator) -> None:
        self._world = world
        self._made: dict[str, str] = {}

    def address(self, path: str) -> str:
        """The path with its `{name}` filled; whatever the page, there is something to show on it."""
        if "{" not in path:
            self._of(LISTED.get(path, "case"))
        return re.sub(r"\{(\w+)\}", lambda found: self._of(found[1]), path)

    def _of(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = MADE[name](self._world)
        return self._made[name]


def _case(world: Simulator) -> str:
    """A case whose notice got no answer."""
    world.plan(CUT, MUTE)
    return f"/handoffs/{ref_of(flows.drive_until_still(flows.start()))}/"


def _run(world: Simulator) -> str:
    world.plan(CUT, MUTE)
    return f"/runs/{flows.drive_until_still(flows.start()).ref}/"


def _refused(world: Simulator) -> str:
    """A case whose notice was refused."""
    world.plan(REFUSED, STUCK)
    return f"/handoffs/{ref_of(flows.drive_until_still(flows.start()))}/"


def _plan(world: Simulator) -> str:
    """Asked for, this address leads to a plan made just then."""
    return f"{_refused(world)}plan/"


def _closed(world: Simulator) -> str:
    place = _refused(world)
    ref = place.split("/")[2]
    end = {"end_state": "notice_to_be_confirmed", "reason": flows.REASON}
    done = flows.Desk("maya").run("mark_acceptable", ref, f"close-{ref}", **end)
    assert done.accepted, done
    return place


def _halfway(world: Simulator) -> str:
    """A case whose compensation stopped between its steps."""
    ref = _refused(world).split("/")[2]
    assert flows.Desk("maya").run("compensate", ref, f"order-{ref}", reason=flows.REASON).accepted
    return f"/handoffs/{ref_of(flows.drive_until_still(api.handoff_facts(ref).ref))}/"


def _list(world: Simulator) -> str:
    """A list of cases that was frozen and not started."""
    world.plan(CUT, MUTE)
    return f"/handoffs/bulk/{bulking.Lead().freeze('query_status', bulking.cases(1))}/"


def _bulk(world: Simulator) -> str:
    """A bulk under way: two were sent, the third waits for them."""
    world.plan(REFUSED)
    lead = bulking.Lead()
    ref = lead.freeze("retry", bulking.cases(3))
    assert lead.start(ref, f"start-{ref}").accepted
    bulking.look()
    return f"/handoffs/bulk/{ref}/"


def _sheet(world: Simulator) -> str:
    """A request for a signature that nobody has decided."""
    signing.publish()
    world.plan(REFUSED)
    return f"/signoffs/{signing.asked_by('lin', amount='12000.00').permit.ref}/"


MADE: Mapping[str, Callable[[Simulator], str]] = {
    "case": _case,
    "run": _run,
    "plan": _plan,
    "closed": _closed,
    "halfway": _halfway,
    "list": _list,
    "bulk": _bulk,
    "sheet": _sheet,
}
