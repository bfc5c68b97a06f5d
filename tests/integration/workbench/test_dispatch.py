"""One command, one effect, one entry; a refusal is an entry and nothing else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import _previews, _receipts
from workbench.errors import Answer
from workbench.models import Preview, Receipt


def state_of(facts: RunFacts) -> tuple[Any, ...]:
    fresh = api.run_facts(facts.ref)
    return fresh.version, fresh.state, [(a.step, a.state, a.version) for a in fresh.actions], fresh.handoff


@pytest.mark.requirement("S1-6", "S1-9")
def test_a_double_click_has_one_effect_and_says_that_it_ran_once(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    preview = maya.preview(ref, "compensate")

    first = maya.run("compensate", ref, "click-1", preview_id=preview, reason=REASON)
    second = maya.run("compensate", ref, "click-1", preview_id=preview, reason=REASON)

    assert (first.status, first.http_status) == (Answer.ACCEPTED, 202)
    assert (second.status, second.http_status, second.replayed) == (Answer.DUPLICATE, 200, True)
    assert "It ran once." in str(second.sentence)
    assert second.at == first.at
    assert Receipt.objects.count() == 1
    facts = flows.drive_until_still(rejected_notice.ref)
    assert facts.state is RunState.COMPENSATED


@pytest.mark.requirement("S1-6")
def test_another_wish_under_a_used_command_id_is_misuse_and_does_nothing(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    maya.run("comment", ref, "id-1", text="The carrier knows.")
    before = state_of(rejected_notice)

    result = maya.run("comment", ref, "id-1", text="The carrier does not know.")

    assert (result.status, result.code, result.http_status) == (Answer.INVALID, "command_id_reused", 422)
    assert state_of(rejected_notice) == before


def test_the_same_command_id_of_somebody_else_is_another_command(rejected_notice: RunFacts) -> None:
    ref = ref_of(rejected_notice)
    Desk("maya").run("comment", ref, "id-1", text="Mine.")

    result = Desk("jonas").run("comment", ref, "id-1", text="Mine too.")

    assert result.status is Answer.ACCEPTED


@pytest.mark.requirement("S1-6")
def test_a_stale_page_is_told_what_changed_and_nothing_is_done(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    preview = maya.preview(ref, "compensate")
    Desk("jonas").run("claim", ref, "jonas-1")
    Desk("jonas").run("release", ref, "jonas-2")
    before = state_of(rejected_notice)

    result = maya.run(
        "compensate",
        ref,
        "maya-1",
        preview_id=preview,
        saw_version=rejected_notice.version,
        reason=REASON,
    )

    assert (result.status, result.code, result.http_status) == (Answer.CONFLICT, "stale", 409)
    assert [(c.kind, c.what, c.by) for c in result.changed if c.kind == "entry"] == [
        ("entry", "human.handoff.claimed", "Jonas Brandt"),
        ("entry", "human.handoff.released", "Jonas Brandt"),
    ]
    assert ("version", str(rejected_notice.version), str(rejected_notice.version + 2)) in [
        (c.what, c.saw, c.now) for c in result.changed
    ]
    assert state_of(rejected_notice) == before
    assert flows.names(rejected_notice.ref)[-1] == "command.refused"


def test_who_claims_again_what_is_theirs_renews_it_and_that_is_on_record_too(
    rejected_notice: RunFacts,
) -> None:
    ref = ref_of(rejected_notice)

    answers = [Desk("jonas").run("claim", ref, f"jonas-{number}").status for number in (1, 2)]

    assert answers == [Answer.ACCEPTED, Answer.ACCEPTED]
    told = [entry for entry in api.entries(rejected_notice.ref) if entry.name == "human.handoff.claimed"]
    assert [entry.command_id for entry in told] == ["jonas-1", "jonas-2"]


def test_a_conflict_does_not_use_up_the_command_id(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    old = maya.preview(ref, "compensate")
    Desk("jonas").run("claim", ref, "jonas-1")
    Desk("jonas").run("release", ref, "jonas-2")
    assert maya.run("compensate", ref, "maya-1", preview_id=old, reason=REASON).status is Answer.CONFLICT

    result = maya.run("compensate", ref, "maya-1", reason=REASON)

    assert result.status is Answer.ACCEPTED


@pytest.mark.requirement("S0-46")
def test_two_tabs_after_success_show_what_happened_since(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    first, second = maya.preview(ref, "compensate"), maya.preview(ref, "compensate")
    maya.run("compensate", ref, "tab-1", preview_id=first, reason=REASON)
    flows.drive_until_still(rejected_notice.ref)

    late = maya.run("compensate", ref, "tab-2", preview_id=second, reason=REASON)

    assert late.status is Answer.CONFLICT
    changed = {c.what: (c.saw, c.now) for c in late.changed if c.kind == "step"}
    assert changed["create_shipment"] == ("confirmed", "compensated, compensation confirmed")


@pytest.mark.parametrize(
    ("verb", "arguments", "field"),
    [
        ("retry", {"step": "send_notice", "reason": "because"}, "reason"),
        ("retry", {"step": "", "reason": REASON}, "step"),
        ("retry", {"step": "no_such_step", "reason": REASON}, "step"),
        ("compensate", {"reason": REASON, "steps": ["no_such_step"]}, "steps"),
        ("mark_acceptable", {"reason": REASON, "end_state": "no_such_state"}, "end_state"),
        ("comment", {"text": " "}, "text"),
        ("escalate", {"reason": REASON, "to": "the boss"}, "to"),
    ],
)
def test_a_mistake_in_the_form_names_its_field_and_leaves_an_entry(
    rejected_notice: RunFacts, verb: str, arguments: dict[str, Any], field: str
) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    step = arguments.get("step", "") if arguments.get("step") == "send_notice" else ""
    preview = (
        ""
        if verb == "comment"
        else maya.preview(ref, verb, step or ("send_notice" if verb == "retry" else ""))
    )
    before = state_of(rejected_notice)

    result = maya.run(verb, ref, "form-1", preview_id=preview, **arguments)

    assert (result.status, result.http_status) == (Answer.INVALID, 422)
    assert set(result.field_errors) == {field}
    assert state_of(rejected_notice) == before
    assert flows.names(rejected_notice.ref)[-1] == "command.refused"
    assert not Receipt.objects.exists()


@pytest.mark.parametrize("username", ["oskar", "ada"])
def test_those_who_may_not_are_refused_with_an_entry(rejected_notice: RunFacts, username: str) -> None:
    before = state_of(rejected_notice)

    result = Desk(username).run("claim", ref_of(rejected_notice), "try-1")

    assert (result.status, result.http_status) == (Answer.FORBIDDEN, 403)
    assert state_of(rejected_notice) == before
    last = api.entries(rejected_notice.ref)[-1]
    assert (last.name, last.actor_id, last.after["code"]) == ("command.refused", username, "role")


def test_a_role_lost_while_the_page_was_open_counts_at_once(rejected_notice: RunFacts) -> None:
    from workbench.commands import people
    from workbench.labs import cast
    from workbench.roles import Role

    maya, ref = Desk("maya"), ref_of(rejected_notice)
    preview = maya.preview(ref, "compensate")
    people.take_role(actor=cast.SYSTEM, person=maya.person, role=Role.OPERATOR, reason="She changes teams")

    result = maya.run("compensate", ref, "late-1", preview_id=preview, reason=REASON)

    assert result.status is Answer.FORBIDDEN


@pytest.mark.requirement("S1-16")
def test_a_write_without_its_preview_is_refused(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    other = maya.preview(ref, "escalate")

    missing = maya.run("compensate", ref, "p-1", preview_id="", reason=REASON)
    of_other = maya.run("compensate", ref, "p-2", preview_id=other, reason=REASON)
    of_jonas = Desk("jonas").run(
        "compensate", ref, "p-3", preview_id=maya.preview(ref, "compensate"), reason=REASON
    )

    assert (missing.code, missing.http_status) == ("preview_needed", 422)
    assert (of_other.code, of_other.http_status) == ("preview_of_other", 422)
    assert (of_jonas.code, of_jonas.http_status) == ("preview_expired", 410)


def test_an_expired_preview_is_gone(rejected_notice: RunFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_previews, "LIFE", timedelta(microseconds=1))
    maya, ref = Desk("maya"), ref_of(rejected_notice)

    result = maya.run("compensate", ref, "old-1", reason=REASON)

    assert (result.status, result.http_status) == (Answer.EXPIRED, 410)


def test_a_broken_receipt_takes_the_whole_command_with_it(
    rejected_notice: RunFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no room on the disk")

    before = (state_of(rejected_notice), flows.names(rejected_notice.ref))
    monkeypatch.setattr(_receipts, "keep", broken)

    with pytest.raises(RuntimeError, match="no room"):
        Desk("maya").run("compensate", ref_of(rejected_notice), "boom-1", reason=REASON)

    assert (state_of(rejected_notice), flows.names(rejected_notice.ref)) == before
    assert not Receipt.objects.exists()


@pytest.mark.requirement("S4-20")
@pytest.mark.parametrize("verb", ["retry", "compensate", "mark_acceptable", "escalate", "claim", "comment"])
def test_a_broken_entry_takes_the_whole_command_with_it(
    rejected_notice: RunFacts, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the trail cannot be written")

    maya, ref = Desk("maya"), ref_of(rejected_notice)
    arguments = {
        "retry": {"step": "send_notice", "reason": REASON},
        "compensate": {"reason": REASON},
        "mark_acceptable": {"end_state": "notice_to_be_confirmed", "reason": REASON},
        "escalate": {"reason": REASON},
        "claim": {},
        "comment": {"text": "A remark."},
    }[verb]
    needs = verb not in ("claim", "comment")
    preview = maya.preview(ref, verb, str(arguments.get("step", ""))) if needs else ""
    before = state_of(rejected_notice)
    monkeypatch.setattr("sagas.entries.statements", broken)

    with pytest.raises(RuntimeError, match="trail"):
        maya.run(verb, ref, "boom-1", preview_id=preview, **arguments)

    assert state_of(rejected_notice) == before
    assert not Receipt.objects.exists()


def test_the_first_action_claims_the_case_and_a_remark_does_not(rejected_notice: RunFacts) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    maya.run("comment", ref, "c-1", text="Only looking.")
    after_remark = api.handoff_facts(ref).handoff
    maya.run("mark_acceptable", ref, "c-2", end_state="all_confirmed", reason=REASON)
    after_refusal = api.handoff_facts(ref).handoff
    maya.run("claim", ref, "c-3")
    after_claim = api.handoff_facts(ref).handoff

    assert after_remark is not None
    assert after_refusal is not None
    assert after_claim is not None
    assert (after_remark.claimed_by, after_refusal.claimed_by, after_claim.claimed_by) == ("", "", "maya")


@pytest.mark.requirement("S3-8")
def test_a_query_claims_is_queued_and_settles_the_case(
    unknown_notice: RunFacts, workplace: Simulator
) -> None:
    ref = ref_of(unknown_notice)
    workplace.plan({"tool": "query_notice", "mode": "ok"})

    result = Desk("maya").run("query_status", ref, "q-1", step="send_notice")

    assert (result.status, result.http_status, result.scheduled) == (Answer.ACCEPTED, 202, True)
    assert "queued" in str(result.sentence)
    assert result.facts is not None
    assert result.facts.handoff is not None
    assert result.facts.handoff.claimed_by == "maya"
    facts = flows.drive_until_still(unknown_notice.ref)
    assert facts.action("send_notice").state is ActionState.CONFIRMED


@pytest.mark.requirement("S0-23", "S0-25")
def test_accepting_starts_nothing_and_compensates_nothing(
    unknown_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(unknown_notice)
    before = [record for record in workplace.ledger() if record["kind"] == "effect"]

    result = maya.run("mark_acceptable", ref, "a-1", end_state="notice_to_be_confirmed", reason=REASON)
    assert result.status is Answer.ACCEPTED, result
    # What cannot be taken back and is not known takes a second person.
    assert api.run_facts(unknown_notice.ref).state is RunState.HANDOFF
    second = Desk("lin").run("confirm_verdict", ref, "a-2", reason=REASON)

    assert second.status is Answer.ACCEPTED, second
    facts = api.run_facts(unknown_notice.ref)
    assert facts.state is RunState.CLOSED_ACCEPTED
    assert [record for record in workplace.ledger() if record["kind"] == "effect"] == before


@pytest.mark.requirement("S0-25")
def test_an_end_state_that_does_not_hold_is_not_accepted(
    unknown_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(unknown_notice)
    before = state_of(unknown_notice)

    unmet = maya.run("mark_acceptable", ref, "a-1", end_state="all_confirmed", reason=REASON)
    workplace.plan({"tool": "get_shipment", "mode": "query_down"})
    unread = maya.run("mark_acceptable", ref, "a-2", end_state="notice_to_be_confirmed", reason=REASON)

    assert (unmet.status, unmet.code) == (Answer.CONFLICT, "end_state_unmet")
    assert (unread.status, unread.code) == (Answer.CONFLICT, "end_state_unread")
    assert "shipment" in str(unread.sentence)
    assert state_of(unknown_notice) == before


@pytest.mark.requirement("S3-8")
def test_a_reference_that_a_read_disproves_is_refused_and_the_right_one_is_taken(
    unknown_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(unknown_notice)
    workplace.plan({"tool": "query_notice", "mode": "ok"})
    (notice,) = [r for r in workplace.ledger(tool="send_notice") if r["kind"] == "effect"]
    right = str(notice["detail"].get("id") or notice["detail"].get("message_id"))

    wrong = maya.run("resolve_happened", ref, "r-1", step="send_notice", reference="M-0000", reason=REASON)
    good = maya.run("resolve_happened", ref, "r-2", step="send_notice", reference=right, reason=REASON)

    assert (wrong.status, wrong.code, set(wrong.field_errors)) == (Answer.INVALID, "disproved", {"reference"})
    assert good.status is Answer.ACCEPTED, good
    assert api.run_facts(unknown_notice.ref).action("send_notice").provider_ref == right


@pytest.mark.parametrize(
    ("verb", "ref", "command_id", "code"),
    [
        ("claim", "HF-9", "n-1", "no_such_case"),
        ("claim", "HF-\x00", "n-1", "no_such_case"),
        ("claim", "H" * 5000, "n-1", "no_such_case"),
        ("reset", "HF-9", "n-1", "no_such_verb"),
    ],
)
def test_what_does_not_exist_is_answered_and_logged(
    workplace: Simulator, verb: str, ref: str, command_id: str, code: str
) -> None:
    result = Desk("maya").run(verb, ref, command_id, preview_id="")

    assert (result.status, result.http_status, result.code) == (Answer.NOT_FOUND, 404, code)
    (logged,) = logged_refusals()
    assert (logged["actor_id"], logged["after"]["code"]) == ("maya", code)


@pytest.mark.parametrize(
    ("command_id", "saw"), [("", 1), ("x" * 101, 1), ("a b", 1), ("\x00", 1), ("ok", 2**70)]
)
def test_ids_and_versions_that_cannot_be_are_refused_and_stored_nowhere(
    rejected_notice: RunFacts, command_id: str, saw: int
) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    preview = maya.preview(ref, "escalate")

    result = maya.run("escalate", ref, command_id, preview_id=preview, saw_version=saw, reason=REASON)
    odd_preview = maya.run("escalate", ref, "p-1", preview_id="pv_\x00", reason=REASON)

    assert result.status in (Answer.INVALID, Answer.CONFLICT)
    assert odd_preview.status is Answer.EXPIRED
    assert not Receipt.objects.exists()


def logged_refusals() -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT actor_id, after FROM sagas_entry WHERE name = 'command.refused' AND run_id IS NULL"
        )
        return [{"actor_id": who, "after": json.loads(after)} for who, after in cursor.fetchall()]


REPAIRED = "It is repaired, I saw it"


@pytest.mark.requirement("S4-1")
def test_one_freezes_and_two_leads_or_admins_lift(rejected_notice: RunFacts) -> None:
    maya, ada, lin, ref = Desk("maya"), Desk("ada"), Desk("lin"), ref_of(rejected_notice)

    frozen = maya.run("freeze", "", "f-1", scope="forward", reason="The notify gateway sends twice")
    retry = maya.run("retry", ref, "f-2", preview_id="none", step="send_notice", reason=REASON)
    (freeze,) = api.freezes()
    number = str(freeze.id)
    no_lead = maya.run("unfreeze", "", "f-3", freeze=number, reason=REPAIRED)
    asked = ada.run("unfreeze", "", "f-4", freeze=number, reason=REPAIRED)
    (asked_for,) = api.freezes()
    alone = ada.run("unfreeze", "", "f-5", freeze=number, reason=REPAIRED)
    still = api.freezes()
    lifted = lin.run("unfreeze", "", "f-6", freeze=number, reason="It is repaired, they say")
    again = lin.run("unfreeze", "", "f-7", freeze=number, reason="It is repaired, they say")

    assert frozen.status is Answer.ACCEPTED
    assert (retry.status, retry.http_status) == (Answer.FROZEN, 423)
    assert no_lead.status is Answer.FORBIDDEN
    assert asked.status is Answer.ACCEPTED
    assert (asked_for.lift_asked_by, asked_for.lift_reason) == (ada.actor.id, REPAIRED)
    assert (alone.status, alone.code) == (Answer.FORBIDDEN, "own_word")
    assert still == (asked_for,)
    assert lifted.status is Answer.ACCEPTED
    assert (again.status, again.code) == (Answer.CONFLICT, "not_frozen")
    assert api.freezes() == ()


@pytest.mark.requirement("S4-1")
def test_that_a_freeze_is_to_be_lifted_can_be_taken_back(rejected_notice: RunFacts) -> None:
    maya, ada, lin = Desk("maya"), Desk("ada"), Desk("lin")
    maya.run("freeze", "", "f-1", scope="forward", reason="The notify gateway sends twice")
    number = str(api.freezes()[0].id)
    early = maya.run("keep_frozen", "", "f-2", freeze=number, reason=REPAIRED)
    ada.run("unfreeze", "", "f-3", freeze=number, reason=REPAIRED)

    kept = maya.run("keep_frozen", "", "f-4", freeze=number, reason="It sends twice again")
    first_again = lin.run("unfreeze", "", "f-5", freeze=number, reason=REPAIRED)

    assert (early.status, early.code) == (Answer.CONFLICT, "not_asked")
    assert kept.status is Answer.ACCEPTED
    assert first_again.status is Answer.ACCEPTED
    (freeze,) = api.freezes()  # in force: whoever comes after a withdrawal is the first of two again
    assert freeze.lift_asked_by == lin.actor.id


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("tool:no_such_tool", "no_such_tool"),
        ("workflow:no_such_workflow", "no_such_workflow"),
        ("team:nobody", "nobody"),
        ("everywhere", "tool:NAME"),
    ],
)
def test_a_place_that_is_not_there_is_refused_with_its_field_and_what_to_write(
    rejected_notice: RunFacts, place: str, says: str
) -> None:
    refused = Desk("maya").run("freeze", "", "f-1", scope="forward", applies_to=place, reason=REASON)

    assert (refused.status, refused.code) == (Answer.INVALID, "no_such_place")
    assert set(refused.field_errors) == {"applies_to"}
    assert says in str(refused.sentence)
    assert api.freezes() == ()


@pytest.mark.parametrize("place", ["all", "tool:send_notice", "workflow:orders"])
def test_a_place_that_is_there_is_counted_and_frozen(rejected_notice: RunFacts, place: str) -> None:
    assert api.freeze_reach(place).runs == 1
    frozen = Desk("maya").run("freeze", "", "f-1", scope="forward", applies_to=place, reason=REASON)
    assert frozen.status is Answer.ACCEPTED
    assert [freeze.applies_to for freeze in api.freezes()] == [place]


@pytest.mark.requirement("S4-28")
@pytest.mark.parametrize("table", [Receipt, Preview])
def test_receipts_and_previews_can_neither_be_changed_nor_removed(
    rejected_notice: RunFacts, table: type[Receipt] | type[Preview]
) -> None:
    from django.db import ProgrammingError

    Desk("maya").run("compensate", ref_of(rejected_notice), "kept-1", reason=REASON)

    with pytest.raises(ProgrammingError, match="permission denied"):
        table.objects.update(verb="something_else")
    with pytest.raises(ProgrammingError, match="permission denied"):
        table.objects.all().delete()
