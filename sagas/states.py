"""Every state and every legal move, as tables: machine, verb, source, target, entry, who.

From these tables come the ledger's check, the database guard (migration), docs/states.md and the exhaustive
test. Nothing else in the product may list states or moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Machine(StrEnum):
    """The state machines; never one enumeration for two of them (S3-2)."""

    RUN = "run"
    ACTION = "action"
    COMPENSATION = "compensation"
    HANDOFF = "handoff"
    PERMIT = "permit"
    PROPOSAL = "proposal"


class Direction(StrEnum):
    """Which way a run goes."""

    FORWARD = "forward"
    UNDO = "undo"


class RunState(StrEnum):
    """The states of a run; the last four are final."""

    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    RECOVERING = "recovering"
    COMPENSATING = "compensating"
    HANDOFF = "handoff"
    COMPLETED = "completed"
    COMPENSATED = "compensated"
    FAILED_CLEAN = "failed_clean"
    CLOSED_ACCEPTED = "closed_accepted"


class ActionState(StrEnum):
    """The states of one action (S3-3). `unknown` is never "failed" (S3-4)."""

    NOT_STARTED = "not_started"
    PREPARED = "prepared"
    SENT = "sent"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    COMPENSATED = "compensated"
    ACCEPTED = "accepted"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


class CompensationState(StrEnum):
    """The states of a compensation."""

    REGISTERED = "registered"
    DUE = "due"
    AWAITING_APPROVAL = "awaiting_approval"
    SENT = "sent"
    CONFIRMED = "confirmed"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED_BY_OPERATOR = "skipped_by_operator"
    VOIDED = "voided"


class HandoffState(StrEnum):
    """The states of a handoff; the escalation level stands beside it."""

    OPEN = "open"
    CLAIMED = "claimed"
    RESOLVED = "resolved"


class PermitState(StrEnum):
    """The states of a permit, the engine's half of a sign-off."""

    REQUESTED = "requested"
    GRANTED = "granted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CONSUMED = "consumed"


