"""Bulks on the real engine, driven in this thread: cases alike, lists, and the errand that goes on with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sagas import api
from sagas.facts import RunFacts
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from workbench.bulks import Chosen, freeze_list, runner
from workbench.commands import Result, dispatch
from workbench.queries import bulks
from workbench.queries.bulks import MemberFacts, MemberState

REASON = "The gateway is back, nothing of these went out."


def cases(number: int) -> list[RunFacts]:
    """So many cases as the simulated world makes them now."""
    found = [flows.drive_until_still(flows.start()) for _ in range(number)]
    assert all(one.handoff is not None for one in found)
    return found


def attempts(run: RunFacts) -> int:
    """How often the notice of a case was sent so far."""
    return len(api.run_facts(run.ref).action("send_notice").attempts)


def chosen(facts: Sequence[RunFacts]) -> list[Chosen]:
    return [Chosen(handoff_ref=ref_of(one), version=one.version) for one in facts]


class Lead(flows.Desk):
    """Somebody who may order many at once."""

    def __init__(self, username: str = "lin") -> None:
        super().__init__(username)

    def freeze(self, verb: str, facts: Sequence[RunFacts]) -> str:
        return freeze_list(actor=self.actor, person=self.person, verb=verb, cases=chosen(facts))

    def order(self, verb: str, command_id: str, **arguments: Any) -> Result:
        return dispatch(
            actor=self.actor,
            person=self.person,
            verb=verb,
            command_id=command_id,
            arguments=arguments,
            door="test",
        )

    def start(self, ref: str, command_id: str = "start", **arguments: Any) -> Result:
        given = {"reason": REASON, "count": str(bulks.bulk(ref).included), "per_second": "100", **arguments}
        return self.order("bulk_start", command_id, bulk=ref, **given)


def look() -> None:
    """The sweep's errand, once."""
    runner.go_on(lambda: False)


def go_through(ref: str, runs: Sequence[RunFacts], *, looks: int = 30) -> None:
    """Look and drive by turns until the bulk is at its end."""
    for _ in range(looks):
        look()
        for one in runs:
            flows.drive_until_still(one.ref)
        if bulks.bulk(ref).ended_at is not None:
            return
    raise AssertionError(f"{ref} is {bulks.bulk(ref).state}: {bulks.bulk(ref).counts}")


def states(ref: str) -> list[MemberState]:
    return [member.state for member in bulks.every_member(ref)]


def members(ref: str) -> list[MemberFacts]:
    return list(bulks.every_member(ref))
