"""What a refusal is: a result word, a stable code, a sentence that can be shown in the reader's language.

Every "no" of the workbench is one of these values, whether it stands beside a switched-off button, answers a
form or goes out as problem+json. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from django.utils import timezone, translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

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
    UNCONFIRMED = "unconfirmed"
    TOO_MANY = "too_many"
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
    Answer.UNCONFIRMED: 428,
    Answer.TOO_MANY: 429,
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


def kept(sentence: Sentence) -> dict[str, Any]:
    """A sentence as it is stored: its template in English and its parts."""
    with translation.override("en"):
        return {
            "text": str(sentence.template),
            "parts": {name: _part(part) for name, part in sentence.parts.items()},
        }


def told(stored: Mapping[str, Any]) -> Sentence:
    """The sentence again; it becomes text in the language of whoever reads it."""
    if not stored:
        return Sentence("")
    text: str = stored["text"]
    return Sentence(_(text), {name: _restored(part) for name, part in stored.get("parts", {}).items()})


def _part(part: object) -> Any:
    match part:
        case Moment():
            now = part.now.isoformat() if part.now else ""
            return {"at": part.at.isoformat(), "now": now, "seconds": part.seconds}
        case Sentence():
            return {"sentence": kept(part)}
        case Promise():
            return {"word": str(part)}
        case int() | float():
            return part
        case _:
            return str(part)


def _restored(part: Any) -> object:
    match part:
        case {"at": at, "now": now, "seconds": seconds}:
            return Moment(
                datetime.fromisoformat(at), datetime.fromisoformat(now) if now else None, seconds=seconds
            )
        case {"sentence": sentence}:
            return told(sentence)
        case {"word": str(word)}:
            return _(word)
        case _:
            return part


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why something is not done. `code` is stable, the sentence is not; `fields` name bad arguments.

    `wait_s`: seconds after which asking again may help, where that is known.
    """

    answer: Answer
    code: str
    sentence: Sentence
    fields: Mapping[str, Sentence] = field(default_factory=dict)
    wait_s: int = 0


# The engine's obstacles by code, as templates over their params; a missing code keeps its own sentence.
OBSTACLES: Mapping[str, object] = {
    "final": _("This case is closed (%(state)s). Nothing can be changed."),
    "open_already": _("%(ref)s is open for this run."),
    "goes_on": _("The run goes on. A case opens by itself when it needs a person again."),
    "no_handoff": _("No person is asked about this run just now."),
    "in_flight": _("%(step)s is in flight. Its answer comes first."),
    "nothing_unknown": _("The outcome of every step is known."),
    "no_status_query": _("%(tool)s offers no status query. Look in %(system)s and record what you found."),
    "turned_back": _("Compensation has begun already."),
    "stopped_already": _("%(who)s began the compensation at %(time)s."),
    "none_runs": _("No compensation is under way."),
    "paused_already": _("%(who)s paused the compensation at %(time)s."),
    "not_paused": _("The compensation is not paused."),
    "nothing_asked": _("Nothing waits for a signature."),
    "not_all": _(
        "All that took effect is compensated, last step first. What is to stay is left out, with a reason."
    ),
    "not_in_plan": _("Only a step whose compensation is open can be left out."),
    "nothing_to_retry": _("No step was rejected."),
    "unknown_and_no_key": _("Outcome is unknown and %(system)s does not de-duplicate. Query status first."),
    "key_no_longer_kept": _("%(system)s no longer keeps the key of this call. Query status first."),
    "too_early": _("It may still arrive: that it is not there counts only from %(time)s."),
    "proposal_waits": _("%(who)s has stated something that waits for a second person."),
    "no_proposal": _("Nothing waits for a second person."),
    "own_proposal": _("You stated it or worked on it, somebody else must confirm it."),
    "unknown_first": _("The outcome of %(step)s is unknown. Query status first."),
    "nothing_to_compensate": _("No effect is left to compensate."),
    "not_the_last": _("%(last)s was confirmed later and comes first: compensations run in reverse order."),
    "irreversible": _("%(tool)s is irreversible. There is no compensation that could be run."),
    "unbindable": _("The compensation of %(step)s cannot be written down: %(detail)s"),
    "signoff_needed": _("%(tool)s needs the signature of an approver before it may run."),
    "outstanding": _("The compensation of %(step)s is not settled. Query status first."),
    "no_end_states": _("This workflow declares no acceptable end state."),
    "highest": _("This case is at the highest level already."),
    "not_rejected": _("Only a step that was rejected can be sent with other arguments."),
    "args_do_not_fit": _("The arguments do not fit. %(where)s %(why)s"),
    "args_unchanged": _("These are the arguments as they were. Retry sends them again."),
    "not_compensated": _("Only a step that was compensated can be made once more."),
    "not_the_first": _("%(first)s was compensated too and comes first: the run goes forward from there."),
    "compensation_under_way": _(
        "The compensation of %(step)s is under way or has failed. It is settled first."
    ),
    "not_failed": _("Only a compensation that was tried and failed can be left out."),
    "not_tried": _(
        "The compensation of %(step)s has not been tried yet: nobody signed it. Order it once more."
    ),
    "not_refused_item": _("Only items that were refused can be accepted as they are."),
    "not_claimed": _("Nobody has claimed this case."),
    "still_stuck": _("Nothing has changed yet that would let the run go on."),
}


def in_words(obstacle: Obstacle) -> Sentence:
    """The engine's reason in the reader's language."""
    template = OBSTACLES.get(obstacle.code)
    if template is None:
        return Sentence(obstacle.sentence)
    parts = {name: _in_words(name, part) for name, part in obstacle.params.items()}
    return Sentence(template, parts)


def _in_words(name: str, part: object) -> object:
    """A part of an obstacle: its times become the reader's."""
    return (
        Moment(datetime.fromisoformat(part), seconds=True)
        if name == "time" and isinstance(part, str)
        else part
    )


def refusal_of(obstacle: Obstacle) -> Refusal:
    """The engine's reason as a refusal: a conflict, or arguments that do not fit, field by field."""
    fields = {name: Sentence(why) for name, why in obstacle.fields}
    answer = Answer.INVALID if fields else Answer.CONFLICT
    return Refusal(answer=answer, code=obstacle.code, sentence=in_words(obstacle), fields=fields)


class WorkbenchError(Exception):
    """The workbench could not do what was asked."""

    code = "workbench_error"


class Refused(WorkbenchError):
    """A rule says no; `refusal` says which."""

    code = "refused"

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal.sentence))
        self.refusal = refusal
