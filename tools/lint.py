"""Checks that need more than one file: a definition against the contracts it uses.

Every check is a function in `_CHECKS`; more of them can be added there. Form is the reader's work, one
contract's own agreements are `tools.contract_lint`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools import bindings
from tools.contract import RecoveryClass
from tools.contract_lint import STEP_SOURCE, check_contract, faults_of_condition
from tools.declared import declares
from tools.definition import Definition, Step, StepIs
from tools.findings import Contracts, Finding, Severity, blocks, error, warning
from tools.json_schema import schema_fault

__all__ = ["Finding", "Severity", "blocks", "check", "check_contract"]


def check(definition: Definition, contracts: Contracts) -> tuple[Finding, ...]:
    """Everything found in a definition under the contracts of all tools that it can reach."""
    return tuple(finding for one in _CHECKS for finding in one(definition, contracts))


def _steps_name_known_tools(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for step in definition.steps:
        contract = contracts.get(step.tool)
        if contract is None:
            yield error(
                "unknown_tool",
                step.id,
                f"the tool {step.tool} version {step.contract_version} is not published",
                "Publish its contract first, or correct the name.",
            )
        elif contract.version != step.contract_version:
            yield error(
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
            named = STEP_SOURCE.fullmatch(binding.source)
            if named is None:
                yield error(
                    "unknown_source",
                    step.id,
                    f"args{binding.where}: `{binding.source}` is no source",
                    "Use input, run, key or steps.<id>.result, .args, .prior.",
                )
            elif named[1] not in place:
                yield error(
                    "unknown_step",
                    step.id,
                    f"args{binding.where}: there is no step `{named[1]}`",
                    f"Known steps: {', '.join(place)}.",
                )
            elif place[named[1]] >= index:
                yield error(
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
        yield error(
            "nothing_there",
            step.id,
            f"args{binding.where}: the tool {source.tool} takes no prior state",
            "Bind to the result or the arguments.",
        )
    schema = {"result": contract.result_schema, "args": contract.args_schema}.get(part)
    if not declares(schema, binding.pointer):
        yield error(
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
                yield error(
                    "unknown_argument",
                    step.id,
                    f"the tool {step.tool} has no argument `{name}`",
                    "Correct the name.",
                )
        for name in contract.args_schema.get("required", ()):
            if name not in step.args:
                yield error(
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
                yield error(
                    "bad_argument", step.id, f"args.{name}: {fault}", "Write a value that fits the contract."
                )


def _end_states_are_checkable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    known = {step.id for step in definition.steps}
    if not definition.end_states:
        yield warning(
            "no_end_states",
            "",
            "no acceptable end state is named, so a person has to judge each case",
            "Add end_states with conditions.",
        )
    for state in definition.end_states:
        for condition in state.conditions:
            if isinstance(condition, StepIs):
                if condition.step not in known:
                    yield error(
                        "unknown_step",
                        "",
                        f"the end state {state.id} names the step `{condition.step}`, which there is not",
                        f"Known steps: {', '.join(sorted(known))}.",
                    )
            else:
                yield from faults_of_condition(f"the end state {state.id}", "", condition, contracts, known)


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
            yield warning(
                "irreversible_early",
                step.id,
                f"an irreversible step is followed by steps that may fail: {later}",
                "Put it last, or say why not.",
            )


def _contracts_in_use(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for tool in dict.fromkeys(step.tool for step in definition.steps):
        if tool in contracts:
            yield from check_contract(contracts[tool], contracts)


_CHECKS: tuple[Callable[[Definition, Contracts], Iterator[Finding]], ...] = (
    _steps_name_known_tools,
    _args_are_bindable,
    _args_fit_their_schema,
    _end_states_are_checkable,
    _irreversible_comes_last,
    _contracts_in_use,
)
