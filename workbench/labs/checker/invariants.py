"""All invariants by their names. V15 (secrecy) and V16 (isolation) belong to other commands."""

from __future__ import annotations

from collections.abc import Callable

from workbench.labs.checker import outside, record
from workbench.labs.checker.found import Found
from workbench.labs.checker.histories import Histories

type Invariant = Callable[[Histories], Found]

INVARIANTS: dict[str, Invariant] = {
    "V1 no loss": record.v1_no_loss,
    "V2 no phantom": outside.v2_no_phantom,
    "V3 at most once": outside.v3_at_most_once,
    "V4 truth": outside.v4_truth,
    "V5 order": outside.v5_order,
    "V6 no late orphan": outside.v6_no_late_orphan,
    "V7 stop means stop": record.v7_stop_means_stop,
    "V8 authorised": record.v8_authorised,
    "V9 audited": record.v9_audited,
    "V10 outbox": record.v10_outbox,
    "V11 liveness": record.v11_liveness,
    "V12 fence": record.v12_fence,
    "V13 conservation": outside.v13_conservation,
    "V14 counters": record.v14_counters,
}


def judge(histories: Histories) -> dict[str, Found]:
    """Every invariant by its name."""
    return {name: invariant(histories) for name, invariant in INVARIANTS.items()}
