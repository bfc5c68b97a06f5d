"""What a verb would do, written down before it is done: the exact calls, where each answer leads, what stays.

Pure but for the description of calls, which sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from sagas import intents, planner, summary
from sagas.edits import edited
from sagas.facts import ActionFacts, PlannedCall, PreviewFacts, RunFacts, SignoffFacts
from sagas.published import pinned
from sagas.states import ActionState, CompensationState
from sagas.verdicts import needs_second
from tools.bindings import Unbindable, bind
from tools.contract import Condition, Contract, Json, RecoveryClass, Who
from tools.definition import StepIs
from tools.redact import mask
from tools.texts import fill
from tools.world import World

_WORLD = World({})
_QUERY_OUTCOMES = (("found", "confirmed"), ("not_found", "rejected"), ("no_answer", "stays_unknown"))
_CALL_OUTCOMES = (("confirmed", "goes_on"), ("rejected", "comes_back"), ("no_answer", "becomes_unknown"))
_COMPENSATION_OUTCOMES = (
    ("read_back", "next_compensation"),
    ("precondition_false", "stops_comes_back"),
    ("no_answer", "becomes_unknown"),
)


def preview(facts: RunFacts, verb: str, *, step: str = "", leave_out: Collection[str] = ()) -> PreviewFacts:
    """The preview of a verb on a run as it stands; of a compensation without the steps to `leave_out`. Makes no call."""
    calls: list[PlannedCall] = []
    outcomes: tuple[tuple[str, str], ...] = ()
    irreversible: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    before: Json = None
    after: Json = None
    signoff = False
    match verb:
        case "query_status":
            calls, outcomes = _query(facts, step), _QUERY_OUTCOMES
        case "retry":
            action = intents.step_named(facts, step)
            if action is not None:
                calls, outcomes = _numbered_calls(intents.once_more(action)), _CALL_OUTCOMES
                if action.contract.recovery_class is RecoveryClass.IRREVERSIBLE:
                    irreversible = (_effect(action),)
        case "edit_and_retry" | "redo":
            action = intents.step_named(facts, step)
            if action is not None:
                before = after = action.args
                calls, outcomes = _numbered_calls([intents.next_generation(facts, action)]), _CALL_OUTCOMES
                if action.contract.recovery_class is RecoveryClass.IRREVERSIBLE:
                    irreversible = (_effect(action),)
        case "stop_and_compensate":
            planned = intents.up_to_the_first_that_stays(facts)
            calls, outcomes = _compensations(facts, only=planned), _COMPENSATION_OUTCOMES
            stays = tuple(summary.done(u) for u in planner.to_compensate(facts) if u.id not in planned)
            never = tuple(
                unit.step
                for unit in planner.current(facts)
                if unit.state in (ActionState.NOT_STARTED, ActionState.PREPARED)
            )
            signoff = any(_wants_signature(u) for u in planner.to_compensate(facts) if u.id in planned)
        case "compensate" | "continue_compensation":
            stay = [unit for unit in planner.to_compensate(facts) if unit.step in leave_out]
            go = [unit for unit in planner.to_compensate(facts) if unit not in stay]
            calls = _compensations(facts, without={unit.id for unit in stay})
            outcomes = (*((("left_out", "effect_stays"),) if stay else ()), *_COMPENSATION_OUTCOMES)
            stays = tuple(summary.done(unit) for unit in stay)
            irreversible = tuple(_effect(unit) for unit in go if unit.compensation is None)
            signoff = any(_wants_signature(unit) for unit in go)
        case "accept_items":
            outcomes = (("all_picked", "goes_on_accepted"), ("some_left", "stays_smaller"))
        case "skip_compensation":
            left_out = intents.tried_in_vain(facts, step)
            calls = _compensations(facts, without=left_out)
            outcomes = (
                ("left_out", "effect_stays"),
                *(_COMPENSATION_OUTCOMES if calls else (("nothing_left", "closes"),)),
            )
            stays = tuple(summary.done(unit) for unit in planner.units(facts) if unit.id in left_out)
        case "confirm_verdict" if facts.proposal is not None:
            about = preview(facts, facts.proposal.verb, step=facts.proposal.step)
            return replace(about, verb=verb, step=step, needs_second=False)
        case "mark_acceptable":
            calls = _reads_of_end_states(facts)
            stays = tuple(summary.done(unit) for unit in planner.effects_left(facts))
            never = tuple(
                unit.step
                for unit in planner.current(facts)
                if unit.state in (ActionState.NOT_STARTED, ActionState.PREPARED)
            )
            outcomes = (("conditions_hold", "closes"), ("condition_fails", "stays_open"))
        case "resume":
            action = next(
                (
                    a
                    for a in planner.current(facts)
                    if a.state in (ActionState.NOT_STARTED, ActionState.PREPARED)
                ),
                None,
            )
            if action is not None and facts.direction.value == "forward":
                calls, outcomes = _numbered_calls([intents.forward(action)]), _CALL_OUTCOMES
            else:
                outcomes = (("nothing_left", "closes"),)
        case _:
            pass
    return PreviewFacts(
        verb=verb,
        step=step,
        calls=tuple(calls),
        outcomes=outcomes,
        irreversible=irreversible,
        needs_signoff=signoff,
        stays=stays,
        never_sent=never,
        args_before=before,
        args_after=after,
        needs_second=needs_second(facts, verb, step=step),
    )


def preview_of_edit(facts: RunFacts, verb: str, *, step: str, args: Json) -> PreviewFacts:
    """The preview of a verb that sends a step with other arguments. `facts` are unmasked, what is shown is not.

    Raises `NotAllowed` naming the fields that do not fit.
    """
    action = facts.action(step)
    new = edited(action, args)
    secret = action.contract.secret_fields
    shown = replace(action, args=mask(new, secret))
    changed = replace(facts, actions=tuple(shown if one is action else one for one in facts.actions))
    return replace(preview(changed, verb, step=step), args_before=mask(action.args, secret))


def signed_call(signoff: SignoffFacts) -> PlannedCall:
    """The call of a request for a signature, written down from the very document that is signed."""
    content, made_up = signoff.permit.document, signoff.compensation
    if not isinstance(content, dict):
        raise ValueError(f"{signoff.permit.ref} has no document")
    args, key = content["args"], str(content["key"])
    if made_up is None:
        return _call(1, signoff.action.step, signoff.action.contract, args, key, "forward")
    return _call(1, signoff.action.step, made_up.contract, args, key, "compensation")


def scope(facts: RunFacts, action: ActionFacts) -> dict[str, Json]:
    """What bindings of this action may read; the same names as under the run's lock."""
    bound: dict[str, Json] = {
        "input": facts.input,
        "args": action.args,
        "result": action.result,
        "prior": action.prior_state,
        "key": action.key,
        "forward_key": action.key,
        "run": {"ref": facts.ref, "business_ref": facts.business_ref},
    }
    for other in planner.current(facts):
        bound[f"steps.{other.step}.result"] = other.result
        bound[f"steps.{other.step}.args"] = other.args
        bound[f"steps.{other.step}.prior"] = other.prior_state
    return bound


