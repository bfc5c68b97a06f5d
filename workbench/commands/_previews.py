"""Previews: what a command would do, stored as shown, so that running it can be held to it (S1-16).

A preview belongs to one person, verb, step and version of the case and lives for five minutes.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.errors import NotAllowed
from sagas.facts import (
    Actor,
    ConditionCheck,
    DryRunSeen,
    EndStateCheck,
    PlannedCall,
    PreviewFacts,
    RunFacts,
)
from tools.canonical import fingerprint
from workbench import policies
from workbench.commands import _staleness
from workbench.commands._arguments import Arguments, parse_some
from workbench.commands._command import Command
from workbench.commands._registry import COMMANDS
from workbench.commands._result import Order
from workbench.errors import Answer, Moment, Refusal, Refused, Sentence, refusal_of
from workbench.models import Preview as StoredPreview
from workbench.models import User
from workbench.queries.bulks import behind

LIFE = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing checked when the preview was made. `code` names its sentence; `ok` None = not known."""

    code: str
    ok: bool | None
    parts: Mapping[str, str]
    at: datetime

    @property
    def text(self) -> Sentence:
        """The check in the reader's language."""
        return Sentence(CHECKS[self.code], self.parts)


CHECKS: Mapping[str, Any] = {
    "version": _("The case is at version %(version)s"),
    "claim_free": _("Nobody works on this case"),
    "claim_own": _("You work on this case"),
    "no_freeze": _("No freeze covers this"),
}


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The server's answer to "what would happen": the five sections of the page.

    `calls` in running order; `dry_runs` what the tools' test modes said about those with an effect; `checks` made just
    now; `outcomes` as codes (answer, what it leads to); `irreversible` what cannot be taken back; `end_states` with the
    conditions as just read; `stays` the effects that are left as they are; `never_sent` the steps that will not run any
    more; `args_before` and `args_after` what a step is sent with, masked; `shape` stands for the arguments that the
    preview was made for, unmasked.
    """

    id: str
    verb: str
    step: str
    handoff_ref: str
    run_ref: str
    version: int
    calls: tuple[PlannedCall, ...]
    dry_runs: tuple[DryRunSeen, ...]
    checks: tuple[Check, ...]
    outcomes: tuple[tuple[str, str], ...]
    irreversible: tuple[str, ...]
    end_states: tuple[EndStateCheck, ...]
    needs_signoff: bool
    stays: tuple[str, ...]
    never_sent: tuple[str, ...]
    args_before: Any
    args_after: Any
    needs_second: bool
    shaped_by_default: bool
    shape: str
    made_at: datetime
    expires_at: datetime


def make_preview(
    *,
    actor: Actor,
    person: User | None,
    facts: RunFacts,
    verb: str,
    step: str = "",
    arguments: Mapping[str, object] | None = None,
    life: timedelta | None = None,
    name: str = "pv",
    beside: Callable[[Preview], Mapping[str, Any]] = lambda made: {},
) -> Preview:
    """Store and return a preview. Raises Refused where the command itself would be refused now.

    `beside`: what is stored with it, made from it; `name` begins its reference.

    Of `arguments` only those count that shape it; without them it shows the step as it is.
    """
    command = COMMANDS[verb]
    roles = frozenset() if person is None else person.current_roles()
    refusal = policies.why_not(actor=actor, roles=roles, facts=facts, verb=verb, step=step)
    if refusal is not None:
        raise Refused(refusal)
    given = _shaping(command, arguments or {})
    refusal = command.refusal_of_shape(facts=facts, roles=roles, given=given)
    if refusal is not None:
        raise Refused(refusal)
    planned = _planned(facts, verb, step, given)
    about = replace(command.target(facts, None), step=step) if step else command.target(facts, None)
    looked = (
        api.look(facts, about.verb, step=about.step, reference=about.reference)
        if command.looks_for_preview
        else None
    )
    preview = Preview(
        id=f"{name}_{secrets.token_hex(8)}",
        verb=verb,
        step=step,
        handoff_ref=facts.handoff.ref if facts.handoff else "",
        run_ref=facts.ref,
        version=facts.version,
        calls=planned.calls,
        dry_runs=api.dry_runs(
            facts, verb, step=step, leave_out=given.get("leave_out", ()), args=given.get("args")
        ),
        checks=_checks(facts),
        outcomes=planned.outcomes,
        irreversible=planned.irreversible,
        end_states=looked.end_states if looked else (),
        needs_signoff=planned.needs_signoff,
        stays=planned.stays,
        never_sent=planned.never_sent,
        args_before=planned.args_before,
        args_after=planned.args_after,
        needs_second=planned.needs_second,
        shaped_by_default=not given,
        shape=_digest(given or {"args": planned.args_after}) if command.shaped_by else "",
        made_at=facts.now,
        expires_at=facts.now + (life or LIFE),
    )
    _store(preview, actor, facts, beside(preview))
    return preview


def _shaping(command: type[Command[Any]], raw: Mapping[str, object]) -> Mapping[str, Any]:
    parsed, problems = parse_some(command, raw, command.shaped_by)
    given = {name: value for name, value in parsed.items() if value not in ("", ())}
    if problems:
        first = next(iter(problems.values()))
        raise Refused(Refusal(answer=Answer.INVALID, code="invalid", sentence=first, fields=problems))
    return given


def _planned(facts: RunFacts, verb: str, step: str, given: Mapping[str, Any]) -> PreviewFacts:
    if "args" not in given:
        return api.preview(facts, verb, step=step, leave_out=given.get("leave_out", ()))
    try:
        return api.preview_with(facts, verb, step=step, args=given["args"])
    except NotAllowed as error:
        raise Refused(refusal_of(error.obstacle)) from error


def _digest(given: Mapping[str, Any]) -> str:
    """What tells two sets of arguments apart without keeping them: they may hold secrets."""
    return str(salted_hmac("workbench.preview", fingerprint(dict(given)), algorithm="sha256").hexdigest())


def find_preview(preview_id: str, *, actor: Actor) -> Preview | None:
    """A preview of one's own as it was shown, expired or not."""
    row = stored(preview_id, actor)
    return None if row is None else restored(row)