class ProposalState(StrEnum):
    """The states of a proposal: one person's verdict that counts once a second person confirms it."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    DECLINED = "declined"
    EXPIRED = "expired"
    VOID = "void"


FINAL_RUN_STATES = frozenset(
    {RunState.COMPLETED, RunState.COMPENSATED, RunState.FAILED_CLEAN, RunState.CLOSED_ACCEPTED}
)
OPEN_RUN_STATES = frozenset(RunState) - FINAL_RUN_STATES


class Who(StrEnum):
    """Who may make a move: system owner, recovery, evidence, operator, second person, agent."""

    SYSTEM = "S"
    RECOVERY = "R"
    EVIDENCE = "E"
    OPERATOR = "O"
    SECOND = "P"
    AGENT = "A"


@dataclass(frozen=True, kw_only=True)
class Move:
    """One legal move. `source` None is birth. `entry` is the name of the entry that the move leaves."""

    machine: Machine
    verb: str
    source: str | None
    target: str
    entry: str
    who: str


def _moves(
    machine: Machine,
    verb: str,
    sources: tuple[str | None, ...],
    targets: tuple[str, ...],
    entry: str,
    who: str,
) -> tuple[Move, ...]:
    return tuple(
        Move(machine=machine, verb=verb, source=source, target=target, entry=entry, who=who)
        for source, target in product(sources, targets)
    )


_R, _A, _C, _H, _P = RunState, ActionState, CompensationState, HandoffState, PermitState
_ONWARD = (_R.RUNNING, _R.COMPENSATING)
_BEFORE_HANDOFF = (_R.RUNNING, _R.AWAITING_APPROVAL, _R.RECOVERING, _R.COMPENSATING)

RUN_MOVES: tuple[Move, ...] = (
    *_moves(Machine.RUN, "start", (None,), (_R.RUNNING,), "run.started", "A O S"),
    # Out of recovering when one commit settles what was unknown and asks for the signature that comes next.
    *_moves(
        Machine.RUN,
        "ask_approval",
        (*_ONWARD, _R.RECOVERING),
        (_R.AWAITING_APPROVAL,),
        "run.approval.requested",
        "S",
    ),
    *_moves(Machine.RUN, "granted", (_R.AWAITING_APPROVAL,), _ONWARD, "run.approval.settled", "P S"),
    *_moves(Machine.RUN, "lost", (*_ONWARD, _R.AWAITING_APPROVAL), (_R.RECOVERING,), "run.recovering", "S R"),
    *_moves(Machine.RUN, "settled", (_R.RECOVERING,), _ONWARD, "run.settled", "E S"),
    *_moves(
        Machine.RUN,
        "turn_back",
        (_R.RUNNING, _R.RECOVERING, _R.AWAITING_APPROVAL),
        (_R.COMPENSATING,),
        "run.compensating",
        "S O",
    ),
    *_moves(Machine.RUN, "open_handoff", _BEFORE_HANDOFF, (_R.HANDOFF,), "run.handed_off", "S O"),
    *_moves(Machine.RUN, "resume", (_R.HANDOFF,), _BEFORE_HANDOFF, "run.resumed", "O P E"),
    *_moves(
        Machine.RUN,
        "complete",
        (_R.RUNNING, _R.RECOVERING, _R.HANDOFF),
        (_R.COMPLETED,),
        "run.completed",
        "S O E",
    ),
    *_moves(
        Machine.RUN,
        "close_accepted",
        (_R.RUNNING, _R.RECOVERING, _R.COMPENSATING, _R.HANDOFF),
        (_R.CLOSED_ACCEPTED,),
        "run.closed_accepted",
        "O S",
    ),
    *_moves(
        Machine.RUN,
        "compensated",
        (_R.COMPENSATING, _R.RECOVERING, _R.HANDOFF),
        (_R.COMPENSATED,),
        "run.compensated",
        "S E",
    ),
    *_moves(
        Machine.RUN, "fail_clean", (*_BEFORE_HANDOFF, _R.HANDOFF), (_R.FAILED_CLEAN,), "run.failed_clean", "S"
    ),
)

_STARTED, _RETRY = "tool.execution.started", "tool.retry.scheduled"
_SUCCEEDED, _FAILED, _RESOLVED = (
    "tool.execution.succeeded",
    "tool.execution.failed",
    "tool.execution.resolved",
)

ACTION_MOVES: tuple[Move, ...] = (
    *_moves(Machine.ACTION, "plan", (None,), (_A.NOT_STARTED,), "tool.execution.planned", "S O"),
    *_moves(Machine.ACTION, "prepare", (_A.NOT_STARTED,), (_A.PREPARED,), "tool.execution.prepared", "S"),
    *_moves(
        Machine.ACTION, "skip", (_A.NOT_STARTED, _A.PREPARED), (_A.SKIPPED,), "tool.execution.skipped", "S O"
    ),
    *_moves(Machine.ACTION, "reprepare", (_A.PREPARED,), (_A.PREPARED,), "tool.execution.prepared", "S"),
    *_moves(Machine.ACTION, "refuse", (_A.NOT_STARTED, _A.PREPARED), (_A.REJECTED,), _FAILED, "S"),
    *_moves(Machine.ACTION, "send", (_A.PREPARED,), (_A.SENT,), _STARTED, "S"),
    *_moves(Machine.ACTION, "again", (_A.SENT,), (_A.PREPARED,), _RETRY, "S"),
    *_moves(Machine.ACTION, "confirm", (_A.SENT,), (_A.CONFIRMED,), _SUCCEEDED, "S E"),
    *_moves(Machine.ACTION, "await_answer", (_A.SENT,), (_A.SENT,), "tool.execution.accepted", "S"),
    *_moves(Machine.ACTION, "reject", (_A.SENT,), (_A.REJECTED,), _FAILED, "S E"),
    *_moves(Machine.ACTION, "partial", (_A.SENT,), (_A.PARTIAL,), "tool.execution.partial", "S"),
    *_moves(Machine.ACTION, "lose", (_A.SENT,), (_A.UNKNOWN,), "tool.execution.unknown", "S R"),
    *_moves(Machine.ACTION, "find", (_A.UNKNOWN,), (_A.CONFIRMED,), _RESOLVED, "E O P"),
    *_moves(Machine.ACTION, "deny", (_A.UNKNOWN,), (_A.REJECTED,), _RESOLVED, "E O P"),
    *_moves(Machine.ACTION, "absent", (_A.UNKNOWN,), (_A.PREPARED,), _RETRY, "S"),
    *_moves(Machine.ACTION, "repeat", (_A.UNKNOWN,), (_A.SENT,), _STARTED, "S"),
    *_moves(Machine.ACTION, "part_found", (_A.UNKNOWN,), (_A.PARTIAL,), _RESOLVED, "E"),
    *_moves(
        Machine.ACTION,
        "accept",
        (_A.UNKNOWN, _A.PARTIAL, _A.REJECTED, _A.CONFIRMED),
        (_A.ACCEPTED,),
        "tool.execution.accepted_by_person",
        "O P",
    ),
    *_moves(Machine.ACTION, "all_settled", (_A.PARTIAL,), (_A.CONFIRMED,), _SUCCEEDED, "S"),
    *_moves(
        Machine.ACTION, "all_compensated", (_A.PARTIAL,), (_A.COMPENSATED,), "tool.execution.compensated", "S"
    ),
    *_moves(Machine.ACTION, "nothing_applied", (_A.PARTIAL,), (_A.REJECTED,), _RESOLVED, "E"),
    *_moves(Machine.ACTION, "retry_items", (_A.PARTIAL,), (_A.PARTIAL,), _RETRY, "O S"),
    *_moves(Machine.ACTION, "retry", (_A.REJECTED,), (_A.PREPARED,), _RETRY, "O A"),
    *_moves(
        Machine.ACTION,
        "supersede",
        (_A.REJECTED, _A.COMPENSATED, _A.SKIPPED),
        (_A.SUPERSEDED,),
        "tool.execution.superseded",
        "O",
    ),
    *_moves(Machine.ACTION, "late_found", (_A.REJECTED,), (_A.CONFIRMED,), _RESOLVED, "E"),
    *_moves(
        Machine.ACTION, "compensated", (_A.CONFIRMED,), (_A.COMPENSATED,), "tool.execution.compensated", "S E"
    ),
)

_C_STARTED, _C_DONE = "tool.compensation.started", "tool.compensation.succeeded"
_C_FAILED, _C_RETRY = "tool.compensation.failed", "tool.compensation.retry.scheduled"

COMPENSATION_MOVES: tuple[Move, ...] = (
    *_moves(Machine.COMPENSATION, "register", (None,), (_C.REGISTERED,), "tool.compensation.registered", "S"),
    *_moves(
        Machine.COMPENSATION, "void", (_C.REGISTERED, _C.DUE), (_C.VOIDED,), "tool.compensation.voided", "S E"
    ),
    *_moves(
        Machine.COMPENSATION,
        "register_again",
        (_C.VOIDED,),
        (_C.REGISTERED,),
        "tool.compensation.registered",
        "S",
    ),
    *_moves(Machine.COMPENSATION, "turn", (_C.REGISTERED,), (_C.DUE,), "tool.compensation.due", "S"),
    *_moves(
        Machine.COMPENSATION,
        "ask_approval",
        (_C.DUE,),
        (_C.AWAITING_APPROVAL,),
        "tool.compensation.approval.requested",
        "S",
    ),
    *_moves(
        Machine.COMPENSATION,
        "approval_settled",
        (_C.AWAITING_APPROVAL,),
        (_C.DUE, _C.FAILED),
        "tool.compensation.approval.settled",
        "P S",
    ),
    *_moves(Machine.COMPENSATION, "send", (_C.DUE,), (_C.SENT,), _C_STARTED, "S"),
    *_moves(Machine.COMPENSATION, "already_done", (_C.DUE,), (_C.CONFIRMED,), _C_DONE, "E"),
    *_moves(Machine.COMPENSATION, "stop", (_C.DUE,), (_C.FAILED,), _C_FAILED, "S"),
    *_moves(Machine.COMPENSATION, "confirm", (_C.SENT,), (_C.CONFIRMED,), _C_DONE, "S E"),
    *_moves(Machine.COMPENSATION, "again", (_C.SENT,), (_C.DUE,), _C_RETRY, "S"),
    *_moves(Machine.COMPENSATION, "fail", (_C.SENT,), (_C.FAILED,), _C_FAILED, "S"),
    *_moves(Machine.COMPENSATION, "lose", (_C.SENT,), (_C.UNKNOWN,), "tool.compensation.unknown", "S R"),
    *_moves(Machine.COMPENSATION, "find", (_C.UNKNOWN,), (_C.CONFIRMED,), _C_DONE, "E O P"),
    *_moves(Machine.COMPENSATION, "absent", (_C.UNKNOWN,), (_C.DUE,), _C_RETRY, "S O P"),
    *_moves(Machine.COMPENSATION, "order", (_C.FAILED,), (_C.DUE,), _C_RETRY, "O"),
    *_moves(
        Machine.COMPENSATION,
        "skip",
        (_C.REGISTERED, _C.DUE, _C.FAILED),
        (_C.SKIPPED_BY_OPERATOR,),
        "tool.compensation.skipped",
        "O",
    ),
    *_moves(Machine.COMPENSATION, "late_found", (_C.FAILED,), (_C.CONFIRMED,), _C_DONE, "E"),
)

HANDOFF_MOVES: tuple[Move, ...] = (
    *_moves(Machine.HANDOFF, "open", (None,), (_H.OPEN,), "human.handoff.started", "S O"),
    *_moves(Machine.HANDOFF, "claim", (_H.OPEN,), (_H.CLAIMED,), "human.handoff.claimed", "O"),
    *_moves(Machine.HANDOFF, "take_over", (_H.CLAIMED,), (_H.CLAIMED,), "human.handoff.claimed", "O"),
    *_moves(Machine.HANDOFF, "assign", (_H.OPEN, _H.CLAIMED), (_H.CLAIMED,), "human.handoff.assigned", "O"),
    *_moves(Machine.HANDOFF, "release", (_H.CLAIMED,), (_H.OPEN,), "human.handoff.released", "O S"),
    *_moves(Machine.HANDOFF, "reopen", (_H.RESOLVED,), (_H.OPEN,), "human.handoff.reopened", "S"),
    *_moves(
        Machine.HANDOFF, "resolve", (_H.OPEN, _H.CLAIMED), (_H.RESOLVED,), "human.handoff.resolved", "O S E"
    ),
)

PERMIT_MOVES: tuple[Move, ...] = (
    *_moves(Machine.PERMIT, "request", (None,), (_P.REQUESTED,), "approval.requested", "S O"),
    *_moves(
        Machine.PERMIT,
        "decide",
        (_P.REQUESTED,),
        (_P.GRANTED, _P.REJECTED, _P.EXPIRED, _P.WITHDRAWN),
        "approval.settled",
        "P S O",
    ),
    *_moves(Machine.PERMIT, "lapse", (_P.GRANTED,), (_P.EXPIRED, _P.WITHDRAWN), "approval.lapsed", "S O"),
    *_moves(Machine.PERMIT, "consume", (_P.GRANTED,), (_P.CONSUMED,), "approval.consumed", "S"),
)

_V = ProposalState

PROPOSAL_MOVES: tuple[Move, ...] = (
    *_moves(Machine.PROPOSAL, "propose", (None,), (_V.OPEN,), "verdict.proposed", "O"),
    *_moves(Machine.PROPOSAL, "confirm", (_V.OPEN,), (_V.CONFIRMED,), "verdict.confirmed", "P"),
    *_moves(Machine.PROPOSAL, "decline", (_V.OPEN,), (_V.DECLINED,), "verdict.declined", "O P"),
    *_moves(Machine.PROPOSAL, "lapse", (_V.OPEN,), (_V.EXPIRED,), "verdict.expired", "S"),
    *_moves(Machine.PROPOSAL, "void", (_V.OPEN,), (_V.VOID,), "verdict.void", "S O"),
)

MOVES: tuple[Move, ...] = (
    *RUN_MOVES,
    *ACTION_MOVES,
    *COMPENSATION_MOVES,
    *HANDOFF_MOVES,
    *PERMIT_MOVES,
    *PROPOSAL_MOVES,
)

STATES: dict[Machine, tuple[str, ...]] = {
    Machine.RUN: tuple(RunState),
    Machine.ACTION: tuple(ActionState),
    Machine.COMPENSATION: tuple(CompensationState),
    Machine.HANDOFF: tuple(HandoffState),
    Machine.PERMIT: tuple(PermitState),
    Machine.PROPOSAL: tuple(ProposalState),
}

_BY_VERB = {(move.machine, move.verb, move.source, move.target): move for move in MOVES}


def move(machine: Machine, verb: str, source: str | None, target: str) -> Move:
    """The move's row. Raises `KeyError` naming the move when the tables do not allow it."""
    try:
        return _BY_VERB[(machine, verb, source, target)]
    except KeyError:
        raise KeyError(f"{machine} may not {verb} from {source} to {target}") from None


def run_verb(source: RunState, target: RunState) -> str:
    """The verb that leads a run from `source` to `target`; the state of a run is derived, so the verb is too.

    Raises `KeyError` when no row of the table does.
    """
    for row in RUN_MOVES:
        if row.source == source and row.target == target:
            return row.verb
    raise KeyError(f"run may not go from {source} to {target}")


def legal_pairs() -> frozenset[tuple[str, str, str]]:
    """(machine, source, target) of every move; birth has source "". The database guard holds the same set."""
    return frozenset((move.machine.value, move.source or "", move.target) for move in MOVES)
