"""What asking shares, whoever is asked about: when "not there" is proof, and when to ask again."""

from __future__ import annotations

from datetime import timedelta

from sagas import entries
from sagas.ledger.desk import Desk
from sagas.models import Action, Compensation
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState
from tools.contract import Contract
from tools.outcome import QueryAnswer, Verdict
from tools.redact import mask_text

DISPATCH_WINDOW_S = 2.0
"""No byte leaves later than this after the COMMIT of `sent` was issued (engine.md, section 3)."""

_LONGEST_DETAIL = 2000


def absence_is_proof(desk: Desk, action: Action | Compensation, contract: Contract) -> bool:
    """Whether "not there" proves that it never took effect: an authoritative query, asked after every limit."""
    query = contract.status_query
    counts_at = action.not_found_counts_at
    return (query is None or query.authoritative) and (counts_at is None or desk.now >= counts_at)


def ask_again(
    desk: Desk, row: Action | Compensation, contract: Contract, answer: QueryAnswer, every_s: float = 2.0
) -> None:
    """Put the next query off, ever longer up to the contract's limit, and leave an entry of this one's answer."""
    query = contract.status_query
    every = query.every_s if query else every_s
    longest = query.max_every_s if query else 60.0
    wait = min(every * 2 ** min(row.queries, 10), longest)
    later = desk.now + timedelta(seconds=wait)
    counts_at = row.not_found_counts_at
    if answer.verdict is Verdict.ABSENT and counts_at is not None and counts_at > desk.now:
        later = min(later, counts_at) if later > counts_at else later
    desk.set(row, queries=row.queries + 1, due_at=later)
    desk.say(
        "tool.execution.queried",
        aside=True,
        actor=entries.VALIDATOR,
        step=desk.action(row.action_id).step if isinstance(row, Compensation) else row.step,
        reason=short(answer.detail),
        after={"verdict": answer.verdict.value, "next_query_at": later.isoformat()},
    )


def decide_tie(desk: Desk, action: Action, contract: Contract, answer: QueryAnswer) -> None:
    """Of two opposite things said for one moment the system's own answer counts; a "no" is a late fact (law 9)."""
    if answer.verdict is Verdict.NO_ANSWER:
        ask_again(desk, action, contract, answer)
        return
    desk.set(action, due_at=None)
    desk.say(
        "tool.execution.queried",
        aside=True,
        actor=entries.VALIDATOR,
        step=action.step,
        reason=short(answer.detail),
        after={"verdict": answer.verdict.value, "because": "two opposite answers for the same moment"},
    )
    if answer.verdict is not Verdict.FOUND:
        detail = f"{action.step} is said not to have happened: {answer.detail}"
        linked = desk.run.finished_at is not None
        desk.hand_over(Reason.LATE_FACT, action=action, detail=detail, actor=entries.VALIDATOR, linked=linked)


def short(detail: str) -> str:
    """A detail fit to be stored: secrets masked, length bounded."""
    return mask_text(detail)[:_LONGEST_DETAIL]


_ABOUT_UNKNOWN = frozenset(
    {Reason.UNKNOWN_UNRESOLVED, Reason.UNKNOWN_WITHOUT_QUERY, Reason.COMPENSATION_UNKNOWN}
)


def resolve_by_evidence(desk: Desk) -> None:
    """Evidence resolves an unclaimed handoff about the unknown once nothing is unknown any more; a claimed one waits
    for its owner.
    """
    handoff = desk.handoff
    if handoff is None or handoff.claimed_by or handoff.reason not in _ABOUT_UNKNOWN:
        return
    if any(row.state == ActionState.UNKNOWN for row in desk.actions if not desk.items(row)):
        return
    if any(row.state == CompensationState.UNKNOWN for row in desk.compensations.values()):
        return
    desk.close_handoff("settled by evidence", actor=entries.VALIDATOR)
