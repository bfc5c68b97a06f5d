"""How much a person may do within a while (security.md 3.10). The only writer of paces.

A limit is there against a script that runs wild and against guessing; no work of hands comes near it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench.errors import Answer, Refusal, Sentence

WHILE_S = 60
"""Seconds after which counting begins anew."""
PASSWORDS = 5
"""Passwords that one person may try within it."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Too fast; `first`: for the first time within this while, so that a flood leaves one entry and no more."""

    refusal: Refusal
    first: bool


def of_commands(actor: Actor) -> Wait | None:
    """Count a command; why it is one too many, or None."""
    text = _("More than %(most)s commands within a minute. Wait %(wait)s s.")
    return _count(actor, "command", settings.COMMANDS_A_MINUTE, text)


def of_passwords(actor: Actor) -> Refusal | None:
    """Count a password; why it is one too many and is not looked at, or None. Leaves its own entry."""
    wait = _count(actor, "password", PASSWORDS, _("Too many passwords. Wait %(wait)s s and try again."))
    if wait is None:
        return None
    if wait.first:
        after = {"asked": "password", "code": wait.refusal.code, "sentence": wait.refusal.sentence.plain()}
        api.log(name="request.refused", actor=actor, after=after)
    return wait.refusal


def _count(actor: Actor, what: str, most: int, text: object) -> Wait | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO workbench_pace AS p (who, what, since, count) VALUES (%(who)s, %(what)s, now_(), 1) "
            "ON CONFLICT (who, what) DO UPDATE SET "
            "since = CASE WHEN p.since > now_() - make_interval(secs => %(while)s) THEN p.since ELSE now_() END, "
            "count = CASE WHEN p.since > now_() - make_interval(secs => %(while)s) THEN p.count + 1 ELSE 1 END "
            "RETURNING count, ceil(extract(epoch FROM since + make_interval(secs => %(while)s) - now_()))",
            {"who": actor.id, "what": what, "while": WHILE_S},
        )
        count, wait_s = cursor.fetchone()
    if count <= most:
        return None
    seconds = max(int(wait_s), 1)
    sentence = Sentence(text, {"most": most, "wait": seconds})
    refusal = Refusal(answer=Answer.TOO_MANY, code="too_fast", sentence=sentence, wait_s=seconds)
    return Wait(refusal=refusal, first=count == most + 1)
