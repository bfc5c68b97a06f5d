"""What a door is answered: one frozen value, the same for the page and for the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sagas.facts import RunFacts
from workbench.errors import HTTP_STATUS, Answer, Refusal, Sentence


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that changed since the author looked. `kind` is case, step, claim or entry.

    `saw` and `now` are words (states, names); `by` and `at` say who and when where it is known.
    """

    kind: str
    what: str
    saw: str
    now: str
    by: str = ""
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a command ended. `facts` is the fresh case where there is one; `at` is the time of the effect.

    `wait_s`: seconds after which asking again may help.
    `replayed`: the command had run before and nothing ran now (S1-9). `scheduled`: accepted is not done yet.
    """

    status: Answer
    verb: str
    command_id: str
    code: str
    sentence: Sentence
    field_errors: Mapping[str, Sentence] = field(default_factory=dict)
    facts: RunFacts | None = None
    changed: tuple[Change, ...] = ()
    saw_version: int | None = None
    replayed: bool = False
    scheduled: bool = False
    at: datetime | None = None
    wait_s: int = 0

    @property
    def http_status(self) -> int:
        """The status every door answers with; 202 when what was accepted is still to be done."""
        if self.status is Answer.ACCEPTED and self.scheduled:
            return 202
        return HTTP_STATUS[self.status]

    @property
    def accepted(self) -> bool:
        """Whether the command has taken effect, now or before."""
        return self.status in (Answer.ACCEPTED, Answer.DUPLICATE)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A command as a door hands it over, before anything was checked."""

    verb: str
    handoff_ref: str
    command_id: str
    saw_version: int | None
    arguments: Mapping[str, object]
    preview_id: str
    door: str
    signoff_ref: str = ""
    run_ref: str = ""
    claims: bool = True
    confirmed: bool = True

    @property
    def target(self) -> str:
        """What it is about: a handoff, a request for a signature or a run; "" for the whole system."""
        return self.handoff_ref or self.signoff_ref or self.run_ref


def refused(
    order: Order, refusal: Refusal, *, facts: RunFacts | None, changed: tuple[Change, ...] = ()
) -> Result:
    """The answer that goes with a refusal."""
    return Result(
        status=refusal.answer,
        verb=order.verb,
        command_id=order.command_id,
        code=refusal.code,
        sentence=refusal.sentence,
        field_errors=refusal.fields,
        facts=facts,
        changed=changed,
        saw_version=order.saw_version,
        wait_s=refusal.wait_s,
    )
