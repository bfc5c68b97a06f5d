"""How the shipped tools are graded: what each class promises is really declared by every contract of that class."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tools.contract import Contract, EffectKind, KeySupport, RecoveryClass
from tools.definition import Definition
from tools.reader import read_contract, read_definition

ROOT = Path(__file__).resolve().parents[3]


@cache
def catalogue() -> tuple[Contract, ...]:
    """Every version of every shipped contract."""
    return tuple(read_contract(path) for path in sorted((ROOT / "tools/catalog").glob("*.toml")))


@cache
def workflows() -> tuple[Definition, ...]:
    """The example definitions."""
    paths = [path for path in sorted((ROOT / "examples").iterdir()) if path.suffix in (".toml", ".json")]
    return tuple(read_definition(path) for path in paths)


def of_class(recovery: RecoveryClass) -> list[Contract]:
    found = [contract for contract in catalogue() if contract.recovery_class is recovery]
    assert found
    return found


def versions(tool: str) -> list[Contract]:
    return [contract for contract in catalogue() if contract.tool == tool]


def can_be_told(contract: Contract) -> bool:
    """Whether a repeat is harmless, or the tool can be asked what became of the call."""
    return contract.idempotency.support is KeySupport.HONOURED or contract.status_query is not None


@pytest.mark.requirement("S0-13", "S1-1")
def test_the_catalogue_holds_every_kind_of_effect_and_every_class() -> None:
    assert {contract.effect_kind for contract in catalogue()} == {*EffectKind}
    assert {contract.recovery_class for contract in catalogue()} == {*RecoveryClass}
    reads = [contract for contract in catalogue() if contract.effect_kind is EffectKind.READ_ONLY]
    assert [read.tool for read in reads if read.compensation or read.recovery_class != "retryable"] == []


@pytest.mark.requirement("S0-14", "S0-52")
def test_a_retryable_write_is_known_by_its_key_or_can_be_asked_for() -> None:
    writes = [contract for contract in of_class(RecoveryClass.RETRYABLE) if contract.has_effect]

    assert writes
    assert [contract.tool for contract in writes if not can_be_told(contract)] == []


@pytest.mark.requirement("S0-15", "S0-53")
def test_a_compensable_write_names_what_makes_up_for_it() -> None:
    compensable = of_class(RecoveryClass.COMPENSABLE)

    assert [
        one.tool for one in compensable if one.compensation is None or not versions(one.compensation.tool)
    ] == []


@pytest.mark.requirement("S0-29")
def test_a_compensation_is_no_excuse_for_a_write_that_nobody_can_tell_apart_from_its_repeat() -> None:
    assert [
        contract.tool for contract in of_class(RecoveryClass.COMPENSABLE) if not can_be_told(contract)
    ] == []


@pytest.mark.requirement("S0-74", "S0-38")
def test_every_compensation_looks_before_and_reads_back_after() -> None:
    blind = [
        contract.tool
        for contract in catalogue()
        if (made_up := contract.compensation) is not None
        and not (
            (made_up.preconditions or made_up.already_done)
            and (made_up.verify or any(tool.status_query for tool in versions(made_up.tool)))
        )
    ]

    assert blind == []


@pytest.mark.requirement("S0-75")
def test_no_compensation_can_take_effect_twice() -> None:
    doubled = [
        contract.tool
        for contract in catalogue()
        if (made_up := contract.compensation) is not None
        and made_up.already_done is None
        and any(tool.idempotency.support is not KeySupport.HONOURED for tool in versions(made_up.tool))
    ]

    assert doubled == []


@pytest.mark.requirement("S0-76", "S0-82")
def test_every_irreversible_tool_says_when_with_what_and_to_whom_it_goes() -> None:
    irreversible = of_class(RecoveryClass.IRREVERSIBLE)
    silent = [
        one.tool
        for one in irreversible
        if not all((one.escalation.when, one.escalation.context, one.escalation.to))
    ]

    assert silent == []


@pytest.mark.requirement("S0-20")
def test_every_workflow_says_how_it_recovers_until_when_and_what_it_can_end_in() -> None:
    assert workflows()
    for workflow in workflows():
        assert workflow.recovery_deadline_s > 0
        assert workflow.deadlines.get("default", 60) > 0
        assert workflow.end_states, workflow.name
    writes = [contract for contract in catalogue() if contract.has_effect]
    assert [contract.tool for contract in writes if not contract.retry] == []


@pytest.mark.requirement("S1-14")
def test_what_can_be_taken_back_what_can_be_offset_and_what_only_a_person_can_mend_are_told_apart() -> None:
    def of(tool: str) -> tuple[str, str] | None:
        made_up = versions(tool)[0].compensation
        return None if made_up is None else (made_up.tool, made_up.kind)

    assert of("queue_message") == ("drop_message", "restores")  # a draft is dropped as if it had never been
    assert of("send_mail") is None  # what was read cannot be unread
    assert versions("send_mail")[0].escalation.to
    assert of("push_config") == ("restore_config", "restores")
    assert versions("push_config")[0].compensation is not None
    assert versions("push_config")[0].escalation.to, "a device that does not obey is looked at on site"
    assert of("place_order") == ("call_off_order", "restores")
    assert of("charge_card") == ("refund_payment", "offsets")  # the charge stays in the books


@pytest.mark.requirement("S1-12", "S1-10")
def test_a_device_keeps_what_it_ran_before_and_money_moves_back_only_with_a_signature() -> None:
    (push,) = versions("push_config")
    assert push.prior_state is not None
    assert push.prior_state.if_match
    for tool in ("charge_card", "debit_fee"):
        newest = max(versions(tool), key=lambda contract: contract.version)
        assert newest.compensation is not None
        assert newest.compensation.who == "approval", tool


@pytest.mark.requirement("S4-14")
def test_a_write_over_what_is_there_reads_it_first_and_refuses_to_overwrite_anybody_elses() -> None:
    over = [c for c in catalogue() if c.compensation is not None and c.compensation.tool == c.tool]

    assert {contract.tool for contract in over} >= {"update_account", "change_ticket"}
    assert [c.tool for c in over if c.prior_state is None or not c.prior_state.if_match] == []


@pytest.mark.requirement("S4-15", "S2-9")
def test_what_cannot_be_taken_back_is_drafted_first_and_sent_when_all_else_is_done() -> None:
    (flow,) = [workflow for workflow in workflows() if workflow.name == "bank_opening_outbox"]
    steps = {step.tool: step for step in flow.steps}

    assert versions("queue_message")[0].recovery_class is RecoveryClass.COMPENSABLE
    assert versions("send_sms")[0].recovery_class is RecoveryClass.IRREVERSIBLE
    assert not steps["queue_message"].held
    assert steps["send_sms"].held
