"""When the person of a session last showed who they are: at the login, or by their password since.

The only writer of that mark. For what it has to be how fresh is said in `workbench.policies`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench import policies
from workbench.commands import pace
from workbench.errors import Answer, Refusal, Sentence
from workbench.models import User

_MARK = "confirmed_at"


def at_login(*, request: HttpRequest, **signal: Any) -> None:
    """Receiver of Django's signal: a login is the first confirmation."""
    _note(request.session)


def is_fresh(session: SessionBase) -> bool:
    """Whether its person has shown lately that it is them; a session without the mark never has."""
    marked = session.get(_MARK)
    at = datetime.fromisoformat(marked) if marked else None
    return policies.is_fresh(confirmed_at=at, now=api.now())


def confirm(session: SessionBase, *, actor: Actor, person: User, password: str) -> Refusal | None:
    """Make the session fresh by the password of its person, under a new key (ASVS 7.2.4); why it stays as it is."""
    refusal = pace.of_passwords(actor)
    if refusal is None and not person.check_password(password):
        text = Sentence(_("This is not your password."))
        refusal = Refusal(
            answer=Answer.INVALID, code="wrong_password", sentence=text, fields={"password": text}
        )
    if refusal is None:
        session.cycle_key()
        _note(session)
    return refusal


def _note(session: SessionBase) -> None:
    session[_MARK] = api.now().isoformat()
