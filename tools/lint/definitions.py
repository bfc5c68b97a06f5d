"""Checks a definition against the contracts it uses: can its steps be called, and its end states be read?

What may go wrong on the way is `tools.lint.recovery`'s, one contract by itself `tools.lint.contracts`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tools import bindings
from tools.declared import declares
from tools.definition import Definition, Step, StepIs
from tools.json_schema import schema_fault
from tools.lint import codes, recovery
from tools.lint.contracts import STEP_SOURCE, args_for, check_contract, faults_of_condition
from tools.lint.findings import Contracts, Finding, found


def check(definition: Definition, contracts: Contracts) -> tuple[Finding, ...]:
    """Everything found in a definition under the contracts of all tools that it can reach."""
    return tuple(finding for one in _CHECKS for finding in one(definition, contracts))


def _steps_name_known_tools(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for step in definition.steps:
        contract = contracts.get(step.tool)
        if contract is None:
            yield found(
                codes.UNKNOWN_TOOL,
                step.id,
                f"the tool {step.tool} version {step.contract_version} is not published",
                "Publish its contract first, or correct the name.",
            )
        elif contract.version != step.contract_version:
            yield found(
                codes.UNKNOWN_VERSION,
                step.id,
                f"version {step.contract_version} of {step.tool} is not published, {contract.version} is",
                "Name a published version.",
            )


def _follow_ups_are_callable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    for state in definition.end_states:
        for one in state.follow_ups:
            what = f"the follow-up {one.id} of {state.id}"
            contract = contracts.get(one.tool)
            if contract is None or contract.version != one.contract_version:
                message = f"{what} calls {one.tool} version {one.contract_version}, which is not published"
                yield found(codes.UNKNOWN_TOOL, "", message)
            else:
                yield from args_for(what, "", one.args, contract)


def _args_are_bindable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    known = {step.id for step in definition.steps}
    for step in recovery.in_order(definition):
        for binding in bindings.bindings_in([step.args, step.each]):
            if binding.source in {"input", "run", "key"} or (
                binding.source == "item" and step.each is not None
            ):
                continue
            named = STEP_SOURCE.fullmatch(binding.source)
            if named is None:
                yield found(
                    codes.UNKNOWN_SOURCE,
                    step.id,
                    f"args{binding.where}: `{binding.source}` is no source",
                    "Use input, run, key or steps.<id>.result, .args, .prior.",
                )
            elif named[1] not in known:
                yield found(
                    codes.UNKNOWN_STEP,
                    step.id,
                    f"args{binding.where}: there is no step `{named[1]}`",
                    f"Known steps: {', '.join(step.id for step in definition.steps)}.",
                )
            elif definition.front_of(named[1]) >= definition.front_of(step.id):
                beside = {one.id for one in recovery.beside(definition, step)}
                yield found(
                    codes.LATER_STEP,
                    step.id,
                    f"args{binding.where}: the step `{named[1]}` "
                    + ("runs at the same time" if named[1] in beside else "has not run yet at this point"),
                    "Bind to an earlier step outside the group, or change the order.",
                )
            else:
                yield from _result_has(definition.step(named[1]), named[2], binding, step, contracts)


def _result_has(
    source: Step, part: str, binding: bindings.Binding, step: Step, contracts: Contracts
) -> Iterator[Finding]:
    contract = contracts.get(source.tool)
    if contract is None or binding.has_default:
        return
    if part == "prior" and contract.prior_state is None:
        yield found(
            codes.NOTHING_THERE,
            step.id,
            f"args{binding.where}: the tool {source.tool} takes no prior state",
            "Bind to the result or the arguments.",
        )
    schema = {"result": contract.result_schema, "args": contract.args_schema}.get(part)
    if not declares(schema, binding.pointer):
        yield found(
            codes.NOTHING_THERE,
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
                yield found(
                    codes.UNKNOWN_ARGUMENT,
                    step.id,
                    f"the tool {step.tool} has no argument `{name}`",
                    "Correct the name.",
                )
        for name in contract.args_schema.get("required", ()):
            if name not in step.args:
                yield found(
                    codes.MISSING_ARGUMENT,
                    step.id,
                    f"the tool {step.tool} needs the argument `{name}`",
                    f"Add `{name}` to the step's args.",
                )
        for name, value in step.args.items():
            property_schema = contract.args_schema.get("properties", {}).get(name)
            if bindings.sources(value) or property_schema is None:
                continue
            if fault := schema_fault(property_schema, bindings.bind(value, {})):
                yield found(
                    codes.BAD_ARGUMENT,
                    step.id,
                    f"args.{name}: {fault}",
                    "Write a value that fits the contract.",
                )


def _end_states_are_checkable(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    known = {step.id for step in definition.steps}
    if not definition.end_states:
        yield found(
            codes.NO_END_STATES,
            "",
            "no acceptable end state is named, so a person has to judge each case",
            "Add end_states with conditions.",
        )
    for state in definition.end_states:
        for condition in state.conditions:
            if isinstance(condition, StepIs):
                if condition.step not in known:
                    yield found(
                        codes.UNKNOWN_STEP,
                        "",
                        f"the end state {state.id} names the step `{condition.step}`, which there is not",
                        f"Known steps: {', '.join(sorted(known))}.",
                    )
            else:
                yield from faults_of_condition(f"the end state {state.id}", "", condition, contracts, known)


def _contracts_in_use(definition: Definition, contracts: Contracts) -> Iterator[Finding]:
    """What is found in a contract is said at each step that uses it."""
    for step in definition.steps:
        if step.tool in contracts:
            for finding in check_contract(contracts[step.tool], contracts):
                yield replace(finding, step=step.id)


_CHECKS: tuple[Callable[[Definition, Contracts], Iterator[Finding]], ...] = (
    _steps_name_known_tools,
    _args_are_bindable,
    _args_fit_their_schema,
    _end_states_are_checkable,
    _follow_ups_are_callable,
    *recovery.CHECKS,
    _contracts_in_use,
)
