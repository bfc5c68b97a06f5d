"""Checks that need more than one file: a definition against the contracts it uses, one contract against
what it leans on.

Every check is a function in `_CHECKS`; more of them can be added there. Form is the reader's work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tools import bindings
from tools.contract import Condition, Contract, Json, KeySupport, RecoveryClass
from tools.declared import declares
from tools.definition import Definition, Step, StepIs
from tools.json_schema import schema_fault

type Contracts = Mapping[str, Contract]

_STEP_SOURCE = re.compile(r"steps\.([a-z][a-z0-9_-]*)\.(result|args|prior)")


class Severity(StrEnum):
    """Whether a finding keeps a definition from being published."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding. `step` is the step's id, the tool's name for a contract, or ""."""

    code: str
    severity: Severity
    step: str
    message: str
    fix: str


def check(definition: Definition, contracts: Contracts) -> tuple[Finding, ...]:
    """Everything found in a definition under the contracts of all tools that it can reach."""
    return tuple(finding for one in _CHECKS for finding in one(definition, contracts))


def check_contract(contract: Contract, contracts: Contracts) -> tuple[Finding, ...]:
    """What is found in one contract, given the contracts that can be published with it."""
    return tuple(finding for one in _CONTRACT_CHECKS for finding in one(contract, contracts))


