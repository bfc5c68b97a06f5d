"""One verb for many cases: frozen, first two proved, then the rest; nothing twice, nothing in silence."""

from __future__ import annotations

from tests.conftest import Simulator
from tests.integration.workbench.bulking import Lead, cases, go_through, states
from tests.integration.workbench.conftest import REFUSED
from workbench.queries import bulks
from workbench.queries.bulks import BulkState, MemberState


def test_every_case_of_the_list_is_tried_again_and_read_back(workplace: Simulator) -> None:
    workplace.plan(REFUSED)
    found = cases(4)
    workplace.plan({"tool": "send_notice", "mode": "ok"})
    lin = Lead()
    ref = lin.freeze("retry", found)

    assert lin.start(ref).accepted
    go_through(ref, found)

    assert states(ref) == [MemberState.VERIFIED] * 4
    assert bulks.bulk(ref).state is BulkState.FINISHED
