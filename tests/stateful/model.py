"""The reference model: how a run ends, in plain lines, from what the world does to it and from nothing else.

Crashes, doubled and stale deliveries, clocks and queries are no arguments of it: they must not change the end.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = ("reserve_stock", "create_shipment", "send_notice")
"""The steps of the workflow, each named like its tool."""

DEFINITE = ("refuse",)
"""The tool says no: nothing took effect."""

TRANSIENT = (
    "fail_before",
    "fail_after",
    "garbage",
    "wrong_schema",
    "cut",
    "reset",
    "throttle",
    "not_found",
    "query_absent",
)
"""The first try goes wrong, with or without an effect; what became of it can be found out, and the next one works."""

MODES = ("ok", *DEFINITE, *TRANSIENT)


@dataclass
class ModelRun:
    """What the model knows of a run: where the world misbehaves, and what was done to it that may change its end."""

    step: str
    mode: str
    deaths: int = 0
    touched: bool = False
    stopped: bool = False


def ends(run: ModelRun) -> frozenset[str]:
    """The states in which the run may come to rest."""
    if run.stopped:
        # A stop that came after the last confirmation finds nothing to stop.
        return frozenset({"compensated", "failed_clean", "handoff", "completed"})
    if run.touched:
        return frozenset({"completed", "compensated", "failed_clean", "handoff"})
    if run.mode in DEFINITE:
        return refused_at(run.step)
    if run.deaths:
        # A death uses up a try like an answer that never came; with none left the step has failed.
        return (
            frozenset({"completed"})
            | refused_at(run.step)
            | frozenset({"compensated", "handoff", "failed_clean"})
        )
    return frozenset({"completed"})


def refused_at(step: str) -> frozenset[str]:
    """The end of a run whose step is refused: the first leaves nothing, the last is a person's."""
    return frozenset(
        {{"reserve_stock": "failed_clean", "create_shipment": "compensated", "send_notice": "handoff"}[step]}
    )


def may_stand(run: ModelRun, state: str) -> dict[str, set[int]]:
    """How often the effect of each step may stand in the world when the run rests in `state`."""
    match state:
        case "completed":
            return {step: {1} for step in STEPS}
        case "compensated" | "failed_clean":
            return {step: {0} for step in STEPS}
        case _:
            return {step: {0, 1} for step in STEPS}
