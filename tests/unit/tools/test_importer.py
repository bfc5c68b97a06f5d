"""The importer: thirteen chains that others wrote down become definitions, and what the lint says to each."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tools import importer, lint
from tools.contract import Contract, ErrorClass, KeySupport, RecoveryClass, Who
from tools.definition import Definition, OnFailure
from tools.importer.chain import chain_of
from tools.problems import FileProblems
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition

SOURCES = Path(__file__).parents[3] / "examples" / "sources"
PATHS = {path.stem: path for path in sorted(SOURCES.glob("*.json"))}

# W201 to W205 and all errors are about the chain itself. Of a contract that was only imported the source says
# neither how a compensation is read back (W209) nor, mostly, enough for automatic use (W206).
FOUND: dict[str, dict[str, set[str]]] = {
    "aws-long-lived-order": {
        "": {"W204"},
        "process_order": {"W206", "W209"},
        "process_payment": {"W205", "W209"},
        "reserve_inventory": {"W206", "W209"},
        "notify_success": {"W104", "W205", "W206"},
    },
    "bookTrip-conformance": {
        "": {"W204"},
        "reserve_flight": {"W206", "W209"},
        "reserve_hotel": {"W206", "W209"},
        "charge_card": {"W205", "W209"},
        "send_confirmation": {"W205"},
    },
    "camunda-trip": {
        "reserve_car": {"W206", "W209"},
        "book_hotel": {"W206", "W209"},
        "book_flight": {"W206", "W209"},
    },
    "conductor-checkout": {
        "reserve_inventory": {"W206", "W209"},
        "charge_payment": {"W205", "W209"},
        "book_shipment": {"W205", "W209"},
    },
    "ftgo-create-order": {
        "create_order_pending": {"W206", "W209"},
        "create_ticket": {"W206", "W209"},
        "authorize_card": {"W202", "W205"},
        "approve_order": {"W202"},
        "approve_ticket": {"W202"},
    },
    "realm-wedding-and-allocation": {
        "book_venue": {"W206", "W209"},
        "book_caterer": {"W206", "W209"},
        "book_band": {"W206", "W209"},
    },
    "seata-inventory-balance": {
        "reduce_inventory": {"W206", "W209"},
        "reduce_balance": {"W205", "W209"},
    },
    "seed-000-ticket-crm-notify": {
        "": {"W204"},
        "open_ticket": {"W209"},
        "update_crm": {"W206", "W209"},
        "notify_customer": {"W205"},
    },
    "seed-002-bank-account-opening": {
        "create_customer": {"W206", "W209"},
        "file_customer": {"W206", "W209"},
        "grant_credit_line": {"W205", "W209"},
        "send_opening_sms": {"W201", "W205"},
        "charge_card_fee": {"W205", "W209"},
    },
    "seed-002-bank-account-opening-outbox": {
        "create_customer": {"W206", "W209"},
        "file_customer": {"W206", "W209"},
        "grant_credit_line": {"W205", "W209"},
        "charge_card_fee": {"W205", "W209"},
        "store_message": {"W206", "W209"},
        "send_opening_sms": {"W205"},
    },
    "seed-003-order-fulfilment": {
        "": {"W204"},
        "reserve_stock": {"W206", "W209"},
        "create_shipment": {"W205", "W209"},
        "send_notice": {"W205"},
    },
    "seed-004-travel": {
        "book_flight": {"W206", "W209"},
        "charge_card": {"W205", "W209"},
        "book_hotel": {"W206", "W209"},
    },
    "temporal-transfer": {
        "withdraw": {"W205", "W209"},
        "deposit": {"W205", "W209"},
        "third_step": {"W206", "W209"},
    },
}


def source(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(PATHS[name].read_text("utf-8"))
    return copy.deepcopy(document)


def read(document: dict[str, Any]) -> tuple[Definition, dict[str, Contract]]:
    imported = importer.import_chain(chain_of(document))
    contracts = [contract_from_document(one) for one in imported.contracts]
    return definition_from_document(imported.definition), {one.tool: one for one in contracts}


def codes(document: dict[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in lint.check(*read(document)):
        found.setdefault(finding.step, set()).add(finding.code)
    return found


def errors(document: dict[str, Any]) -> dict[str, set[str]]:
    only = {
        step: {code for code in said if lint.CODES[code].severity is lint.Severity.ERROR}
        for step, said in codes(document).items()
    }
    return {step: said for step, said in only.items() if said}


def test_there_are_thirteen() -> None:
    assert PATHS.keys() == FOUND.keys()
    assert len(PATHS) == 13


@pytest.mark.requirement("S2-13", "S2-17", "S4-23", "S1-24")
@pytest.mark.parametrize("name", FOUND)
def test_every_finding_on_an_imported_chain_is_known(name: str) -> None:
    assert codes(source(name)) == FOUND[name]


@pytest.mark.parametrize("name", ["realm-wedding-and-allocation", "seata-inventory-balance"])
def test_alike_steps_that_share_a_compensation_are_no_error(name: str) -> None:
    assert errors(source(name)) == {}


@pytest.mark.requirement("S2-13", "S2-18")
@pytest.mark.parametrize("name", FOUND)
def test_positions_are_judged_as_the_source_judges_them(name: str) -> None:
    document = source(name)
    definition, contracts = read(document)
    said = [(finding.code, finding.step) for finding in lint.check(definition, contracts)]

    checked = document["position_check"]
    irreversible = [
        step.id
        for step in definition.steps
        if contracts[step.tool].recovery_class is RecoveryClass.IRREVERSIBLE
    ]
    assert irreversible == checked["irreversible_steps"]
    assert [step for code, step in said if code == "W201"] == checked["followed_by_a_write"]
    assert [step for code, step in said if code == "W101"] == checked["outside_last_third"]


@pytest.mark.parametrize("same_arguments", [True, False])
def test_three_compensations_that_all_call_off_the_car_are_caught(same_arguments: bool) -> None:
    """The stored sample behind this chain: a wrong pairing that runs green."""
    document = source("camunda-trip")
    car = document["steps"][0]["compensation"]
    for step in document["steps"]:
        step["compensation"] = car if same_arguments else {**step["compensation"], "tool": car["tool"]}

    found = codes(document)

    assert {step for step, said in found.items() if "W203" in said} == {
        "reserve_car",
        "book_hotel",
        "book_flight",
    }
    assert [one for one in read(document)[1] if one.endswith("cancel_car")] == ["cancel_car"]


@pytest.mark.requirement("S0-33", "S0-72")
@pytest.mark.parametrize("name", FOUND)
def test_one_rule_for_everything_becomes_a_rule_for_each_class_of_failure(name: str) -> None:
    document = source(name)
    wanted = {step["step"]: step["retry"] for step in document["steps"]}
    definition, contracts = read(document)

    for step in definition.steps:
        retry = contracts[step.tool].retry
        assert retry[ErrorClass.TEMPORARY].max_attempts == wanted[step.id]["max_attempts"]
        assert retry[ErrorClass.TEMPORARY].first_delay_s == wanted[step.id]["first_delay_s"]
        assert len({repr(rule) for rule in retry.values()}) == len(retry) >= 3
    for contract in contracts.values():
        refusals = {ErrorClass.REFUSED, ErrorClass.VALIDATION, ErrorClass.PERMISSION, ErrorClass.CONFLICT}
        assert not contract.retry.keys() & refusals


def test_where_a_repeat_may_take_effect_twice_silence_is_not_followed_by_one() -> None:
    document = source("temporal-transfer")
    document["failure_cases"] = []

    contract = read(document)[1]["always_fails"]

    assert contract.idempotency.support is KeySupport.NONE
    assert not contract.retry.keys() & {ErrorClass.NO_ANSWER, ErrorClass.SERVER, ErrorClass.GARBAGE}


@pytest.mark.requirement("S2-5")
def test_without_a_word_on_repeats_every_compensation_is_taken_to_work_twice() -> None:
    document = source("seata-inventory-balance")
    document["failure_cases"] = []

    assert errors(document) == {"reduce_inventory": {"W103"}, "reduce_balance": {"W103"}}


def test_a_prior_state_that_nothing_reads_leaves_a_compensation_unbindable() -> None:
    document = source("seed-000-ticket-crm-notify")
    document["steps"][1]["status_query"] = None

    assert errors(document) == {"update_crm": {"W105"}}


@pytest.mark.requirement("S0-32", "S4-23")
def test_behind_the_point_of_no_return_a_failure_goes_to_a_person() -> None:
    document = source("ftgo-create-order")
    behind = {step.id: step.on_rejected for step in read(document)[0].steps}
    assert behind == {
        **dict.fromkeys(("create_order_pending", "verify_consumer", "create_ticket", "authorize_card")),
        **dict.fromkeys(("approve_order", "approve_ticket"), OnFailure.HANDOFF),
    }

    document["point_of_no_return"] = None

    assert errors(document) == {"authorize_card": {"W102"}, "approve_order": {"W102"}}


@pytest.mark.requirement("S0-34", "S0-35")
@pytest.mark.parametrize("name", FOUND)
def test_steps_classes_compensations_and_signatures_are_those_of_the_source(name: str) -> None:
    document = source(name)
    definition, contracts = read(document)

    for step, origin in zip(definition.steps, document["steps"], strict=True):
        contract = contracts[step.tool]
        assert step.id == origin["step"]
        assert contract.system == origin["system"]
        assert contract.limits.total_s == origin["timeout_s"]
        assert contract.has_effect == (origin["action_class"] != "read")
        assert (contract.compensation is None) == (origin["compensation"] is None)
        assert (contract.status_query is None) == (origin["status_query"] is None)
        if contract.compensation is not None:
            assert contract.compensation.tool.endswith(origin["compensation"]["tool"])
            assert contract.compensation.args.keys() == origin["compensation"]["args"].keys()
            signed = contract.compensation.who is Who.APPROVAL
            assert signed == origin["compensation_needs_approval"]


def test_a_value_made_by_an_earlier_step_is_taken_from_its_result() -> None:
    definition, contracts = read(source("seed-002-bank-account-opening"))

    assert definition.steps[1].args == {
        "customer_no": {"from": "steps.create_customer.result", "pointer": "/customer_no"}
    }
    assert definition.steps[2].args["amount"] == {"from": "input", "pointer": "/limit"}
    assert definition.steps[3].args["template"] == "account opened"
    compensation = contracts["create_file"].compensation
    assert compensation is not None
    assert compensation.args == {"file_id": {"from": "result", "pointer": "/file_id"}}


def test_a_compensation_back_to_before_reads_the_state_before() -> None:
    update = read(source("seed-000-ticket-crm-notify"))[1]["update_account"]

    assert update.prior_state is not None
    assert update.prior_state.tool == "get_account"
    assert update.compensation is not None
    assert update.compensation.args == {
        "account": {"from": "args", "pointer": "/account"},
        "fields": {"from": "prior", "pointer": "/fields"},
        "if_version": {"from": "result", "pointer": "/version"},
    }
    assert update.args_schema["required"] == ["account", "fields"]
    assert update.idempotency.natural


def test_a_query_that_does_not_know_our_key_proves_nothing_by_silence() -> None:
    _, contracts = read(source("ftgo-create-order"))
    approve = contracts["approve_order"].status_query
    assert approve is not None
    assert not approve.authoritative
    assert (approve.found.pointer, approve.found.value) == ("/applied", True)

    _, contracts = read(source("camunda-trip"))
    book = contracts["book_hotel"].status_query
    assert book is not None
    assert book.authoritative
    assert book.args == {"key": {"from": "key"}}


def test_what_was_assumed_is_told() -> None:
    notes = importer.import_chain(importer.read_chain(PATHS["temporal-transfer"])).notes
    told = "\n".join(notes)

    assert "withdraw: the argument `from` is written `from_`" in told
    assert "withdraw: `entry found` is in words only" in told
    left_out = importer.import_chain(importer.read_chain(PATHS["seed-003-order-fulfilment"])).notes
    assert "is left out" in left_out[-1]


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('"retry": {', '"retrys": {', "steps[0].retrys", "Did you mean `retry`?"),
        ('"action_class": "compensable"', '"action_class": "sometimes"', "steps[0].action_class", "not allowed"),
        ('"step": "book_hotel"', '"step": "reserve_car"', "steps[1].step", "there are two steps"),
        ('"max_attempts": 3', '"max_attempts": 0', "steps[0].retry.max_attempts", "out of range"),
        ('"point_of_no_return": null', '"point_of_no_return": "none"', "point_of_no_return", "there is no step"),
        ('"tool": "book_hotel"', '"tool": "reserve_car"', None, None),
        ('"system": "hotel",\n   "tool": "book_hotel"', '"system": "car",\n   "tool": "reserve_car"',
         "steps[1].tool", "used in another way"),
        ('"steps": [', '"steps" [', "", "Correct the JSON."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_chain_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, where: str | None, message: str | None
) -> None:
    text = PATHS["camunda-trip"].read_text("utf-8")
    assert old in text
    broken = tmp_path / "chain.json"
    broken.write_text(text.replace(old, new, 1), "utf-8")
    if where is None:
        importer.read_chain(broken)
        return

    with pytest.raises(FileProblems) as told:
        importer.read_chain(broken)

    problem = told.value.problems[0]
    at = text[: text.index(old)].count("\n") + 1 + old.count("\n")
    assert problem.where == where
    assert str(message) in f"{problem.message} {problem.remedy}"
    assert problem.line == at


@pytest.mark.parametrize("name", FOUND)
def test_what_is_written_can_be_read_again(tmp_path: Path, name: str) -> None:
    imported = importer.import_chain(importer.read_chain(PATHS[name]))

    files = list(importer.write(imported, tmp_path))

    folder = tmp_path / imported.name
    contracts = {one.tool: one for one in map(read_contract, sorted((folder / "contracts").iterdir()))}
    definition = read_definition(folder / "workflow.json")
    assert {path for path in folder.rglob("*") if path.is_file()} == set(files)
    assert definition.document == imported.definition
    assert {finding.code for finding in lint.check(definition, contracts)} == set().union(
        *FOUND[name].values()
    )
