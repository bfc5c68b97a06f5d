"""What a refusal is: a result word, a stable code, a sentence that can be shown in the reader's language.

Every "no" of the workbench is one of these values, whether it stands beside a switched-off button, answers a
form or goes out as problem+json. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from django.utils import timezone, translation

from sagas.facts import Obstacle


class Answer(StrEnum):
    """How a command ended."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    FROZEN = "frozen"
    EXPIRED = "expired"
    BUSY = "busy"
    NOT_FOUND = "not_found"


HTTP_STATUS: Mapping[Answer, int] = {
    Answer.ACCEPTED: 200,
    Answer.DUPLICATE: 200,
    Answer.CONFLICT: 409,
    Answer.FORBIDDEN: 403,
    Answer.INVALID: 422,
    Answer.FROZEN: 423,
    Answer.EXPIRED: 410,
    Answer.BUSY: 409,
    Answer.NOT_FOUND: 404,
}


@dataclass(frozen=True)
class Sentence:
    """A translatable template with named parts; it becomes text in the language of whoever reads it."""

    template: object
    parts: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.template) % self.parts if self.parts else str(self.template)

    def plain(self) -> str:
        """The text as the trail keeps it: English, times in UTC, whoever asked."""
        with translation.override("en"), timezone.override(UTC):
            return str(self)


@dataclass(frozen=True)
class Moment:
    """A time inside a sentence: in the reader's zone, with the day when it is not today's."""

    at: datetime
    now: datetime | None = None
    seconds: bool = False

    def __str__(self) -> str:
        here = timezone.localtime(self.at)
        same_day = self.now is None or timezone.localtime(self.now).date() == here.date()
        clock = f"{here:%H:%M:%S}" if self.seconds else f"{here:%H:%M}"
        return clock if same_day else f"{here:%Y-%m-%d} {clock}"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why something is not done. `code` is stable, the sentence is not; `fields` name bad arguments."""

    answer: Answer
    code: str
    sentence: Sentence
    fields: Mapping[str, Sentence] = field(default_factory=dict)


# The engine's obstacles by code, as templates over their params; a missing code keeps its own sentence.
OBSTACLES: Mapping[str, object] = {}


def in_words(obstacle: Obstacle) -> Sentence:
    """The engine's reason in the reader's language."""
    template = OBSTACLES.get(obstacle.code)
    return Sentence(obstacle.sentence) if template is None else Sentence(template, obstacle.params)


class WorkbenchError(Exception):
    """The workbench could not do what was asked."""

    code = "workbench_error"


class Refused(WorkbenchError):
    """A rule says no; `refusal` says which."""

    code = "refused"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal.sentence))
        self.refusal = refusal
