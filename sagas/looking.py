"""Looking at the world: one condition read now, one call tried without its effect. Before a leap, after it, for people.

Writes nothing; called outside any transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from sagas.orders import Ask, ConditionSeen
from tools.bindings import Unbindable, bind
from tools.conditions import evaluate
from tools.contract import Condition, Contract, Json
from tools.dryrun import classify_dry_run
from tools.outcome import Outcome, OutcomeKind, Seen, classify
from tools.pointers import MISSING, find
from tools.world import World


def look_at(
    condition: Condition,
    world: World,
    reads: Mapping[str, Contract],
    scope: Mapping[str, Json],
    *,
    time_limit_s: float | None = None,
) -> ConditionSeen:
    """Read what a condition speaks of and say whether it is met; None when no answer came.

    A "not found" that the read's contract calls definite is an answer too: the document is then empty.
    """
    contract = reads.get(condition.read or "")
    if contract is None:
        return ConditionSeen(text=condition.text, met=None, detail=f"{condition.read} cannot be read")
    try:
        args = bind(dict(condition.args), scope)
    except Unbindable as error:
        return ConditionSeen(text=condition.text, met=None, detail=str(error))
    observation = world.call(contract, args=args, key="", time_limit_s=time_limit_s)
    outcome = classify(contract, observation)
    if outcome.kind is OutcomeKind.CONFIRMED:
        document: Json = outcome.result
    elif observation.seen is Seen.ANSWER and observation.status == 404:
        document = {}
    else:
        detail = outcome.detail or "no answer"
        return ConditionSeen(text=condition.text, met=None, detail=f"{contract.tool}: {detail}")
    try:
        met = evaluate(condition, document, scope)
    except Unbindable as error:
        return ConditionSeen(text=condition.text, met=None, detail=str(error))
    found = find(document, condition.pointer)
    shown = "nothing there" if found is MISSING else repr(found)
    return ConditionSeen(text=condition.text, met=met, detail=f"{contract.tool}: {shown}", body=document)


def try_out(
    contract: Contract,
    args: Json,
    world: World,
    reads: Mapping[str, Contract],
    *,
    time_limit_s: float | None = None,
) -> ConditionSeen | None:
    """Have a call tried in its provider's test mode; None where the tool offers none.

    `met` says whether it would be accepted, None when nobody could tell. No attempt, and no evidence of any effect.
    """
    offered = contract.dry_run
    if offered is None:
        return None
    text, tool = offered.accepted.text, reads.get(offered.tool)
    if tool is None:
        return ConditionSeen(text=text, met=None, detail=f"{offered.tool} cannot be asked")
    scope = {"args": args}
    try:
        bound = bind(dict(offered.args), scope)
    except Unbindable as error:
        return ConditionSeen(text=text, met=None, detail=str(error))
    observation = world.call(tool, args=bound, key="", time_limit_s=time_limit_s)
    tried = classify_dry_run(offered, observation, scope, contract=tool)
    said = tried.detail or ("accepted" if tried.accepted else "refused")
    return ConditionSeen(text=text, met=tried.accepted, detail=f"{tool.tool}: {said}")


def version_in(ask: Ask, outcome: Outcome) -> str:
    """The version that a prior state carries, where the contract points at one."""
    prior = ask.asked_of.prior_state if ask.asked_of else None
    if prior is None or not prior.version:
        return ""
    found = find(outcome.result, prior.version)
    return "" if found is MISSING or found is None else str(found)
