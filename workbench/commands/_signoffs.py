"""What is particular about commands on requests for signatures: who signs, what is judged, what a page offers.

`_dispatch` opens transaction, receipt and desk around it, as around every other command.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor, SignoffFacts
from workbench import policies
from workbench.commands import people
from workbench.commands._arguments import ArgumentField, Arguments, fields_of
from workbench.commands._command import SignoffCommand
from workbench.commands._registry import SIGNOFF_COMMANDS
from workbench.commands._result import Order
from workbench.errors import Answer, Moment, Refusal, Sentence
from workbench.models import User
from workbench.roles import Role


@dataclass(frozen=True, kw_only=True)
class SignoffOffer:
    """What can be done with a request; the sentence beside what cannot is what a forced request is answered."""

    verb: str
    label: Any
    allowed: bool
    code: str
    sentence: Sentence | str
    key: str
    fields: tuple[ArgumentField, ...]


def signoff_offers(signoff: SignoffFacts, actor: Actor, person: User | None) -> tuple[SignoffOffer, ...]:
    """Sign and reject, allowed or not; one query for the roles."""
    roles = frozenset() if person is None else person.current_roles()
    return tuple(_offer(command, signoff, actor, roles) for command in SIGNOFF_COMMANDS.values())


def _offer(
    command: type[SignoffCommand[Any]], signoff: SignoffFacts, actor: Actor, roles: frozenset[Role]
) -> SignoffOffer:
    refusal = policies.why_not_signoff(actor=actor, roles=roles, signoff=signoff, verb=command.verb)
    return SignoffOffer(
        verb=command.verb,
        label=command.label,
        allowed=refusal is None,
        code=refusal.code if refusal else "",
        sentence=refusal.sentence if refusal else "",
        key=command.key,
        fields=fields_of(command),
    )


def signatory(actor: Actor, person: User | None) -> Actor:
    """Who signs, in the role of an approver where they hold it.

    The account is locked until the transaction ends: a right that is being taken away is either gone before the
    signature is looked at, or taken away after it and finds it.
    """
    if person is None:
        return actor
    people.hold(person)
    return replace(actor, role=Role.APPROVER) if Role.APPROVER in person.current_roles() else actor


def judge(
    command: type[SignoffCommand[Any]],
    actor: Actor,
    roles: frozenset[Role],
    order: Order,
    parsed: Arguments | Refusal,
    desk: api.Desk,
) -> Refusal | None:
    """The first thing that speaks against it: rights, what happened meanwhile, mistakes in the form, a stale login."""
    signoff = desk.signoff(order.signoff_ref)
    refusal = policies.why_not_signoff(actor=actor, roles=roles, signoff=signoff, verb=command.verb)
    shown = getattr(parsed, "digest", "") or signoff.permit.digest
    if refusal is None and shown != signoff.permit.digest:
        text = _("You were shown something else than what would run. No signature was taken.")
        refusal = Refusal(answer=Answer.CONFLICT, code="stale", sentence=Sentence(text))
    if refusal is not None and refusal.code in ("void", "stale", "call_changed"):
        return _with_versions(refusal, order, signoff)
    if refusal is None and isinstance(parsed, Refusal):
        return parsed
    refusal = refusal or command.refusal(signoff=signoff, arguments=parsed)
    if refusal is None and command.confirms and not order.confirmed:
        return policies.unconfirmed()
    return refusal


def _with_versions(refusal: Refusal, order: Order, signoff: SignoffFacts) -> Refusal:
    """The same refusal, said by the versions of the case where the author has seen an older one."""
    run = signoff.run
    if order.saw_version is None or order.saw_version == run.version:
        return refusal
    text = _("The case went from version %(saw)s to %(now)s at %(at)s. No signature was taken.")
    at = Moment(run.changed_at, run.now, seconds=True)
    return replace(refusal, sentence=Sentence(text, {"saw": order.saw_version, "now": run.version, "at": at}))
