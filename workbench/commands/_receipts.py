"""Receipts: one command id of one actor has one effect, however often it arrives (S1-6, S1-9).

The id is locked for the length of the transaction, so a second click waits for the first and then reads its
receipt; the unique constraint stands behind that.
"""

from __future__ import annotations

import hashlib

from django.db import OperationalError, connection
from django.utils.translation import gettext_lazy as _

from sagas.facts import Actor, RunFacts
from tools import canonical
from workbench.commands._result import Order, Result
from workbench.errors import Answer, Moment, Refusal, Refused, Sentence, WorkbenchError
from workbench.models import Receipt

PATIENCE = "4s"


class StillRunning(WorkbenchError):
    """The first request with this command id is still running; ask again in a moment."""

    code = "busy"


def digest(order: Order) -> str:
    """What was asked, without what was seen: the same wish after a reload is the same wish."""
    asked = {"verb": order.verb, "target": order.target, "arguments": _plain(order.arguments)}
    return canonical.digest(asked)


def lock(actor: Actor, command_id: str) -> None:
    """Be the only one with this command id until the transaction ends. Raises StillRunning."""
    key = int.from_bytes(hashlib.sha256(f"{actor.id}\n{command_id}".encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        usual = cursor.fetchone()[0]
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])
        try:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) == "55P03":
                raise StillRunning(StillRunning.__doc__) from error
            raise
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [usual])


def earlier(actor: Actor, order: Order) -> Receipt | None:
    """The receipt of this very command. Raises Refused when the id was used for something else."""
    receipt = Receipt.objects.filter(actor_id=actor.id, command_id=order.command_id).first()
    if receipt is not None and receipt.digest != digest(order):
        text = _("This request id was used before for something else. Nothing was sent. Reload the page.")
        raise Refused(Refusal(answer=Answer.INVALID, code="command_id_reused", sentence=Sentence(text)))
    return receipt


def replay(receipt: Receipt, order: Order, facts: RunFacts | None) -> Result:
    """The answer to a command that has run before: what happened then, and that nothing happened now."""
    text = _("Already done at %(at)s. It ran once.")
    return Result(
        status=Answer.DUPLICATE,
        verb=receipt.verb,
        command_id=receipt.command_id,
        code=receipt.code,
        sentence=Sentence(text, {"at": Moment(receipt.at, seconds=True)}),
        facts=facts,
        saw_version=order.saw_version,
        replayed=True,
        scheduled=receipt.scheduled,
        at=receipt.at,
    )


def keep(actor: Actor, order: Order, *, scheduled: bool, facts: RunFacts | None) -> Receipt:
    """Store the receipt of a command that has just taken effect, in its own transaction."""
    receipt = Receipt.objects.create(
        actor_id=actor.id,
        command_id=order.command_id,
        verb=order.verb,
        target=order.target,
        digest=digest(order),
        status=Answer.ACCEPTED,
        code=order.verb,
        scheduled=scheduled,
        run_version=None if facts is None else facts.version,
    )
    receipt.refresh_from_db(fields=["at"])
    return receipt


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value.strip() if isinstance(value, str) else value
