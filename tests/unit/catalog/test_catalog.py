"""The shipped contracts tell the truth about the simulated world: call, query, compensation, keys."""

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.simulator.conftest import Commanded, Outside
from tests.unit.simulator.test_callbacks import Receiver, receiver
from tests.unit.simulator.wire import wait_until
from tools import callbacks, lint
from tools.bindings import bind
from tools.conditions import holds
from tools.contract import Condition, Contract, EffectKind, ErrorClass, KeySupport, RecoveryClass
from tools.outcome import Observation, OutcomeKind, QueryAnswer, Verdict, classify, classify_query
from tools.reader import read_contract
from tools.world import World

__all__ = ["receiver"]

CATALOG = Path(__file__).parents[3] / "tools" / "catalog"
FILES = sorted(CATALOG.glob("*.toml"))
VERSIONS = [read_contract(path) for path in FILES]
CONTRACTS = {contract.tool: contract for contract in VERSIONS if contract.version == 1}
NEWEST = {contract.tool: contract for contract in sorted(VERSIONS, key=lambda one: one.version)}
WRITES = {tool: contract for tool, contract in CONTRACTS.items() if contract.has_effect}
COMPENSABLE = sorted(tool for tool, contract in WRITES.items() if contract.compensation is not None)
BACK = {contract.compensation.tool for contract in WRITES.values() if contract.compensation is not None}
FORWARD = sorted(tool for tool in WRITES if tool not in BACK or WRITES[tool].compensation is not None)

GROUNDS = frozenset({"generic", "ground"})
"""Systems of the proving grounds: drills and the matrix of faults bring contracts of their own for them."""


UNCONFIRMED = (
    "W205"  # who may start a workflow is policy here; no contract asks for a person before each call
)
KNOWN = {"label_ticket": {"W206"}}  # put right in its version 2

ARGUMENTS: dict[str, Any] = {
    **{"order": "O-7", "customer": "C-7", "title": "Late", "address": "Dock 4", "sku": "SKU-118", "qty": 2},
    **{"text": "On its way", "to": "someone@example.invalid", "application": "A-7", "name": "R. Example"},
    **{"id_no": "AB123456", "amount": "25.00", "phone": "+49 30 000000", "template": "account opened"},
    **{"label": "notice-by-hand", "account": "C-7", "fields": {"tier": "gold"}, "flag": "refund-open"},
    **{"trip": "TR-7", "flight": "AB-400", "car": "COMPACT", "hotel": "HARBOUR-12", "units": 5},
    **{"device": "sw-fra2-08", "change": "CHG-7", "config": {"vlan": 20}, "subject": "usage/7"},
    **{"batch": "B-7", "items": [{"id": "ART-7"}], "kind": "credit", "message_key": "m-7", "about": "O-7"},
    **{"product": "voice", "delay_ms": 60, "tag": "sync-by-hand", "reason": "refund not on record"},
}


class Caller:
    """Calls tools under their contracts against the real simulator process."""

    def __init__(self, world: World, outside: Outside) -> None:
        self.world, self.outside = world, outside

    def see(self, tool: str, args: Any, key: str = "", **headers: str) -> Observation:
        """One call; items get the call's key as their own."""
        items = CONTRACTS[tool].items
        if items is not None:
            args = {**args, "items": [{**item, "key": key} for item in args["items"]]}
        return self.world.call(CONTRACTS[tool], args=args, key=key, headers=headers)

    def do(self, tool: str, args: Any, key: str, **headers: str) -> Any:
        """A call that is confirmed, at once or when it has been waited for; returns its result, or its item's."""
        outcome = classify(CONTRACTS[tool], self.see(tool, args, key, **headers))
        if outcome.kind is OutcomeKind.ACCEPTED:
            assert wait_until(lambda: self.query(tool, args, key).verdict is Verdict.FOUND)
            return self.query(tool, args, key).result
        assert outcome.kind is OutcomeKind.CONFIRMED, (tool, outcome)
        return outcome.result if CONTRACTS[tool].items is None else outcome.result["results"][0]

    def query(self, tool: str, args: Any, key: str) -> QueryAnswer:
        query = CONTRACTS[tool].status_query
        assert query is not None
        scope = {"args": args, "key": key, "item": args["items"][0] if "items" in args else None}
        seen = self.see(query.tool, bind(query.args, scope))
        return classify_query(query, seen, scope, contract=CONTRACTS[query.tool])

    def holds(self, condition: Condition | None, scope: dict[str, Any]) -> bool:
        assert condition is not None
        assert condition.read is not None
        seen = self.see(condition.read, bind(condition.args, scope))
        assert classify(CONTRACTS[condition.read], seen).kind is OutcomeKind.CONFIRMED
        return holds(condition, seen.body, scope)

    def args_of(self, tool: str) -> Any:
        """Arguments that work, with what they lean on made first."""
        made: dict[str, Any] = dict(ARGUMENTS)
        needed = CONTRACTS[tool].args_schema["required"]
        if "customer_no" in needed:
            made |= self.do("create_customer", self.args_of("create_customer"), "first-1")
        if "ticket_id" in needed:
            made |= self.do("create_ticket", self.args_of("create_ticket"), "first-2")
        if tool == "send_queued":
            made |= self.do("queue_message", self.args_of("queue_message"), "first-3")
        if tool == "void_request":
            made |= self.do("submit_request", self.args_of("submit_request"), "first-4")
            granted = {"kind": "request", "id": made["request"], "state": "granted"}
            self.outside.admin("POST", "/third-party", granted)
        return {name: made[name] for name in (*needed, *(["delay_ms"] if tool == "provision_line" else []))}

    def prior_of(self, tool: str, args: Any) -> tuple[Any, dict[str, str]]:
        """The state before the call, and the header that insists on it."""
        prior = CONTRACTS[tool].prior_state
        if prior is None:
            return None, {}
        body = self.see(prior.tool, bind(prior.args, {"args": args})).body
        return body, {"If-Match": str(body["version"])} if prior.if_match else {}

    def net(self, tool: str) -> int:
        return int(self.outside.admin("GET", "/effects")["effects"].get(tool, {"net": 0})["net"])


