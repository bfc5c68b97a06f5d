"""Start a bulk: the list as it was frozen, no case more. What becomes of it is gone on with by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.commands import _bulks
from workbench.commands._arguments import Arguments, Kind, ReasonArguments, argument
from workbench.commands._command import SystemCommand
from workbench.commands._reason_codes import bulk_codes
from workbench.errors import Answer, Moment, Refusal, Sentence
from workbench.models import Bulk
from workbench.models.bulk import BulkState
from workbench.policies import Permission

PER_SECOND = 10.0
MOST_PER_SECOND = 100.0


@dataclass(frozen=True, kw_only=True)
class BulkStartArguments(ReasonArguments):
    """`bulk` is the reference of a frozen list. `count`: how many cases go, typed where customers or money are touched.

    `person` and `end_state` belong to the verbs that ask for them, `per_second` slows it down.
    """

    bulk: str = argument(Kind.TEXT, _("List of cases"))
    count: str = argument(Kind.LINE, _("Number of cases"), default="")
    person: str = argument(Kind.CHOICE, _("Person"), default="")
    end_state: str = argument(Kind.END_STATE, _("Acceptable end state"), default="")
    per_second: str = argument(Kind.LINE, _("Cases a second at most"), default="")


class BulkStart(SystemCommand[BulkStartArguments]):
    """The author of the list starts it, within its time."""

    verb: ClassVar[str] = "bulk_start"
    label: ClassVar[Any] = _("Start")
    permission: ClassVar[Permission] = Permission.BULK
    arguments: ClassVar[type[Arguments]] = BulkStartArguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: BulkStartArguments) -> Refusal | None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is None:
            return _bulks.missing()
        return _why_not_startable(row, actor) or _why_not_whole(row, arguments)

    @classmethod
    def run(cls, *, actor: Actor, arguments: BulkStartArguments, command_id: str) -> None:
        row = _bulks.locked_bulk(arguments.bulk)
        if row is None:
            return
        now = api.now()
        row.reason = arguments.reason
        row.save(update_fields=["reason"])
        named = {
            "person": arguments.person,
            "end_state": arguments.end_state,
            "reason_code": arguments.reason_code,
        }
        _bulks.move_bulk(
            row,
            BulkState.RUNNING,
            actor=actor,
            reason=arguments.reason,
            reason_code=arguments.reason_code,
            command_id=command_id,
            arguments={name: value for name, value in named.items() if value},
            per_second=_rate(arguments.per_second) or PER_SECOND,
            actor_role=actor.role,
            started_at=now,
            next_at=now - timedelta(seconds=1),
        )


def _why_not_startable(row: Bulk, actor: Actor) -> Refusal | None:
    now = api.now()
    if row.actor_id != actor.id:
        text = _("%(who)s made this list: who is left out was decided for them. Make one of your own.")
        sentence = Sentence(text, {"who": row.actor_name})
        return Refusal(answer=Answer.FORBIDDEN, code="not_yours", sentence=sentence)
    if row.state != BulkState.FROZEN:
        at = Moment(row.started_at or now, now, seconds=True)
        sentence = Sentence(_("It was started at %(at)s. Nothing was sent a second time."), {"at": at})
        return Refusal(answer=Answer.CONFLICT, code="started", sentence=sentence)
    if row.expires_at <= now:
        at = Moment(row.frozen_at, now, seconds=True)
        text = _("This list was frozen at %(at)s and is too old. Nothing was sent. Freeze a new one.")
        return Refusal(answer=Answer.EXPIRED, code="list_expired", sentence=Sentence(text, {"at": at}))
    return None


def _why_not_whole(row: Bulk, given: BulkStartArguments) -> Refusal | None:
    wrong: dict[str, Sentence] = {}
    if row.typed is not None and given.count != str(row.typed):
        wrong["count"] = Sentence(_("Type %(number)s to confirm."), {"number": row.typed})
    if row.verb == "assign" and not given.person:
        wrong["person"] = Sentence(_("This is needed."))
    if row.verb == "mark_acceptable" and not given.end_state:
        wrong["end_state"] = Sentence(_("This is needed."))
    if given.reason_code and given.reason_code not in bulk_codes(row.verb):
        wrong["reason_code"] = Sentence(
            _("Choose one of %(choices)s."), {"choices": ", ".join(bulk_codes(row.verb))}
        )
    if given.per_second and _rate(given.per_second) is None:
        most = f"{MOST_PER_SECOND:g}"
        wrong["per_second"] = Sentence(_("Write a number above 0, at most %(most)s."), {"most": most})
    if not wrong:
        return None
    first = next(iter(wrong.values()))
    text = _("Nothing was sent. %(first)s")
    sentence = Sentence(text, {"first": first})
    return Refusal(answer=Answer.INVALID, code="invalid", sentence=sentence, fields=wrong)


def _rate(text: str) -> float | None:
    try:
        rate = float(text) if text else 0.0
    except ValueError:
        return None
    return rate if 0 < rate <= MOST_PER_SECOND else None
