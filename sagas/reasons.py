"""Why a run was handed to a person: stable codes. The sentences belong to the screens."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The codes of S0-32 and S0-43, each with its own path."""

    UNKNOWN_UNRESOLVED = "unknown_unresolved"
    UNKNOWN_WITHOUT_QUERY = "unknown_without_query"
    REJECTED = "rejected"
    PARTIAL = "partial"
    PIVOT = "pivot"
    EFFECTS_LEFT = "effects_left"
    NO_COMPENSATION = "no_compensation"
    COMPENSATION_FAILED = "compensation_failed"
    COMPENSATION_UNKNOWN = "compensation_unknown"
    COMPENSATION_UNBINDABLE = "compensation_unbindable"
    TOOL_WITHDRAWN = "tool_withdrawn"
    SIGNOFF_NEEDED = "signoff_needed"
    APPROVAL_EXPIRED = "approval_expired"
    LATE_FACT = "late_fact"
    THROTTLED = "throttled"
    TOOL_PAUSED = "tool_paused"
    QUARANTINED = "quarantined"
    ESCALATED = "escalated"
    REOPENED = "reopened"