def stored(preview_id: str, actor: Actor) -> StoredPreview | None:
    """The row behind a preview of one's own."""
    if not preview_id.isascii() or not preview_id.isprintable():
        return None
    return StoredPreview.objects.filter(ref=preview_id, actor_id=actor.id).first()


def why_stale(
    command: type[Command[Any]], order: Order, facts: RunFacts, preview: StoredPreview | None
) -> Refusal | None:
    """Whether the author saw another version of the case than the one under lock.

    A run that nobody is asked about moves all the time: what may be done to it at any moment is never stale.
    """
    if not command.needs_preview or (command.anytime and order.run_ref):
        return None
    seen = {order.saw_version, preview.run_version if preview else None} - {None, facts.version}
    if not seen:
        return None
    by = _staleness.bulk_since(facts, preview)
    if by is not None:
        text = _("Bulk %(bulk)s of %(who)s went on with this case at %(at)s. Nothing was sent.")
        parts = {
            "bulk": behind(by.command_id),
            "who": by.actor_name,
            "at": Moment(by.at, facts.now, seconds=True),
        }
        return Refusal(answer=Answer.CONFLICT, code="stale", sentence=Sentence(text, parts))
    text = _("This case changed while you were reading. Nothing was sent.")
    return Refusal(answer=Answer.CONFLICT, code="stale", sentence=Sentence(text))


def why_unusable(
    command: type[Command[Any]],
    order: Order,
    facts: RunFacts,
    preview: StoredPreview | None,
    arguments: Arguments,
) -> Refusal | None:
    """Whether the preview that came along is missing, expired or one of something else."""
    if not command.needs_preview:
        return None
    if not order.preview_id:
        text = _("Nothing was sent. Look at the preview first.")
        return Refusal(answer=Answer.INVALID, code="preview_needed", sentence=Sentence(text))
    if preview is None or preview.expires_at <= facts.now:
        text = _("This preview has expired. Nothing was sent. Look at a new one.")
        return Refusal(answer=Answer.EXPIRED, code="preview_expired", sentence=Sentence(text))
    same_verb = (preview.verb, preview.run_ref) == (order.verb, facts.ref) and (
        not order.handoff_ref or preview.handoff_ref == order.handoff_ref
    )
    if same_verb and not _shaped_alike(command, preview, arguments):
        text = _("The arguments are not those that were shown. Nothing was sent. Look at what they come to.")
        return Refusal(answer=Answer.INVALID, code="preview_of_other", sentence=Sentence(text))
    if not same_verb or not _shows(preview, arguments):
        text = _("This preview shows something else. Nothing was sent. Look at a new one.")
        return Refusal(answer=Answer.INVALID, code="preview_of_other", sentence=Sentence(text))
    return None


