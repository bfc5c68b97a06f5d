"""A preview is kept as it was shown, and shows the calls that will run."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench import trail
from workbench.commands import Result, find_preview, make_preview
from workbench.errors import Answer, Refused
from workbench.trail import Depth


def test_a_preview_is_found_again_as_it_was_shown_by_its_maker_alone(unknown_notice: RunFacts) -> None:
    maya, jonas = Desk("maya"), Desk("jonas")
    facts = api.handoff_facts(ref_of(unknown_notice))

    shown = make_preview(actor=maya.actor, person=maya.person, facts=facts, verb="mark_acceptable")

    assert find_preview(shown.id, actor=maya.actor) == shown
    assert find_preview(shown.id, actor=jonas.actor) is None
    assert find_preview("", actor=maya.actor) is None
    held = {state.id: state.met for state in shown.end_states}
    assert held == {"all_confirmed": False, "notice_to_be_confirmed": True, "all_compensated": False}


@pytest.mark.requirement("S0-36", "S1-16")
def test_the_calls_that_run_are_those_that_were_shown(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    facts = api.handoff_facts(ref)
    shown = make_preview(actor=maya.actor, person=maya.person, facts=facts, verb="compensate")
    before = len(workplace.ledger())

    assert maya.run("compensate", ref, "c-1", preview_id=shown.id, reason=REASON).accepted
    flows.drive_until_still(rejected_notice.ref)

    ran = [(r["tool"], r["key"]) for r in workplace.ledger()[before:] if r["kind"] == "effect"]
    assert ran == [(call.tool, call.key) for call in shown.calls if call.changes_state]


@pytest.mark.requirement("S0-16", "S1-4")
def test_what_cannot_be_taken_back_is_said_before_a_retry(rejected_notice: RunFacts) -> None:
    maya = Desk("maya")
    facts = api.handoff_facts(ref_of(rejected_notice))

    retry = make_preview(actor=maya.actor, person=maya.person, facts=facts, verb="retry", step="send_notice")
    compensate = make_preview(actor=maya.actor, person=maya.person, facts=facts, verb="compensate")

    assert retry.irreversible == ("A message reaches the customer",)
    assert compensate.irreversible == ()
    assert [str(check.text) for check in retry.checks] == [
        f"The case is at version {facts.version}",
        "Nobody works on this case",
        "No freeze covers this",
    ]


def test_what_would_be_refused_has_no_preview(unknown_notice: RunFacts) -> None:
    maya = Desk("maya")
    facts = api.handoff_facts(ref_of(unknown_notice))

    with pytest.raises(Refused) as refused:
        make_preview(actor=maya.actor, person=maya.person, facts=facts, verb="retry", step="send_notice")

    assert refused.value.refusal.code == "unknown_and_no_key"


@pytest.mark.requirement("S2-10")
def test_who_names_the_steps_to_compensate_names_all_of_them(rejected_notice: RunFacts) -> None:
    """What is not named would be compensated after the others all the same: it is left out with a reason, or it goes."""
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    preview = maya.preview(ref, "compensate")

    def order(command_id: str, *steps: str) -> Result:
        return maya.run("compensate", ref, command_id, preview_id=preview, reason=REASON, steps=list(steps))

    other, part = order("c-1", "send_notice"), order("c-2", "create_shipment")
    assert api.handoff_facts(ref).state is RunState.HANDOFF
    whole = order("c-3", "reserve_stock", "create_shipment")

    assert other.code == "preview_of_other"
    assert (part.status, part.code, set(part.field_errors)) == (Answer.INVALID, "not_all", {"steps"})
    assert whole.accepted, whole


@pytest.mark.requirement("S0-4", "S0-86", "S4-20")
def test_the_trail_tells_people_decisions_or_everything(rejected_notice: RunFacts) -> None:
    maya = Desk("maya")
    maya.run("comment", ref_of(rejected_notice), "c-1", text="The carrier knows.")
    by_depth = {depth: trail.of_run(rejected_notice.ref, depth=depth) for depth in Depth}

    people = [(entry.actor_name, entry.name) for entry in by_depth[Depth.PEOPLE]]
    assert people == [("orders", "run.started"), ("Maya Okafor", "human.handoff.commented")]
    sizes = [len(by_depth[depth]) for depth in (Depth.PEOPLE, Depth.DECISIONS, Depth.EVERYTHING)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2]
    assert by_depth[Depth.EVERYTHING] == api.entries(rejected_notice.ref)
