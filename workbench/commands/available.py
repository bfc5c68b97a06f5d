"""What can be done with a case: every verb, allowed ones and switched-off ones, in the order of the panel.

The sentence beside a switched-off offer is what a forced request would be answered. Writes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sagas import api
from sagas.facts import Actor, RunFacts
from workbench import policies
from workbench.commands._arguments import ArgumentField, Kind, fields_of
from workbench.commands._command import Command
from workbench.commands._registry import COMMANDS
from workbench.errors import Refusal, Sentence
from workbench.models import User
from workbench.roles import Role


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One action of the Decide panel. `reach`: read_only, writes or record_only; `writes` counts calls,
    `items` the parts that they carry where a step is a call over many.

    `code` and `sentence` are empty where `allowed`; `key` is the letter that picks it; `fields` what it asks.
    """

    verb: str
    step: str
    tool: str
    label: Sentence
    reach: str
    writes: int
    needs_preview: bool
    needs_reason: bool
    allowed: bool
    code: str
    sentence: Sentence | str
    key: str
    fields: tuple[ArgumentField, ...]
    items: int = 0


def available(facts: RunFacts, actor: Actor, person: User | None) -> tuple[Offer, ...]:
    """Every verb, one offer for each step it could apply to; one query for the roles, none besides."""
    roles = frozenset() if person is None else person.current_roles()
    shown = [command for command in COMMANDS.values() if command.offered(facts)]
    offers = [offer for command in shown for offer in _offers(command, facts, actor, roles)]
    panel = list(COMMANDS)
    return tuple(sorted(offers, key=lambda offer: (not offer.allowed, panel.index(offer.verb))))


def _offers(
    command: type[Command[Any]], facts: RunFacts, actor: Actor, roles: frozenset[Role]
) -> list[Offer]:
    fields = fields_of(command)
    by_step = any(field.kind is Kind.STEP for field in fields)
    steps = (api.targets(facts, command.verb) if by_step else ()) or ("",)
    return [_offer(command, facts, actor, roles, step, fields) for step in steps]


def _offer(
    command: type[Command[Any]],
    facts: RunFacts,
    actor: Actor,
    roles: frozenset[Role],
    step: str,
    fields: tuple[ArgumentField, ...],
) -> Offer:
    refusal = policies.why_not(actor=actor, roles=roles, facts=facts, verb=command.verb, step=step)
    tool = facts.action(step).tool if step else ""
    reach, writes, items = _reach(command, facts, step, refusal)
    return Offer(
        verb=command.verb,
        step=step,
        tool=tool,
        label=_label(command, tool),
        reach=reach,
        writes=writes,
        needs_preview=command.needs_preview,
        needs_reason=any(field.kind is Kind.REASON for field in fields),
        allowed=refusal is None,
        code=refusal.code if refusal else "",
        sentence=refusal.sentence if refusal else "",
        key=command.key,
        fields=fields,
        items=items,
    )


def _label(command: type[Command[Any]], tool: str) -> Sentence:
    return Sentence(command.label, {"tool": tool}) if tool else Sentence(command.label_alone or command.label)


def _reach(
    command: type[Command[Any]], facts: RunFacts, step: str, refusal: Refusal | None
) -> tuple[str, int, int]:
    """How far it reaches into the world; what is refused keeps the verb's own word."""
    if refusal is not None or not command.needs_preview:
        return command.reach, 0, 0
    calls = api.preview(facts, command.verb, step=step).calls
    writing = [call for call in calls if call.changes_state]
    if writing:
        # Of several end states one is accepted, so only its follow-ups are ever opened.
        ends = Counter(call.end_state for call in writing if call.end_state)
        writes = sum(not call.end_state for call in writing) + max(ends.values(), default=0)
        return "writes", writes, sum(len(call.items) for call in writing)
    if command.reach != "writes":
        return command.reach, 0, 0
    return ("read_only" if calls else "record_only"), 0, 0
