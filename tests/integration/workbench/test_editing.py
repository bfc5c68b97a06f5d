"""Other arguments for what was refused: seen before they are sent, a new call with a key of its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from sagas.models import Attempt
from sagas.states import ActionState, RunState
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of
from tests.integration.workbench.flows import REASON, Desk
from workbench.commands import make_preview
from workbench.errors import Answer, Refused

STEP = "send_notice"


def args_of(facts: RunFacts) -> dict[str, Any]:
    args = facts.action(STEP).args
    assert isinstance(args, dict)
    return args


def edited(desk: Desk, ref: str, args: Any, command_id: str) -> Any:
    preview = make_preview(
        actor=desk.actor,
        person=desk.person,
        facts=api.handoff_facts(ref),
        verb="edit_and_retry",
        step=STEP,
        arguments={"args": args},
    )
    return desk.run(
        "edit_and_retry", ref, command_id, preview_id=preview.id, step=STEP, args=args, reason=REASON
    )


@pytest.mark.requirement("S3-10", "S1-16")
def test_the_call_that_was_shown_goes_out_under_a_new_key(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    new = {**args_of(rejected_notice), "text": "It is on its way."}
    facts = api.handoff_facts(ref)
    shown = make_preview(
        actor=maya.actor,
        person=maya.person,
        facts=facts,
        verb="edit_and_retry",
        step=STEP,
        arguments={"args": new},
    )
    workplace.plan({"tool": STEP, "mode": "ok"})

    other = maya.run(
        "edit_and_retry",
        ref,
        "e-1",
        preview_id=shown.id,
        step=STEP,
        args={**new, "text": "No."},
        reason=REASON,
    )
    done = maya.run("edit_and_retry", ref, "e-2", preview_id=shown.id, step=STEP, args=new, reason=REASON)
    before = len(workplace.ledger())
    facts = flows.drive_until_still(rejected_notice.ref)

    assert (other.status, other.code) == (Answer.INVALID, "preview_of_other")
    assert done.accepted, done
    assert (shown.args_before, shown.args_after) == (args_of(rejected_notice), new)
    ran = [(r["tool"], r["key"]) for r in workplace.ledger()[before:] if r["kind"] == "effect"]
    assert ran == [(STEP, shown.calls[0].key)]
    assert "It is on its way." in str(shown.calls[0].body)
    old, successor = [action for action in facts.actions if action.step == STEP]
    assert (old.state, successor.state) == (ActionState.SUPERSEDED, ActionState.CONFIRMED)
    assert old.key != successor.key
    assert facts.state is RunState.COMPLETED
    (told,) = [entry for entry in api.entries(facts.ref) if entry.name == "command.edit_and_retry"]
    assert (told.before["args"], told.after["args"]) == (args_of(rejected_notice), new)
    assert (told.actor_name, told.reason) == (maya.actor.name, REASON)


@pytest.mark.requirement("S3-10")
def test_a_second_edit_after_a_second_refusal_is_a_third_call(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    maya = Desk("maya")
    first = edited(maya, ref_of(rejected_notice), {**args_of(rejected_notice), "text": "1"}, "e-1")
    facts = flows.drive_until_still(rejected_notice.ref)
    assert [one.ref for one in facts.handoffs] == [ref_of(rejected_notice)], (
        "one case, whatever number of tries"
    )
    workplace.plan({"tool": STEP, "mode": "ok"})
    second = edited(maya, ref_of(facts), {**args_of(facts), "text": "12345"}, "e-2")
    facts = flows.drive_until_still(rejected_notice.ref)

    assert first.accepted
    assert second.accepted
    assert "queued" in str(second.sentence)
    assert [action.state.value for action in facts.actions if action.step == STEP] == [
        "superseded",
        "superseded",
        "confirmed",
    ]
    assert len({action.key for action in facts.actions}) == len(facts.actions)


@pytest.mark.requirement("S3-10")
def test_attempts_are_numbered_once_however_often_a_person_orders_them(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    maya = Desk("maya")
    for turn in range(2):
        facts = api.run_facts(rejected_notice.ref)
        assert maya.run("retry", ref_of(facts), f"r-{turn}", step=STEP, reason=REASON).accepted
        flows.drive_until_still(rejected_notice.ref)

    rows = Attempt.objects.filter(run__ref=rejected_notice.ref, action__step=STEP).order_by("id")
    numbers = list(rows.values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 3


def test_what_does_not_fit_names_its_field_and_sends_nothing(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    maya, ref = Desk("maya"), ref_of(rejected_notice)
    before = len(workplace.ledger())

    with pytest.raises(Refused) as refused:
        edited(maya, ref, {**args_of(rejected_notice), "text": 7}, "e-1")
    same = edited(maya, ref, args_of(rejected_notice), "e-2")

    assert refused.value.refusal.answer is Answer.INVALID
    assert set(refused.value.refusal.fields) == {"args/text"}
    assert (same.status, same.code) == (Answer.CONFLICT, "args_unchanged")
    assert len(workplace.ledger()) == before


@pytest.mark.requirement("S3-10")
def test_over_rest_the_preview_takes_the_arguments_and_the_command_the_same_ones(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    ref = ref_of(rejected_notice)
    client = Client()
    client.force_login(flows.person("maya"))
    new = {**args_of(rejected_notice), "text": "It is on its way."}
    ask = {"verb": "edit_and_retry", "step": STEP, "arguments": {"args": {**new, "text": 7}}}

    wrong = client.post(f"/api/v1/handoffs/{ref}/previews", ask, content_type="application/json")
    ask["arguments"] = {"args": new}
    right = client.post(f"/api/v1/handoffs/{ref}/previews", ask, content_type="application/json")
    body = {"preview": right.json()["preview"], "step": STEP, "args": new, "reason": REASON}
    done = client.post(
        f"/api/v1/handoffs/{ref}/commands/edit_and_retry",
        body,
        content_type="application/json",
        headers={"Idempotency-Key": "e-1"},
    )

    assert wrong.status_code == 422
    assert wrong.headers["Content-Type"] == "application/problem+json"
    assert [error["pointer"] for error in wrong.json()["errors"]] == ["/args/text"]
    assert right.json()["args_after"] == new
    assert done.status_code == 202, done.json()


def test_a_page_without_scripts_shows_what_other_arguments_come_to_before_they_are_sent(
    rejected_notice: RunFacts, workplace: Simulator
) -> None:
    ref, url = ref_of(rejected_notice), f"/handoffs/{ref_of(rejected_notice)}/"
    client = Client()
    client.force_login(flows.person("maya"))

    page = client.get(url, {"act": f"edit_and_retry.{STEP}"}).content.decode()
    typed = {"verb": "edit_and_retry", "step": STEP, "args": '{"order": 7', "reason": REASON}
    broken = client.post(f"{url}preview/", typed).content.decode()
    typed["args"] = '{"order": "O-1", "text": "By hand."}'
    shown = client.post(f"{url}preview/", typed).content.decode()

    assert 'name="args"' in page
    assert "This is not JSON" in broken
    assert "By hand." in shown
    assert shown.count("By hand.") >= 2
    assert ".g2" in shown
    assert api.run_facts(rejected_notice.ref).version == rejected_notice.version, ref
