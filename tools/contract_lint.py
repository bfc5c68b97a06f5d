"""Checks one contract against what it leans on: its status query, its prior state, its compensation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tools import bindings
from tools.contract import Condition, Contract, Json, KeySupport, RecoveryClass
from tools.declared import declares
from tools.findings import Contracts, Finding, error, warning

STEP_SOURCE = re.compile(r"steps\.([a-z][a-z0-9_-]*)\.(result|args|prior)")


def check_contract(contract: Contract, contracts: Contracts) -> tuple[Finding, ...]:
    """What is found in one contract, given the contracts that can be published with it."""
    return tuple(finding for one in _CHECKS for finding in one(contract, contracts))


def _no_blanket_retry(contract: Contract, _: Contracts) -> Iterator[Finding]:
    repeated = [rule for rule in contract.retry.values() if rule.max_attempts > 1]
    if len(repeated) >= 4 and all(rule == repeated[0] for rule in repeated):
        yield error(
            "blanket_retry",
            contract.tool,
            f"the same retry rule stands for {len(repeated)} error classes",
            "Give each error class its own rule: how long each is worth repeating differs.",
        )


def _irreversible_can_be_asked(contract: Contract, _: Contracts) -> Iterator[Finding]:
    if contract.recovery_class is RecoveryClass.IRREVERSIBLE and contract.status_query is None:
        yield warning(
            "no_status_query",
            contract.tool,
            "an irreversible tool that cannot be asked: every lost answer goes to a person",
            "Declare a status_query if the system has any way to ask.",
        )


def _unanswered_can_be_settled(contract: Contract, _: Contracts) -> Iterator[Finding]:
    if (
        contract.has_effect
        and contract.recovery_class is not RecoveryClass.IRREVERSIBLE
        and contract.status_query is None
        and contract.idempotency.support is not KeySupport.HONOURED
    ):
        yield warning(
            "cannot_settle",
            contract.tool,
            "neither asked nor safely repeated: every lost answer goes to a person",
            "Declare a status_query, or have the tool honour a key.",
        )


def _leans_on_known_tools(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    query, prior, compensation = contract.status_query, contract.prior_state, contract.compensation
    if query is not None:
        yield from _reads("status_query", contract, query.tool, query.args, contracts)
    if prior is not None:
        yield from _reads("prior_state", contract, prior.tool, prior.args, contracts)
        if prior.version and prior.tool in contracts:
            yield from _reaches("prior_state.version", contract, contracts[prior.tool], prior.version)
    if compensation is None:
        return
    maker = contracts.get(compensation.tool)
    if maker is None:
        yield _missing("compensation", contract.tool, compensation.tool)
    elif not maker.has_effect:
        yield error(
            "compensation_reads",
            contract.tool,
            f"the compensation {maker.tool} is read-only and makes up for nothing",
            "Name a tool that has an effect.",
        )
    else:
        yield from _args_for("compensation.args", contract, compensation.args, maker)
    yield from _prior_is_taken(contract, compensation.args)
    for condition in (*compensation.preconditions, compensation.already_done, compensation.verify):
        if condition is not None:
            yield from faults_of_condition("compensation", contract.tool, condition, contracts, None)
            yield from _prior_is_taken(contract, [condition.args, condition.value])


def _compensation_can_be_confirmed(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    compensation = contract.compensation
    if compensation is not None and compensation.verify is None and compensation.kind != "mitigates":
        yield warning(
            "no_verify",
            contract.tool,
            "nothing reads back whether the compensation worked",
            "Add compensation.verify.",
        )


def _prior_is_taken(contract: Contract, template: Json) -> Iterator[Finding]:
    if contract.prior_state is None and "prior" in bindings.sources(template):
        yield error(
            "unbindable",
            contract.tool,
            "the compensation needs the prior state, which is never read",
            "Declare prior_state.",
        )


def _reads(
    what: str, contract: Contract, tool: str, args: Mapping[str, Json], contracts: Contracts
) -> Iterator[Finding]:
    reader = contracts.get(tool)
    if reader is None:
        yield _missing(what, contract.tool, tool)
        return
    if reader.has_effect:
        yield error(
            "not_a_read",
            contract.tool,
            f"{what} asks {tool}, which is not read-only",
            "Name a read-only tool.",
        )
    yield from _args_for(f"{what}.args", contract, args, reader)


def _args_for(what: str, contract: Contract, args: Mapping[str, Json], called: Contract) -> Iterator[Finding]:
    for name in args:
        if not declares(called.args_schema, f"/{name}"):
            yield error(
                "unknown_argument",
                contract.tool,
                f"{what}: the tool {called.tool} has no argument `{name}`",
                "Correct the name.",
            )
    for name in called.args_schema.get("required", ()):
        if name not in args:
            yield error(
                "missing_argument",
                contract.tool,
                f"{what}: the tool {called.tool} needs the argument `{name}`",
                f"Add `{name}`.",
            )


def _reaches(what: str, contract: Contract, called: Contract, pointer: str) -> Iterator[Finding]:
    if not declares(called.result_schema, pointer):
        yield error(
            "nothing_there",
            contract.tool,
            f"{what}: the result of {called.tool} has nothing at {pointer}",
            "Correct the pointer.",
        )


def faults_of_condition(
    what: str, step: str, condition: Condition, contracts: Contracts, steps: set[str] | None
) -> Iterator[Finding]:
    """What keeps a condition from being evaluated by a read of the published contracts."""
    if condition.read:
        reader = contracts.get(condition.read)
        if reader is None:
            yield _missing(what, step, condition.read)
        elif reader.has_effect:
            yield error(
                "not_a_read",
                step,
                f"{what} asks {reader.tool}, which is not read-only",
                "Name a read-only tool.",
            )
        elif not declares(reader.result_schema, condition.pointer):
            yield error(
                "nothing_there",
                step,
                f"{what}: the result of {reader.tool} has nothing at {condition.pointer}",
                "Correct the pointer.",
            )
    if steps is None:
        return
    for source in bindings.sources([condition.args, condition.value]):
        named = STEP_SOURCE.fullmatch(source)
        if named is not None and named[1] not in steps:
            yield error(
                "unknown_step",
                step,
                f"{what} names the step `{named[1]}`",
                f"Known: {', '.join(sorted(steps))}.",
            )
        elif named is None and source not in {"input", "run", "answer"}:
            yield error(
                "unknown_source",
                step,
                f"{what}: `{source}` is no source",
                "Use input, run or steps.<id>.result.",
            )


def _missing(what: str, step: str, tool: str) -> Finding:
    return error(
        "unknown_tool",
        step,
        f"{what} names the tool {tool}, which is not published",
        "Publish its contract first.",
    )


_CHECKS: tuple[Callable[[Contract, Contracts], Iterator[Finding]], ...] = (
    _no_blanket_retry,
    _irreversible_can_be_asked,
    _unanswered_can_be_settled,
    _leans_on_known_tools,
    _compensation_can_be_confirmed,
)