def _effect(action: ActionFacts) -> str:
    return fill(action.contract.texts.effect or action.contract.texts.title, args=action.args)


def _numbered_calls(calls: Iterable[intents.Intended]) -> list[PlannedCall]:
    return [
        replace(
            _call(number, call.step, call.contract, call.args, call.key, "forward"),
            items=call.items,
        )
        for number, call in enumerate(calls, start=1)
    ]


def _call(number: int, step: str, contract: Contract, args: Json, key: str, direction: str) -> PlannedCall:
    written = _WORLD.describe(contract, args=args, key=key)
    return PlannedCall(
        number=number,
        step=step,
        tool=contract.tool,
        system=contract.system,
        direction=direction,
        line=f"{written.method} {written.url_path}",
        body=written.body,
        key=key if contract.has_effect else "",
        changes_state=contract.has_effect,
        text=written.summary,
    )


def _query(facts: RunFacts, step: str) -> list[PlannedCall]:
    """The question about a step; "" about every step of unknown outcome, each with its own question."""
    calls: list[PlannedCall] = []
    for action in planner.current(facts):
        if step and action.step != step:
            continue
        compensation = action.compensation
        if action.state is ActionState.UNKNOWN and action.contract.status_query is not None:
            query = action.contract.status_query
            bound = _bound(query.args, {**scope(facts, action), "args": action.args, "key": action.key})
            contract = _read_contract(facts, query.tool)
            calls.append(_call(len(calls) + 1, action.step, contract, bound, "", "query"))
        elif compensation is not None and compensation.state is CompensationState.UNKNOWN:
            calls += [_numbered(one, len(calls) + 1) for one in _query_compensation(facts, action)]
    return calls