@pytest.fixture
def caller(simulator_process: Commanded) -> Iterator[Caller]:
    """The world, new, and contracts to call it under."""
    simulator_process.reset()
    world = World(simulator_process.systems)
    yield Caller(world, Outside(simulator_process))
    world.close()


@pytest.mark.requirement("S0-79", "S0-80", "S0-27")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_contract_reads_and_checks_clean(path: Path) -> None:
    contract = read_contract(path)
    said = {finding.code for finding in lint.check_contract(contract, NEWEST)}
    outside = contract.effect_kind is EffectKind.EXTERNAL_EFFECT
    assert said == ({UNCONFIRMED} if outside else set()) | KNOWN.get(path.stem, set())
    assert path.stem == (contract.tool if contract.version == 1 else f"{contract.tool}.v{contract.version}")


def test_every_operation_of_the_world_has_its_contract_and_keys_are_declared_as_they_are(
    caller: Caller,
) -> None:
    told = caller.outside.admin("GET", "/tools")["tools"]
    served = {row["tool"]: row for row in told if row["system"] not in GROUNDS}
    assert served.keys() == CONTRACTS.keys()
    for tool, row in served.items():
        document = CONTRACTS[tool].document
        assert (row["system"], row["method"]) == (CONTRACTS[tool].system, document["call"]["method"])
        assert row["path"] == f"/{CONTRACTS[tool].system}{document['call']['path']}"
        honoured = CONTRACTS[tool].idempotency.support is KeySupport.HONOURED
        assert honoured == row["honours_key"], tool
        assert (row["direction"] == "query") == (not CONTRACTS[tool].has_effect)


@pytest.mark.requirement("S0-38", "S3-8")
@pytest.mark.parametrize("tool", FORWARD)
def test_a_call_takes_effect_once_and_its_query_finds_it(caller: Caller, tool: str) -> None:
    args = caller.args_of(tool)
    before, key = caller.net(tool), f"run-1/{tool}"
    if CONTRACTS[tool].status_query is not None:
        assert caller.query(tool, args, key).verdict is Verdict.ABSENT
    _, headers = caller.prior_of(tool, args)
    result = caller.do(tool, args, key, **headers)
    found = caller.query(tool, args, key)
    assert found.verdict is Verdict.FOUND
    items = CONTRACTS[tool].items
    reference = items.result_reference if items is not None else CONTRACTS[tool].reference
    assert found.reference == str(bind({"from": "result", "pointer": reference}, {"result": result}))
    assert caller.net(tool) == before + 1
    assert caller.outside.records(kind="effect", tool=tool)[-1]["key"] == key


@pytest.mark.requirement("S2-1", "S0-28")
@pytest.mark.parametrize("tool", [tool for tool in FORWARD if tool not in {"label_ticket"}])
def test_a_repeat_with_the_same_key_does_what_the_contract_says(caller: Caller, tool: str) -> None:
    args = caller.args_of(tool)
    before, key = caller.net(tool), f"run-1/{tool}"
    _, headers = caller.prior_of(tool, args)
    first, repeat = (classify(CONTRACTS[tool], caller.see(tool, args, key, **headers)) for _ in range(2))
    if first.kind is OutcomeKind.ACCEPTED:
        caller.do(tool, args, key)
    idempotency = CONTRACTS[tool].idempotency
    if idempotency.support is KeySupport.HONOURED or idempotency.natural:
        assert (repeat.kind, repeat.error_class) == (first.kind, None)
        assert repeat.result == first.result
        assert caller.net(tool) == before + 1
    else:
        again = repeat.kind is OutcomeKind.CONFIRMED
        assert caller.net(tool) == before + (2 if again else 1)
        assert again or repeat.error_class in {ErrorClass.REFUSED, ErrorClass.CONFLICT}


