"""Checks one contract against what it leans on: its status query, its prior state, its compensation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tools import bindings
from tools.contract import Condition, Contract, EffectKind, Json, KeySupport, RecoveryClass
from tools.declared import declares, requires
from tools.lint import codes
from tools.lint.findings import Contracts, Finding, found
from tools.lint.readiness import TOO_MANY_OPEN, open_questions

STEP_SOURCE = re.compile(r"steps\.([a-z][a-z0-9_-]*)\.(result|args|prior)")


def check_contract(contract: Contract, contracts: Contracts) -> tuple[Finding, ...]:
    """What is found in one contract, given the contracts that can be published with it."""
    return tuple(finding for one in _CHECKS for finding in one(contract, contracts))


def _no_blanket_retry(contract: Contract, _: Contracts) -> Iterator[Finding]:
    repeated = [rule for rule in contract.retry.values() if rule.max_attempts > 1]
    if len(repeated) >= 4 and all(rule == repeated[0] for rule in repeated):
        yield found(
            codes.BLANKET_RETRY,
            contract.tool,
            f"the same retry rule stands for {len(repeated)} error classes",
            "Give each error class its own rule: how long each is worth repeating differs.",
        )


def _unanswered_can_be_settled(contract: Contract, _: Contracts) -> Iterator[Finding]:
    if (
        contract.has_effect
        and contract.recovery_class is not RecoveryClass.IRREVERSIBLE
        and contract.status_query is None
        and contract.idempotency.support is not KeySupport.HONOURED
        and not contract.idempotency.natural
    ):
        yield found(
            codes.CANNOT_SETTLE,
            contract.tool,
            "neither asked nor safely repeated: every lost answer goes to a person",
            "Declare a status_query, or have the tool honour a key.",
        )


def _leans_on_known_tools(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    query, prior, compensation = contract.status_query, contract.prior_state, contract.compensation
    tried = contract.dry_run
    if query is not None:
        yield from _reads("status_query", contract, query.tool, query.args, contracts)
    if contract.by_reference is not None:
        yield from faults_of_condition("by_reference", contract.tool, contract.by_reference, contracts, None)
    if tried is not None:
        yield from _reads("dry_run", contract, tried.tool, tried.args, contracts)
        if tried.tool in contracts:
            yield from _reaches("dry_run.accepted", contract, contracts[tried.tool], tried.accepted.pointer)
            yield from _reaches("dry_run.why", contract, contracts[tried.tool], tried.why)
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
        yield found(
            codes.COMPENSATION_READS,
            contract.tool,
            f"the compensation {maker.tool} is read-only and makes up for nothing",
            "Name a tool that has an effect.",
        )
    else:
        yield from args_for("compensation.args", contract.tool, compensation.args, maker)
    yield from _prior_is_taken(contract, compensation.args, contracts)
    for condition in (*compensation.preconditions, compensation.already_done, compensation.verify):
        if condition is not None:
            yield from faults_of_condition("compensation", contract.tool, condition, contracts, None)
            yield from _prior_is_taken(contract, [condition.args, condition.value], contracts)


def _compensation_can_be_confirmed(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    compensation = contract.compensation
    if compensation is not None and compensation.verify is None and compensation.kind != "mitigates":
        yield found(
            codes.NOT_READ_BACK,
            contract.tool,
            "nothing reads back whether the compensation worked",
            "Add compensation.verify.",
        )


def _prior_is_taken(contract: Contract, template: Json, contracts: Contracts) -> Iterator[Finding]:
    prior = contract.prior_state
    for binding in bindings.bindings_in(template):
        if binding.source != "prior" or binding.has_default:
            continue
        if prior is None:
            message = f"the compensation needs the prior state{_at(binding)}, which is never read"
            yield found(codes.UNBINDABLE, contract.tool, message, "Declare prior_state.")
        elif prior.tool in contracts and not declares(contracts[prior.tool].result_schema, binding.pointer):
            message = (
                f"the compensation needs the prior state{_at(binding)}, and {prior.tool} answers without"
            )
            yield found(codes.UNBINDABLE, contract.tool, message, "Correct the pointer.")


def _at(binding: bindings.Binding) -> str:
    return f" at {binding.pointer}" if binding.pointer else ""


def _compensation_is_known_without_the_answer(contract: Contract, contracts: Contracts) -> Iterator[Finding]:
    """Whether what is bound from the result is also there after a lost answer, or a short one."""
    if (
        contract.compensation is None or contract.items is not None
    ):  # a part's answer has no schema of its own
        return
    query = contract.status_query
    asked = contracts.get(query.tool) if query is not None else None
    for binding in bindings.bindings_in(contract.compensation.args):
        if binding.source != "result" or binding.has_default:
            continue
        if asked is not None and not declares(asked.result_schema, binding.pointer):
            yield found(
                codes.MAY_BE_UNBINDABLE,
                contract.tool,
                f"compensation.args{binding.where}: after a lost answer {asked.tool} is asked, which has "
                f"nothing at {binding.pointer}",
            )
        elif not requires(contract.result_schema, binding.pointer.split("/")[1] if binding.pointer else ""):
            yield found(
                codes.MAY_BE_UNBINDABLE,
                contract.tool,
                f"compensation.args{binding.where}: a result need not have anything at {binding.pointer}",
                "Require it in result_schema, or give a default.",
            )


def _external_effect_is_confirmed(contract: Contract, _: Contracts) -> Iterator[Finding]:
    """Decision 9, S1-4."""
    if contract.effect_kind is EffectKind.EXTERNAL_EFFECT and not contract.require_confirmation:
        yield found(
            codes.UNCONFIRMED, contract.tool, "its effect reaches outside, and no person confirms the call"
        )


def _is_thought_through(contract: Contract, _: Contracts) -> Iterator[Finding]:
    """S1-24: three or more open questions, and no agent should use it by itself."""
    left = open_questions(contract)
    if len(left) >= TOO_MANY_OPEN:
        asked = " ".join(f"{answer.number}. {answer.question}" for answer in left)
        yield found(codes.NOT_AUTOMATIC, contract.tool, f"{len(left)} of the ten questions are open: {asked}")


def _reads(
    what: str, contract: Contract, tool: str, args: Mapping[str, Json], contracts: Contracts
) -> Iterator[Finding]:
    reader = contracts.get(tool)
    if reader is None:
        yield _missing(what, contract.tool, tool)
        return
    if reader.has_effect:
        yield found(
            codes.NOT_A_READ,
            contract.tool,
            f"{what} asks {tool}, which is not read-only",
            "Name a read-only tool.",
        )
    yield from args_for(f"{what}.args", contract.tool, args, reader)


def args_for(what: str, where: str, args: Mapping[str, Json], called: Contract) -> Iterator[Finding]:
    """Whether the arguments are those that the called tool has, and all that it needs."""
    for name in args:
        if not declares(called.args_schema, f"/{name}"):
            message = f"{what}: the tool {called.tool} has no argument `{name}`"
            yield found(codes.UNKNOWN_ARGUMENT, where, message)
    for name in called.args_schema.get("required", ()):
        if name not in args:
            message = f"{what}: the tool {called.tool} needs the argument `{name}`"
            yield found(codes.MISSING_ARGUMENT, where, message, f"Add `{name}`.")


def _reaches(what: str, contract: Contract, called: Contract, pointer: str) -> Iterator[Finding]:
    if not declares(called.result_schema, pointer):
        yield found(
            codes.NOTHING_THERE,
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
            yield found(
                codes.NOT_A_READ,
                step,
                f"{what} asks {reader.tool}, which is not read-only",
                "Name a read-only tool.",
            )
        elif not declares(reader.result_schema, condition.pointer):
            yield found(
                codes.NOTHING_THERE,
                step,
                f"{what}: the result of {reader.tool} has nothing at {condition.pointer}",
                "Correct the pointer.",
            )
    if steps is None:
        return
    for source in bindings.sources([condition.args, condition.value]):
        named = STEP_SOURCE.fullmatch(source)
        if named is not None and named[1] not in steps:
            yield found(
                codes.UNKNOWN_STEP,
                step,
                f"{what} names the step `{named[1]}`",
                f"Known: {', '.join(sorted(steps))}.",
            )
        elif named is None and source not in {"input", "run", "answer"}:
            yield found(
                codes.UNKNOWN_SOURCE,
                step,
                f"{what}: `{source}` is no source",
                "Use input, run or steps.<id>.result.",
            )


def _missing(what: str, step: str, tool: str) -> Finding:
    return found(
        codes.UNKNOWN_TOOL,
        step,
        f"{what} names the tool {tool}, which is not published",
        "Publish its contract first.",
    )


_CHECKS: tuple[Callable[[Contract, Contracts], Iterator[Finding]], ...] = (
    _no_blanket_retry,
    _unanswered_can_be_settled,
    _leans_on_known_tools,
    _compensation_can_be_confirmed,
    _compensation_is_known_without_the_answer,
    _external_effect_is_confirmed,
    _is_thought_through,
)
