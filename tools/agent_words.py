"""The words in which an agent is told what became of one call (S1-19): one mapping, from outcomes to answers."""

from __future__ import annotations

from enum import StrEnum

from tools.contract import ErrorClass
from tools.outcome import OutcomeKind


class AnswerStatus(StrEnum):
    """The words that an agent is answered with (S1-19)."""

    SUCCEEDED = "succeeded"
    VALIDATION_FAILED = "validation_failed"
    PERMISSION_DENIED = "permission_denied"
    TIMEOUT_UNKNOWN = "timeout_unknown"
    PARTIAL_SUCCESS = "partial_success"
    COMPENSATION_REQUIRED = "compensation_required"
    HUMAN_REVIEW_REQUIRED = "human_review_required"


def answer_status(
    kind: OutcomeKind, error_class: ErrorClass | None = None, *, compensation_due: bool = False
) -> AnswerStatus | None:
    """The agent's word for one outcome (S1-19); None while the call is still under way or will be repeated.

    A definite refusal of any other class asks for compensation when earlier steps took effect
    (`compensation_due`), else for a person.
    """
    match kind:
        case OutcomeKind.CONFIRMED:
            return AnswerStatus.SUCCEEDED
        case OutcomeKind.UNKNOWN:
            return AnswerStatus.TIMEOUT_UNKNOWN
        case OutcomeKind.PARTIAL:
            return AnswerStatus.PARTIAL_SUCCESS
        case OutcomeKind.REJECTED:
            return _answer_to_rejection(error_class, compensation_due)
    return None


def _answer_to_rejection(error_class: ErrorClass | None, compensation_due: bool) -> AnswerStatus:
    if error_class is ErrorClass.VALIDATION:
        return AnswerStatus.VALIDATION_FAILED
    if error_class is ErrorClass.PERMISSION:
        return AnswerStatus.PERMISSION_DENIED
    return AnswerStatus.COMPENSATION_REQUIRED if compensation_due else AnswerStatus.HUMAN_REVIEW_REQUIRED
