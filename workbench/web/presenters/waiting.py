"""What one person stated and a second one is asked to confirm, in words."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sagas.facts import RunFacts
from workbench.commands import code_words
from workbench.web.presenters import text
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A verdict that waits for a second person."""

    says: SafeString
    quote: SafeString
    code: Words
    until: str


def waiting(facts: RunFacts, clock: Clock) -> Waiting | None:
    """What one person stated and a second one is asked to confirm, in words."""
    waits = facts.proposal
    if waits is None:
        return None
    says = {
        "resolve_happened": _("{who} stated at {at} that {step} did happen, reference {reference}."),
        "resolve_not_happened": _("{who} stated at {at} that {step} did not happen."),
        "mark_acceptable": _("{who} stated at {at} that the case can be accepted as “{end_state}”."),
    }[waits.verb]
    titles = {end.id: end.title for end in facts.definition.end_states}
    parts = {
        "who": text.strong(waits.proposed_by_name),
        "at": clock.time(waits.proposed_at),
        "step": waits.step,
        "reference": waits.reference,
        "end_state": titles.get(waits.end_state, waits.end_state),
    }
    return Waiting(
        says=text.say(says, **parts),
        quote=text.inert(waits.reason, 2000),
        code=code_words(waits.reason_code),
        until=_("A second person confirms or declines it by {at}.").format(at=clock.time(waits.expires_at)),
    )
