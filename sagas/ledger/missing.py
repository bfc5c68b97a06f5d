"""A run that comes to a tool that is withdrawn, or unknown to this release: a person gets it, and no call goes out.

A registered compensation is never passed over: it fails with this reason and may be ordered again.
"""

from __future__ import annotations

from sagas import entries, planner, reach
from sagas.facts import ActionFacts
from sagas.ledger.desk import Desk
from sagas.reasons import Reason
from sagas.states import CompensationState
from tools.contract import Contract


def handed_over(desk: Desk, decision: planner.Decision) -> bool:
    """Whether the decision would call a tool that is out of reach; what becomes of it instead is done then."""
    match decision:
        case planner.AskApproval(action=facts, compensation=made_up) if made_up is not None:
            return _back(desk, facts)
        case planner.Check(action=facts) | planner.Resend(action=facts):
            return _back(desk, facts)
        case planner.ReadPrior(action=facts) if (prior := facts.contract.prior_state) is not None:
            return _forward(desk, facts, why_not(desk, desk.tool(prior.tool)[1]))
        case planner.Prepare(action=facts) | planner.Send(action=facts) | planner.AskApproval(action=facts):
            return _forward(desk, facts)
    return False


def why_not(desk: Desk, contract: Contract) -> str:
    """Why no call may go out under this contract now, as a sentence; "" if one may."""
    if why := reach.unknown_here(contract):
        return why
    reason = desk.withdrawn.get((contract.tool, contract.version))
    return "" if reason is None else f"version {contract.version} of {contract.tool} was withdrawn: {reason}"


def _forward(desk: Desk, facts: ActionFacts, why: str = "") -> bool:
    why = why_not(desk, facts.contract) or why
    if why:
        action = desk.action(facts.id)
        desk.hand_over(Reason.TOOL_WITHDRAWN, action=action, detail=why, actor=entries.PLANNER)
    return bool(why)


def _back(desk: Desk, facts: ActionFacts) -> bool:
    compensation = desk.compensations[facts.id]
    why = why_not(desk, desk.contract(compensation))
    if why and compensation.state == CompensationState.DUE and not compensation.in_doubt:
        desk.move(
            compensation,
            "stop",
            CompensationState.FAILED,
            actor=entries.PLANNER,
            reason=why,
            after={"of": facts.step, "tool": compensation.tool},
            error_class=Reason.TOOL_WITHDRAWN.value,
            error_detail=why,
        )
    elif why:
        # An earlier try of it may have been carried out: "failed" would be a lie.
        action = desk.action(facts.id)
        desk.hand_over(Reason.TOOL_WITHDRAWN, action=action, detail=why, actor=entries.PLANNER)
    return bool(why)
