"""One verb for many cases: frozen, first two proved, then the rest; nothing twice, nothing in silence."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState
from tests.conftest import Clock, Simulator
from tests.integration.sagas import trips
from tests.integration.workbench import flows
from tests.integration.workbench.bulking import (
    REASON,
    Lead,
    attempts,
    cases,
    go_through,
    look,
    members,
    states,
)
from tests.integration.workbench.conftest import CUT, MUTE, REFUSED, ref_of
from tools.reader import definition_from_document
from workbench.bulks import Chosen, freeze_list, runner
from workbench.commands import people
from workbench.errors import Answer, Refused
from workbench.labs import cast
from workbench.models import BulkMember
from workbench.queries import bulks
from workbench.queries.bulks import BulkState, MemberState
from workbench.roles import Role

OK = {"tool": "send_notice", "mode": "ok"}
UNTOUCHED, VERIFIED, WAITING = MemberState.UNTOUCHED, MemberState.VERIFIED, MemberState.WAITING


@pytest.fixture
def three(workplace: Simulator) -> list[RunFacts]:
    """Three cases whose notice was refused; from now on it would be taken."""
    workplace.plan(REFUSED)
    found = cases(3)
    workplace.plan(OK)
    return found


@pytest.mark.requirement("S1-9", "S0-46")
def test_every_case_is_sent_once_read_back_and_signed_for(three: list[RunFacts]) -> None:
    lin = Lead()
    ref = lin.freeze("retry", three)

    assert lin.start(ref).accepted
    go_through(ref, three)

    found = bulks.bulk(ref)
    assert found.state is BulkState.FINISHED
    assert [one.code for one in members(ref)] == ["read_back"] * 3
    assert [one.disposition for one in members(ref)] == ["settled"] * 3
    assert [attempts(one) for one in three] == [2, 2, 2]
    for place, run in enumerate(three, start=1):
        (told,) = {
            (entry.actor_id, entry.reason)
            for entry in api.entries(run.ref)
            if entry.command_id == f"{ref}.{place}" and entry.machine == "action"
        }
        assert told == ("lin", REASON)


def test_the_first_two_go_alone_and_when_one_fails_nothing_else_is_sent(
    three: list[RunFacts], workplace: Simulator
) -> None:
    workplace.plan(REFUSED)
    lin = Lead()
    ref = lin.freeze("retry", three)
    assert lin.start(ref).accepted

    look()
    assert [one.state for one in members(ref)] == [MemberState.SENT, MemberState.SENT, WAITING]
    go_through(ref, three)

    assert states(ref) == [MemberState.FAILED, MemberState.FAILED, UNTOUCHED]
    assert [attempts(one) for one in three] == [2, 2, 1]
    assert bulks.bulk(ref).state is BulkState.STOPPED
    assert "was not verified. Nothing else was sent." in bulks.bulk(ref).why.plain()
    refused = lin.order("bulk_continue", "go-on", bulk=ref, reason=REASON)
    assert (refused.status, refused.code) == (Answer.CONFLICT, "ended")


def test_a_process_that_dies_after_the_command_sends_nothing_again(
    three: list[RunFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    lin = Lead()
    ref = lin.freeze("retry", three)
    assert lin.start(ref).accepted

    def die(*given: object, **named: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(runner, "_note", die)
        with pytest.raises(SystemExit):
            look()
    assert api.run_facts(three[0].ref).version > three[0].version
    assert states(ref) == [WAITING] * 3
    go_through(ref, three)

    assert states(ref) == [VERIFIED] * 3
    assert [attempts(one) for one in three] == [2, 2, 2]


def test_whoever_comes_first_has_the_case_and_the_other_reads_who(three: list[RunFacts]) -> None:
    lin = Lead()
    first, second = lin.freeze("retry", three), lin.freeze("retry", three)
    alone = flows.Desk("maya")
    shown = alone.preview(ref_of(three[0]), "retry", "send_notice")
    late = alone.preview(ref_of(three[1]), "retry", "send_notice")
    given = {"step": "send_notice", "reason": REASON}
    assert alone.run("retry", ref_of(three[0]), "alone", preview_id=shown, **given).accepted
    assert lin.start(first, "s-1").accepted
    assert lin.start(second, "s-2").accepted

    go_through(first, three)
    go_through(second, three)
    told = alone.run("retry", ref_of(three[1]), "late", preview_id=late, **given)

    assert states(first) == [MemberState.REFUSED, VERIFIED, VERIFIED]
    assert states(second) == [MemberState.REFUSED] * 3
    assert [attempts(one) for one in three] == [2, 2, 2]
    assert told.status is Answer.CONFLICT
    assert told.sentence.plain().startswith(f"Bulk {first} of Lin Qing went on with this case at ")


def test_who_is_left_out_is_told_the_servers_own_reason(three: list[RunFacts]) -> None:
    held, moved, free = three
    assert flows.Desk("jonas").run("claim", ref_of(held), "mine").accepted
    lin = Lead()
    old = Chosen(handoff_ref=ref_of(moved), version=moved.version - 1)
    nobody = Chosen(handoff_ref="HF-0", version=1)
    now = Chosen(handoff_ref=ref_of(free), version=free.version)

    ref = freeze_list(
        actor=lin.actor, person=lin.person, verb="retry", cases=[_as_is(held), old, nobody, now, now]
    )

    found = members(ref)
    assert [(one.state, one.code) for one in found] == [
        (WAITING, ""),
        (MemberState.LEFT_OUT, "held"),
        (MemberState.LEFT_OUT, "stale"),
        (MemberState.LEFT_OUT, "no_such_case"),
    ]
    assert found[1].said.plain().startswith("Jonas Brandt works on this since ")
    assert bulks.bulk(ref).possible["retry"] == 1


def test_similar_cases_that_come_later_are_counted_and_not_touched(
    three: list[RunFacts], workplace: Simulator
) -> None:
    lin = Lead()
    ref = lin.freeze("retry", three[:2])
    workplace.plan(REFUSED)
    (late,) = cases(1)
    workplace.plan(OK)

    assert lin.start(ref).accepted
    go_through(ref, three[:2])

    assert bulks.bulk(ref).arrived == 1
    assert (attempts(late), attempts(three[2])) == (1, 1)


def test_it_waits_when_paused_goes_on_when_continued_and_leaves_the_rest_when_stopped(
    three: list[RunFacts],
) -> None:
    lin = Lead()
    ref = lin.freeze("retry", three)
    assert lin.start(ref).accepted
    assert lin.order("bulk_pause", "p-1", bulk=ref, reason=REASON).accepted

    look()
    assert states(ref) == [WAITING] * 3
    assert bulks.bulk(ref).stands_by == "Lin Qing"
    assert lin.order("bulk_continue", "c-1", bulk=ref, reason=REASON).accepted
    look()
    assert lin.order("bulk_stop", "s-1", bulk=ref, reason=REASON).accepted
    for one in three[:2]:
        flows.drive_until_still(one.ref)
    look()

    assert states(ref) == [VERIFIED, VERIFIED, UNTOUCHED]
    assert attempts(three[2]) == 1
    assert bulks.bulk(ref).why.plain() == f"Lin Qing stopped it: {REASON}"


def test_a_freeze_makes_it_wait_and_a_lost_role_stops_it(three: list[RunFacts]) -> None:
    lin = Lead()
    ref = lin.freeze("retry", three)
    assert lin.start(ref).accepted
    assert (
        flows.Desk("maya")
        .run("freeze", "", "f-1", scope="forward", reason="The carrier moves house")
        .accepted
    )

    look()
    found = bulks.bulk(ref)
    assert (found.state, states(ref)) == (BulkState.PAUSED, [WAITING] * 3)
    assert "The carrier moves house" in found.why.plain()

    assert lin.order("bulk_continue", "c-1", bulk=ref, reason=REASON).accepted
    assert people.take_role(actor=cast.SYSTEM, person=lin.person, role=Role.LEAD, reason="Another post")
    look()

    assert bulks.bulk(ref).state is BulkState.STOPPED
    assert states(ref) == [UNTOUCHED] * 3
    assert [attempts(one) for one in three] == [1, 1, 1]


def test_starting_asks_for_the_number_the_reason_and_its_own_author(
    three: list[RunFacts], clock_of_tests: Clock
) -> None:
    lin = Lead()
    ref, old = lin.freeze("retry", three), lin.freeze("retry", three)

    wrong = lin.start(ref, "s-1", count="2", reason="soon")
    assert (wrong.status, set(wrong.field_errors)) == (Answer.INVALID, {"reason"})
    wrong = lin.start(ref, "s-2", count="2")
    assert (wrong.status, set(wrong.field_errors)) == (Answer.INVALID, {"count"})
    people.give_roles(
        actor=cast.SYSTEM, person=flows.person("maya"), roles=frozenset({Role.LEAD}), reason="Stands in"
    )
    assert Lead("maya").start(ref, "s-3").code == "not_yours"
    assert lin.start(ref, "s-4").status is Answer.ACCEPTED
    assert lin.start(ref, "s-4").status is Answer.DUPLICATE
    assert lin.start(ref, "s-5").code == "started"
    clock_of_tests.put_forward(16 * 60)
    assert lin.start(old, "s-6").status is Answer.EXPIRED


def test_compensations_are_never_ordered_for_many_and_operators_order_none(three: list[RunFacts]) -> None:
    lin, maya = Lead(), Lead("maya")

    with pytest.raises(Refused) as alone:
        lin.freeze("compensate", three)
    with pytest.raises(Refused) as nobody:
        maya.freeze("query_status", three)

    assert (alone.value.refusal.answer, alone.value.refusal.code) == (Answer.INVALID, "not_in_bulk")
    assert (nobody.value.refusal.answer, nobody.value.refusal.code) == (Answer.FORBIDDEN, "role")


def test_a_query_for_many_is_done_when_the_answer_is_there(workplace: Simulator) -> None:
    workplace.plan(CUT, MUTE)
    found = cases(2)
    lin = Lead()
    ref = lin.freeze("query_status", found)
    assert bulks.bulk(ref).typed is None
    assert lin.start(ref).accepted

    workplace.plan({"tool": "query_notice", "mode": "ok"})
    go_through(ref, found)

    assert [one.code for one in members(ref)] == ["settled"] * 2
    assert all(api.run_facts(one.ref).state.value != "handoff" for one in found)


def test_a_query_for_many_asks_about_every_unknown_step_of_a_case(workplace: Simulator) -> None:
    api.publish_definition(
        definition_from_document({**trips.trip("trip_lost"), "recovery_deadline_s": 0.1}), actor=cast.SYSTEM
    )
    lost = [{"tool": tool, "mode": "cut"} for tool in ("book_car", "book_flight")]
    workplace.plan(*lost, {"tool": "get_booking", "mode": "query_down"})
    started = api.start_run(
        actor=flows.AGENT, definition="trip_lost", input={"trip": "TR-70001"}, start_key="trip-lost"
    )
    facts = flows.drive_until_still(started.run_ref)
    assert {one.step for one in facts.actions if one.state is ActionState.UNKNOWN} == {"car", "flight"}
    lin = Lead()
    ref = lin.freeze("query_status", [facts])
    (member,) = members(ref)
    assert len(member.calls) == 2

    assert lin.start(ref).accepted
    workplace.plan({"tool": "get_booking", "mode": "ok"})
    go_through(ref, [facts])

    assert [one.code for one in members(ref)] == ["settled"]
    asked = [one.step for one in api.entries(facts.ref) if one.name == "command.query_status"]
    assert sorted(asked) == ["car", "flight"]


def test_accepting_many_reads_every_condition_and_waives_each(three: list[RunFacts]) -> None:
    lin = Lead()
    ref = lin.freeze("mark_acceptable", three[:2])

    assert lin.start(ref, "s-1").code == "invalid"
    assert lin.start(ref, "s-2", end_state="notice_to_be_confirmed").accepted
    go_through(ref, three[:2])

    assert [one.disposition for one in members(ref)] == ["waived"] * 2
    assert states(ref) == [VERIFIED] * 2


def test_a_list_without_cases_comes_to_an_end(workplace: Simulator) -> None:
    lin = Lead()
    ref = lin.freeze("retry", [])

    assert lin.start(ref, count="0").accepted
    look()

    assert bulks.bulk(ref).state is BulkState.FINISHED


def test_what_was_frozen_cannot_be_changed_in_the_database_either(three: list[RunFacts]) -> None:
    ref = Lead().freeze("retry", three)

    with pytest.raises(DatabaseError), transaction.atomic():
        BulkMember.objects.filter(bulk__ref=ref).update(version=99)


def _as_is(facts: RunFacts) -> Chosen:
    return Chosen(handoff_ref=ref_of(facts), version=None)