def _shaped_alike(command: type[Command[Any]], preview: StoredPreview, arguments: Arguments) -> bool:
    """Whether the preview was made for these very arguments."""
    values = {name: getattr(arguments, name) for name in command.shaped_by}
    given = {name: value for name, value in values.items() if value not in (None, "", ())}
    if not given:
        return not command.shaped_by or bool(preview.content["shaped_by_default"])
    return bool(_digest(given) == preview.content["shape"])


def _shows(preview: StoredPreview, arguments: Arguments) -> bool:
    """Whether every call that the arguments ask for is among those that were shown."""
    steps = frozenset(getattr(arguments, "steps", ()))
    if not steps or steps == {preview.step}:
        return steps == {preview.step} or preview.step == getattr(arguments, "step", "")
    shown = {call["step"] for call in preview.content["calls"] if call["changes_state"]}
    return not preview.step and steps <= shown


def _checks(facts: RunFacts) -> tuple[Check, ...]:
    """What `policies.why_not` has just looked at, said in the affirmative."""
    claim = "claim_own" if policies.holder(facts) else "claim_free"
    version = {"version": str(facts.version)}
    return (
        Check(code="version", ok=True, parts=version, at=facts.now),
        Check(code=claim, ok=True, parts={}, at=facts.now),
        Check(code="no_freeze", ok=True, parts={}, at=facts.now),
    )


_ROW = ("id", "verb", "step", "handoff_ref", "run_ref", "version", "made_at", "expires_at")


def _store(preview: Preview, actor: Actor, facts: RunFacts, beside: Mapping[str, Any]) -> None:
    shown = {name: value for name, value in dataclasses.asdict(preview).items() if name not in _ROW}
    content = {**shown, **beside}
    StoredPreview.objects.create(
        ref=preview.id,
        actor_id=actor.id,
        verb=preview.verb,
        step=preview.step,
        handoff_ref=preview.handoff_ref,
        run_ref=preview.run_ref,
        run_version=preview.version,
        content=plain(content),
        seen=_staleness.snapshot(facts),
        created_at=preview.made_at,
        expires_at=preview.expires_at,
    )


def restored(row: StoredPreview) -> Preview:
    """A preview as it was shown."""
    content: Mapping[str, Any] = row.content
    return Preview(
        id=row.ref,
        verb=row.verb,
        step=row.step,
        handoff_ref=row.handoff_ref,
        run_ref=row.run_ref,
        version=row.run_version,
        calls=tuple(
            PlannedCall(**{**call, "items": tuple(call.get("items", ()))}) for call in content["calls"]
        ),
        dry_runs=tuple(
            DryRunSeen(**{**one, "read_at": _time(one["read_at"])}) for one in content.get("dry_runs", ())
        ),
        checks=tuple(Check(**{**check, "at": _time(check["at"])}) for check in content["checks"]),
        outcomes=tuple((when, then) for when, then in content["outcomes"]),
        irreversible=tuple(content["irreversible"]),
        end_states=tuple(_end_state(state) for state in content["end_states"]),
        needs_signoff=content["needs_signoff"],
        stays=tuple(content["stays"]),
        never_sent=tuple(content["never_sent"]),
        args_before=content["args_before"],
        args_after=content["args_after"],
        needs_second=content["needs_second"],
        shaped_by_default=content["shaped_by_default"],
        shape=content["shape"],
        made_at=row.created_at,
        expires_at=row.expires_at,
    )


def _end_state(state: Mapping[str, Any]) -> EndStateCheck:
    return EndStateCheck(**{**state, "conditions": conditions(state["conditions"])})


def conditions(stored: Iterable[Mapping[str, Any]]) -> tuple[ConditionCheck, ...]:
    """Conditions as they were read when it was made."""
    return tuple(ConditionCheck(**{**one, "read_at": _time(one["read_at"])}) for one in stored)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def plain(value: Any) -> Any:
    """Only what JSON knows; times as ISO texts."""
    match value:
        case datetime():
            return value.isoformat()
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case str():
            return str(value)
        case _:
            return value
