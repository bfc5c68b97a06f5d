"""What a dry run says about a call: whether the tool would accept it, tried in the provider's own test mode.

Pure; an answer here is never evidence that anything took effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.bindings import Unbindable
from tools.conditions import evaluate
from tools.contract import Contract, DryRun, Json
from tools.outcome import Observation, OutcomeKind, Seen, classify
from tools.pointers import find
from tools.refusal import said
from tools.texts import inert

LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Whether the call would be accepted, and what was said of it; `accepted` None when nobody could tell."""

    accepted: bool | None
    detail: str = ""


def classify_dry_run(
    dry_run: DryRun, observation: Observation, scope: Mapping[str, Json], *, contract: Contract
) -> Tried:
    """What the answer of the tool that tries a call says. `contract` is that tool's, `scope` holds the call's args."""
    if observation.seen is Seen.ANSWER and observation.status in dry_run.refused_statuses:
        return Tried(accepted=False, detail=said(observation.body, code=contract.errors.code))
    outcome = classify(contract, observation)
    if outcome.kind is not OutcomeKind.CONFIRMED:
        return Tried(accepted=None, detail=outcome.detail or "no answer")
    try:
        accepted = evaluate(dry_run.accepted, outcome.result, scope)
    except Unbindable as error:
        return Tried(accepted=None, detail=str(error))
    why = find(outcome.result, dry_run.why) if dry_run.why and not accepted else ""
    return Tried(accepted=accepted, detail=inert(why)[:LONGEST] if isinstance(why, str) else "")