@pytest.mark.requirement("S0-39", "S2-5", "S2-15", "S0-81")
@pytest.mark.parametrize("tool", COMPENSABLE)
def test_a_compensation_takes_the_effect_back_once_and_reads_say_so(caller: Caller, tool: str) -> None:
    contract = CONTRACTS[tool]
    compensation = contract.compensation
    assert compensation is not None
    args, key = caller.args_of(tool), f"run-1/{tool}"
    before = caller.net(tool)
    prior, headers = caller.prior_of(tool, args)
    result = caller.do(tool, args, key, **headers)
    scope = {"args": args, "result": result, "prior": prior, "key": f"{key}/c", "forward_key": key}
    found = caller.query(tool, args, key)
    bound = bind(compensation.args, scope)
    assert bind(compensation.args, {**scope, "result": found.result}) == bound
    assert all(caller.holds(condition, scope) for condition in compensation.preconditions)
    assert not caller.holds(compensation.already_done, scope)
    assert caller.query(compensation.tool, bound, f"{key}/c").verdict is Verdict.ABSENT
    for _ in range(1 if compensation.tool == tool else 2):
        back = classify(CONTRACTS[compensation.tool], caller.see(compensation.tool, bound, f"{key}/c"))
        assert back.kind is OutcomeKind.CONFIRMED
    assert caller.query(compensation.tool, bound, f"{key}/c").verdict is Verdict.FOUND
    assert caller.holds(compensation.verify, scope)
    assert caller.holds(compensation.already_done, scope)
    assert not all(caller.holds(condition, scope) for condition in compensation.preconditions)
    assert caller.net(tool) == before
    assert caller.outside.balanced()


@pytest.mark.requirement("S0-40", "S1-11")
def test_a_record_that_somebody_else_changed_is_not_overwritten_by_a_compensation(caller: Caller) -> None:
    compensation = CONTRACTS["update_account"].compensation
    assert compensation is not None
    args = caller.args_of("update_account")
    prior, headers = caller.prior_of("update_account", args)
    result = caller.do("update_account", args, "k", **headers)
    caller.outside.admin("POST", "/third-party", {"kind": "account", "id": "C-7", "fields": {"tier": "x"}})
    scope = {"args": args, "result": result, "prior": prior}
    assert not caller.holds(compensation.preconditions[0], scope)
    blind = caller.see("update_account", bind(compensation.args, scope), "k/c")
    outcome = classify(CONTRACTS["update_account"], blind)
    assert (outcome.kind, outcome.error_class) == (OutcomeKind.REJECTED, ErrorClass.CONFLICT)


def test_an_identity_number_that_belongs_to_another_application_is_no_success_of_ours(caller: Caller) -> None:
    args = caller.args_of("create_customer")
    caller.do("create_customer", args, "k-1")
    other = {**args, "application": "A-8"}
    assert caller.query("create_customer", other, "k-2").verdict is Verdict.DENIED


@pytest.mark.requirement("S2-10", "S1-17")
def test_an_error_500_of_the_text_gateway_is_unknown_and_its_tries_are_bounded(caller: Caller) -> None:
    args = caller.args_of("send_sms")
    caller.outside.plan({"tool": "send_sms", "mode": "fail_before"})
    outcome = classify(CONTRACTS["send_sms"], caller.see("send_sms", args, "k"))
    assert (outcome.kind, outcome.error_class) == (OutcomeKind.UNKNOWN, ErrorClass.SERVER)
    assert caller.query("send_sms", args, "k").verdict is Verdict.ABSENT
    assert CONTRACTS["send_sms"].retry[ErrorClass.SERVER].max_attempts == 2
    assert CONTRACTS["send_sms"].retry[ErrorClass.NO_ANSWER].max_attempts == 2


def test_a_page_of_a_proxy_is_no_answer_of_the_tool(caller: Caller) -> None:
    caller.outside.plan({"tool": "query_notice", "mode": "garbage", "status": 404})
    assert caller.query("send_notice", {"order": "O-1"}, "k").verdict is Verdict.NO_ANSWER
    caller.outside.plan({"tool": "release_stock", "mode": "garbage", "status": 409})
    seen = caller.see("release_stock", {"reservation": "R-1"}, "k")
    assert classify(CONTRACTS["release_stock"], seen).kind is OutcomeKind.UNKNOWN