def blocks(findings: tuple[Finding, ...]) -> bool:
    """Whether any finding keeps a publication back."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def _error(code: str, step: str, message: str, fix: str) -> Finding:
    return Finding(code=code, severity=Severity.ERROR, step=step, message=message, fix=fix)


def _warning(code: str, step: str, message: str, fix: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, step=step, message=message, fix=fix)


# -- of a definition ---------------------------------------------------------------------------------------


def _steps_name_known_tools(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for step in definition.steps:
        contract = contracts.get(step.tool)
        if contract is None:
            yield _error(
                "unknown_tool",
                step.id,
                f"the tool {step.tool} version {step.contract_version} is not published",
                "Publish its contract first, or correct the name.",
            )
        elif contract.version != step.contract_version:
            yield _error(
                "unknown_version",
                step.id,
                f"version {step.contract_version} of {step.tool} is not published, {contract.version} is",
                "Name a published version.",
            )


def _args_are_bindable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    place = {step.id: index for index, step in enumerate(definition.steps)}
    for index, step in enumerate(definition.steps):
        for binding in bindings.bindings_in(step.args):
            if binding.source in {"input", "run", "key"}:
                continue
            named = _STEP_SOURCE.fullmatch(binding.source)
            if named is None:
                yield _error(
                    "unknown_source",
                    step.id,
                    f"args{binding.where}: `{binding.source}` is no source",
                    "Use input, run, key or steps.<id>.result, .args, .prior.",
                )
            elif named[1] not in place:
                yield _error(
                    "unknown_step",
                    step.id,
                    f"args{binding.where}: there is no step `{named[1]}`",
                    f"Known steps: {', '.join(place)}.",
                )
            elif place[named[1]] >= index:
                yield _error(
                    "later_step",
                    step.id,
                    f"args{binding.where}: the step `{named[1]}` has not run yet at this point",
                    "Bind to an earlier step, or change the order.",
                )
            else:
                yield from _result_has(definition.steps[place[named[1]]], named[2], binding, step, contracts)


def _result_has(
    source: Step, part: str, binding: bindings.Binding, step: Step, contracts: Contracts
) -> Iterator[Finding]:
    contract = contracts.get(source.tool)
    if contract is None or binding.has_default:
        return
    if part == "prior" and contract.prior_state is None:
        yield _error(
            "nothing_there",
            step.id,
            f"args{binding.where}: the tool {source.tool} takes no prior state",
            "Bind to the result or the arguments.",
        )
    schema = {"result": contract.result_schema, "args": contract.args_schema}.get(part)
    if not declares(schema, binding.pointer):
        yield _error(
            "nothing_there",
            step.id,
            f"args{binding.where}: the {part} of {source.tool} has nothing at {binding.pointer}",
            "Correct the pointer, or give a default.",
        )


def _args_fit_their_schema(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for step in definition.steps:
        contract = contracts.get(step.tool)
        if contract is None:
            continue
        for name in step.args:
            if not declares(contract.args_schema, f"/{name}"):
                yield _error(
                    "unknown_argument",
                    step.id,
                    f"the tool {step.tool} has no argument `{name}`",
                    "Correct the name.",
                )
        for name in contract.args_schema.get("required", ()):
            if name not in step.args:
                yield _error(
                    "missing_argument",
                    step.id,
                    f"the tool {step.tool} needs the argument `{name}`",
                    f"Add `{name}` to the step's args.",
                )
        for name, value in step.args.items():
            property_schema = contract.args_schema.get("properties", {}).get(name)
            if bindings.sources(value) or property_schema is None:
                continue
            if fault := schema_fault(property_schema, bindings.bind(value, {})):
                yield _error(
                    "bad_argument", step.id, f"args.{name}: {fault}", "Write a value that fits the contract."
                )


def _end_states_are_checkable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    known = {step.id for step in definition.steps}
    if not definition.end_states:
        yield _warning(
            "no_end_states",
            "",
            "no acceptable end state is named, so a person has to judge each case",
            "Add end_states with conditions.",
        )
    for state in definition.end_states:
        for condition in state.conditions:
            if isinstance(condition, StepIs):
                if condition.step not in known:
                    yield _error(
                        "unknown_step",
                        "",
                        f"the end state {state.id} names the step `{condition.step}`, which there is not",
                        f"Known steps: {', '.join(sorted(known))}.",
                    )
            else:
                yield from _condition(f"the end state {state.id}", "", condition, contracts, known)


def _irreversible_comes_last(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """Nothing that may still fail should follow a step that cannot be made up for (S2-8, S2-17)."""
    effective = [
        (step, contracts[step.tool])
        for step in definition.steps
        if step.tool in contracts and contracts[step.tool].has_effect
    ]
    for index, (step, contract) in enumerate(effective[:-1]):
        if contract.recovery_class is RecoveryClass.IRREVERSIBLE:
            later = ", ".join(one.id for one, _ in effective[index + 1 :])
            yield _warning(
                "irreversible_early",
                step.id,
                f"an irreversible step is followed by steps that may fail: {later}",
                "Put it last, or say why not.",
            )


def _contracts_in_use(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for tool in dict.fromkeys(step.tool for step in definition.steps):
        if tool in contracts:
            yield from check_contract(contracts[tool], contracts)


# -- of a contract -----------------------------------------------------------------------------------------


def _no_blanket_retry(contract: Contract, _: Contracts) -> Iterator[Finding]:
    repeated = [rule for rule in contract.retry.values() if rule.max_attempts > 1]
    if len(repeated) >= 4 and all(rule == repeated[0] for rule in repeated):
        yield _error(
            "blanket_retry",
            contract.tool,
            f"the same retry rule stands for {len(repeated)} error classes",
            "Give each error class its own rule: how long each is worth repeating differs.",
        )


def _irreversible_can_be_asked(contract: Contract, _: Contracts) -> Iterator[Finding]:
    if contract.recovery_class is RecoveryClass.IRREVERSIBLE and contract.status_query is None:
        yield _warning(
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
        yield _warning(
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
        yield _error(
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
            yield from _condition("compensation", contract.tool, condition, contracts, None)
            yield from _prior_is_taken(contract, [condition.args, condition.value])


def _compensation_can_be_confirmed(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    compensation = contract.compensation
    if compensation is not None and compensation.verify is None and compensation.kind != "mitigates":
        yield _warning(
            "no_verify",
            contract.tool,
            "nothing reads back whether the compensation worked",
            "Add compensation.verify.",
        )


def _prior_is_taken(contract: Contract, template: Json) -> Iterator[Finding]:
    if contract.prior_state is None and "prior" in bindings.sources(template):
        yield _error(
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
        yield _error(
            "not_a_read",
            contract.tool,
            f"{what} asks {tool}, which is not read-only",
            "Name a read-only tool.",
        )
    yield from _args_for(f"{what}.args", contract, args, reader)


def _args_for(what: str, contract: Contract, args: Mapping[str, Json], called: Contract) -> Iterator[Finding]:
    for name in args:
        if not declares(called.args_schema, f"/{name}"):
            yield _error(
                "unknown_argument",
                contract.tool,
                f"{what}: the tool {called.tool} has no argument `{name}`",
                "Correct the name.",
            )
    for name in called.args_schema.get("required", ()):
        if name not in args:
            yield _error(
                "missing_argument",
                contract.tool,
                f"{what}: the tool {called.tool} needs the argument `{name}`",
                f"Add `{name}`.",
            )


def _reaches(what: str, contract: Contract, called: Contract, pointer: str) -> Iterator[Finding]:
    if not declares(called.result_schema, pointer):
        yield _error(
            "nothing_there",
            contract.tool,
            f"{what}: the result of {called.tool} has nothing at {pointer}",
            "Correct the pointer.",
        )


def _condition(
    what: str, step: str, condition: Condition, contracts: Contracts, steps: set[str] | None
) -> Iterator[Finding]:
    if condition.read:
        reader = contracts.get(condition.read)
        if reader is None:
            yield _missing(what, step, condition.read)
        elif reader.has_effect:
            yield _error(
                "not_a_read",
                step,
                f"{what} asks {reader.tool}, which is not read-only",
                "Name a read-only tool.",
            )
        elif not declares(reader.result_schema, condition.pointer):
            yield _error(
                "nothing_there",
                step,
                f"{what}: the result of {reader.tool} has nothing at {condition.pointer}",
                "Correct the pointer.",
            )
    if steps is None:
        return
    for source in bindings.sources([condition.args, condition.value]):
        named = _STEP_SOURCE.fullmatch(source)
        if named is not None and named[1] not in steps:
            yield _error(
                "unknown_step",
                step,
                f"{what} names the step `{named[1]}`",
                f"Known: {', '.join(sorted(steps))}.",
            )
        elif named is None and source not in {"input", "run", "answer"}:
            yield _error(
                "unknown_source",
                step,
                f"{what}: `{source}` is no source",
                "Use input, run or steps.<id>.result.",
            )


def _missing(what: str, step: str, tool: str) -> Finding:
    return _error(
        "unknown_tool",
        step,
        f"{what} names the tool {tool}, which is not published",
        "Publish its contract first.",
    )


_CHECKS: tuple[Callable[[Definition, Contracts], Iterator[Finding]], ...] = (
    _steps_name_known_tools,
    _args_are_bindable,
    _args_fit_their_schema,
    _end_states_are_checkable,
    _irreversible_comes_last,
    _contracts_in_use,
)
_CONTRACT_CHECKS: tuple[Callable[[Contract, Contracts], Iterator[Finding]], ...] = (
    _no_blanket_retry,
    _irreversible_can_be_asked,
    _unanswered_can_be_settled,
    _leans_on_known_tools,
    _compensation_can_be_confirmed,
)
