"""A closed case is reopened as a new one beside it; the run that is over stays as it ended."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import RunFacts
from sagas.states import HandoffState, RunState
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk, names
from workbench.errors import Answer

WHY = "The customer calls: the notice never arrived."


@pytest.mark.requirement("S0-46")
def test_a_new_case_is_linked_to_the_closed_one_and_the_run_stays_as_it_ended(closed_case: RunFacts) -> None:
    old = ref_of(closed_case)

    done = Desk("maya").run("reopen", old, "o-1", reason=WHY)
    again = Desk("maya").run("reopen", old, "o-1", reason=WHY)
    facts = api.run_facts(closed_case.ref)

    assert done.accepted, done
    assert again.status is Answer.DUPLICATE
    assert (facts.state, facts.effects_left) == (RunState.CLOSED_ACCEPTED, closed_case.effects_left)
    first, second = facts.handoffs
    assert (first.ref, first.state) == (old, HandoffState.RESOLVED)
    assert (second.state, second.linked, second.reason) == (HandoffState.OPEN, True, "reopened")
    assert second.params["goes_on_from"] == old
    opened = [one for one in api.entries(facts.ref) if one.name == "human.handoff.started"][-1]
    assert (opened.actor_name, opened.reason) == ("Maya Okafor", WHY)
    assert second.ref in {row.ref for row in api.queue().rows}


def test_the_new_case_is_worked_on_and_closed_like_any_other_and_sends_nothing(closed_case: RunFacts) -> None:
    maya, old = Desk("maya"), ref_of(closed_case)
    maya.run("reopen", old, "o-1", reason=WHY)
    new = api.run_facts(closed_case.ref).handoffs[-1].ref

    assert maya.run("claim", new, "c-1").accepted
    refused = maya.run("retry", new, "r-1", preview_id="pv_none", step="send_notice", reason=REASON)
    done = maya.run("mark_acceptable", new, "m-1", end_state="notice_to_be_confirmed", reason=REASON)

    assert (refused.status, refused.code) == (Answer.CONFLICT, "final")
    assert done.accepted, done
    assert api.handoff_facts(new).handoff is not None
    assert [one.state for one in api.run_facts(closed_case.ref).handoffs] == [HandoffState.RESOLVED] * 2


def test_of_two_who_reopen_one_does_and_the_other_reads_which_case_is_open(closed_case: RunFacts) -> None:
    old = ref_of(closed_case)

    first = Desk("maya").run("reopen", old, "o-1", reason=WHY)
    second = Desk("jonas").run("reopen", old, "o-2", reason=WHY)

    new = api.run_facts(closed_case.ref).handoffs[-1].ref
    assert first.accepted
    assert (second.code, str(second.sentence)) == ("open_already", f"{new} is open for this run.")
    assert names(closed_case.ref).count("human.handoff.started") == 2


def test_what_is_open_or_goes_on_by_itself_is_not_reopened(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)

    still_open = maya.run("reopen", ref, "o-1", reason=WHY)
    assert maya.run("retry", ref, "r-1", step="send_notice", reason=REASON).accepted
    goes_on = maya.run("reopen", ref, "o-2", reason=WHY)

    assert (still_open.code, goes_on.code) == ("open_already", "goes_on")
    assert names(rejected_notice.ref).count("human.handoff.started") == 1


def test_reopening_asks_for_a_reason(closed_case: RunFacts) -> None:
    short = Desk("maya").run("reopen", ref_of(closed_case), "o-1", reason="because")

    assert (short.status, set(short.field_errors)) == (Answer.INVALID, {"reason"})
    assert len(api.run_facts(closed_case.ref).handoffs) == 1
