"""A case is handed over by name and with the reason; a lead may take it from whoever holds it."""

from __future__ import annotations

import pytest

from sagas import api
from sagas.facts import RunFacts
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.errors import Answer


@pytest.mark.requirement("S0-46")
def test_the_other_holds_it_and_the_record_says_who_gave_it_and_why(rejected_notice: RunFacts) -> None:
    ref = ref_of(rejected_notice)
    Desk("maya").run("claim", ref, "c-1")

    nobody = Desk("maya").run("assign", ref, "a-1", person="oskar", reason=REASON)
    done = Desk("maya").run("assign", ref, "a-2", person="jonas", reason=REASON)
    again = Desk("lin").run("assign", ref, "a-3", person="jonas", reason=REASON)
    mine = Desk("maya").run("retry", ref, "r-1", preview_id="pv_old", step="send_notice", reason=REASON)

    assert (nobody.status, set(nobody.field_errors)) == (Answer.INVALID, {"person"})
    assert done.accepted, done
    assert again.code == "no_such_person"
    assert (mine.status, mine.code) == (Answer.CONFLICT, "held")
    handoff = api.handoff_facts(ref).handoff
    assert handoff is not None
    assert (handoff.claimed_by, handoff.claimed_by_name) == ("jonas", "Jonas Brandt")
    (told,) = [entry for entry in api.entries(rejected_notice.ref) if entry.name == "human.handoff.assigned"]
    assert (told.actor_name, told.reason, told.after["to"]) == ("Maya Okafor", REASON, "Jonas Brandt")


def test_a_lead_takes_over_and_gives_on_what_another_holds(rejected_notice: RunFacts) -> None:
    ref = ref_of(rejected_notice)
    Desk("maya").run("claim", ref, "c-1")

    other = Desk("jonas").run("assign", ref, "a-1", preview_id="pv_none", person="jonas", reason=REASON)
    given = Desk("lin").run("assign", ref, "a-2", person="jonas", reason=REASON)
    taken = Desk("lin").run("claim", ref, "c-2")

    assert (other.status, other.code) == (Answer.CONFLICT, "held")
    assert given.accepted
    assert taken.accepted
    handoff = api.handoff_facts(ref).handoff
    assert handoff is not None
    assert handoff.claimed_by == "lin"
    assert flows.names(rejected_notice.ref).count("human.handoff.claimed") == 2


@pytest.mark.requirement("S0-46")
def test_whoever_reads_along_asks_the_holder_and_what_changes_hands_is_the_holders_decision(
    rejected_notice: RunFacts,
) -> None:
    ref = ref_of(rejected_notice)
    Desk("maya").run("claim", ref, "c-1")
    version = api.handoff_facts(ref).version

    asked = Desk("jonas").run("ask_for_case", ref, "w-1", note="I have the carrier on the phone.")
    facts = api.handoff_facts(ref)

    assert asked.accepted, asked
    assert facts.version == version
    assert facts.handoff is not None
    assert (facts.handoff.claimed_by, facts.handoff.wanted_by_name) == ("maya", "Jonas Brandt")
    assert api.queue_rows([ref])[ref].wanted_by_name == "Jonas Brandt"
    (told,) = [one for one in api.entries(facts.ref) if one.name == "human.handoff.asked_for"]
    assert (told.actor_name, told.reason) == ("Jonas Brandt", "I have the carrier on the phone.")

    assert Desk("maya").run("assign", ref, "a-1", person="jonas", reason=REASON).accepted
    given = api.handoff_facts(ref).handoff
    assert given is not None
    assert (given.claimed_by, given.wanted_by) == ("jonas", "")


def test_nobody_asks_for_what_is_free_or_their_own(rejected_notice: RunFacts) -> None:
    ref = ref_of(rejected_notice)

    free = Desk("jonas").run("ask_for_case", ref, "w-1")
    Desk("jonas").run("claim", ref, "c-1")
    own = Desk("jonas").run("ask_for_case", ref, "w-2")

    assert (free.code, own.code) == ("not_held", "yours")
    assert "human.handoff.asked_for" not in flows.names(rejected_notice.ref)