def test_a_busy_system_says_so_before_it_acts_where_the_contract_promises_it(caller: Caller) -> None:
    caller.outside.plan({"tool": "*", "mode": "fail_before", "status": 503})
    args = {"order": "O-1", "sku": "SKU-118", "qty": 1}
    assert classify(CONTRACTS["reserve_stock"], caller.see("reserve_stock", args, "k")).kind is (
        OutcomeKind.TEMPORARY
    )
    notice = caller.see("send_notice", {"order": "O-1"}, "k")
    assert classify(CONTRACTS["send_notice"], notice).kind is OutcomeKind.UNKNOWN


@pytest.mark.requirement("S0-33")
@pytest.mark.parametrize("tool", sorted(CONTRACTS))
def test_no_contract_retries_every_failure_alike(tool: str) -> None:
    rules = CONTRACTS[tool].retry
    assert len(set(rules.values())) > 1
    refusals = (ErrorClass.VALIDATION, ErrorClass.PERMISSION, ErrorClass.REFUSED, ErrorClass.CONFLICT)
    assert not any(kind in rules and rules[kind].max_attempts > 1 for kind in refusals)


@pytest.mark.requirement("S0-82", "S1-15")
def test_irreversible_tools_say_when_with_what_and_to_whom_they_escalate() -> None:
    irreversible = {
        tool for tool, contract in CONTRACTS.items() if contract.recovery_class is RecoveryClass.IRREVERSIBLE
    }
    assert irreversible == {"send_notice", "send_sms", "send_mail", "send_queued", "refund_payment"}
    for tool in irreversible:
        escalation = CONTRACTS[tool].escalation
        assert escalation.when
        assert escalation.context
        assert escalation.to
        assert CONTRACTS[tool].status_query is not None


@pytest.mark.parametrize(
    ("mode", "genuine", "verdicts"),
    [
        ("ok", [True], [Verdict.FOUND]),
        ("job_fails", [True], [Verdict.DENIED]),
        ("callback_stale", [True, True], [Verdict.FOUND, Verdict.NO_ANSWER]),
        ("callback_forged", [False], [Verdict.FOUND]),
    ],
)
def test_a_callback_of_the_world_is_read_as_its_contract_says(
    caller: Caller, receiver: Receiver, mode: str, genuine: list[bool], verdicts: list[Verdict]
) -> None:
    contract = CONTRACTS["provision_line"]
    assert contract.callback is not None
    assert contract.callback.signature == caller.outside.admin("GET", "/callbacks")["header"]
    caller.outside.plan({"tool": "provision_line", "mode": mode})
    caller.see("provision_line", caller.args_of("provision_line"), "k", **{"Callback-Url": receiver.url})
    assert wait_until(lambda: len(receiver.came) == len(verdicts))
    secret, now = caller.outside.admin("GET", "/callbacks")["secret"], datetime.now(UTC)
    assert [callbacks.is_genuine(secret, header, raw, now=now) for _, header, raw in receiver.came] == genuine
    said = [callbacks.read(contract, document) for document in receiver.said()]
    assert [one.verdict for one in said if one is not None] == verdicts
    assert {one.key for one in said if one is not None} == {"k"}


def test_contract_files_name_no_host() -> None:
    for path in FILES:
        text = path.read_text()
        assert "http://" not in text
        assert "localhost" not in text
        json.dumps(tomllib.loads(text))


def _systems(contracts: dict[str, Contract]) -> set[str]:
    return {contract.system for contract in contracts.values()}


def test_a_second_version_differs_from_the_first_where_it_says_so() -> None:
    second_ones = {contract.tool for contract in VERSIONS if contract.version == 2} - {"label_ticket"}
    signed, tried = {"create_customer", "allocate_limit", "debit_fee"}, {"book_hotel", "cancel_hotel"}
    assert second_ones == signed | tried
    for tool in tried:
        first, second = dict(CONTRACTS[tool].document), dict(NEWEST[tool].document)
        assert (first.pop("version"), second.pop("version")) == (1, 2)
        assert second.pop("dry_run")["tool"] == f"try_{tool}"
        assert first == second
    for tool in signed:
        first, second = dict(CONTRACTS[tool].document), dict(NEWEST[tool].document)
        assert (first.pop("version"), second.pop("version")) == (1, 2)
        ours, theirs = dict(first.pop("compensation")), dict(second.pop("compensation"))
        assert (ours.pop("who"), theirs.pop("who")) == ("automatic", "approval")
        assert (ours, first) == (theirs, second)


def test_the_world_has_an_address_for_every_system(simulator_process: Commanded) -> None:
    assert _systems(CONTRACTS) == set(simulator_process.systems) - GROUNDS