def _query_compensation(facts: RunFacts, action: ActionFacts) -> list[PlannedCall]:
    compensation, declared = action.compensation, action.contract.compensation
    if compensation is None or declared is None:
        return []
    query = compensation.contract.status_query
    if query is not None:
        names = {**scope(facts, action), "args": compensation.args, "key": compensation.key}
        bound = _bound(query.args, names)
        return [_call(1, action.step, _read_contract(facts, query.tool), bound, "", "query")]
    condition = declared.already_done or declared.verify
    return _reads(facts, action, (condition,) if condition else (), 1, "query")


def _wants_signature(action: ActionFacts) -> bool:
    return action.compensation is not None and action.compensation.who == Who.APPROVAL


def _compensations(
    facts: RunFacts, *, without: Collection[int] = (), only: Collection[int] | None = None
) -> list[PlannedCall]:
    calls: list[PlannedCall] = []
    for action, row, declared in intents.to_make_up_for(facts, without, only):
        done = (declared.already_done,) if declared.already_done else ()
        calls += _reads(facts, action, (*done, *declared.preconditions), len(calls) + 1, "read")
        call = intents.compensating(action, row)
        calls += _trial(facts, call, len(calls) + 1)
        calls.append(_call(len(calls) + 1, call.step, call.contract, call.args, call.key, "compensation"))
    return calls


def _trial(facts: RunFacts, call: intents.Intended, number: int) -> list[PlannedCall]:
    """The dry run that goes before a compensating call, where the tool offers one."""
    offered = call.contract.dry_run
    if offered is None:
        return []
    bound = _bound(offered.args, {"args": call.args})
    return [_call(number, call.step, _read_contract(facts, offered.tool), bound, "", "read")]


def _reads(
    facts: RunFacts, action: ActionFacts, conditions: tuple[Condition, ...], first: int, direction: str
) -> list[PlannedCall]:
    calls: list[PlannedCall] = []
    seen: set[str] = set()
    for condition in conditions:
        if not condition.read:
            continue
        bound = _bound(condition.args, scope(facts, action))
        call = _call(
            first + len(calls), action.step, _read_contract(facts, condition.read), bound, "", direction
        )
        if call.line not in seen:
            seen.add(call.line)
            calls.append(call)
    return calls


def _reads_of_end_states(facts: RunFacts) -> list[PlannedCall]:
    calls: list[PlannedCall] = []
    seen: set[str] = set()
    first = planner.current(facts)[0]
    for end_state in facts.definition.end_states:
        conditions = tuple(c for c in end_state.conditions if not isinstance(c, StepIs))
        for call in _reads(facts, first, conditions, 1, "read"):
            if call.line not in seen:
                seen.add(call.line)
                calls.append(_numbered(call, len(calls) + 1))
    for end_state in facts.definition.end_states:
        for follow_up in end_state.follow_ups:
            contract = _read_contract(facts, follow_up.tool)
            bound = _bound(follow_up.args, scope(facts, first))
            call = _call(len(calls) + 1, "", contract, bound, "", "forward")
            calls.append(replace(call, text=follow_up.text, end_state=end_state.id))
    return calls


def _numbered(call: PlannedCall, number: int) -> PlannedCall:
    return replace(call, number=number)


def _read_contract(facts: RunFacts, tool: str) -> Contract:
    return pinned(facts.definition_id, tool)[1]


def _bound(template: Mapping[str, Json], names: Mapping[str, Json]) -> Json:
    try:
        return bind(dict(template), names)
    except Unbindable as error:
        return {"cannot be bound": str(error)}
