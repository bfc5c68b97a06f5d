"""What was asked for, read: the arguments of a command, and whether the case has the steps that they name."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from sagas.facts import RunFacts
from workbench.commands._arguments import Arguments, parse
from workbench.commands._command import Command, SignoffCommand, SystemCommand
from workbench.commands._result import Order
from workbench.errors import Answer, Refusal, Sentence

type _Any = type[Command[Any] | SignoffCommand[Any] | SystemCommand[Any]]


def read(command: _Any, order: Order) -> Arguments | Refusal:
    """The arguments, or everything that is wrong with them in one refusal."""
    if not order.command_id:
        return _invalid("command_id", Sentence(_("A request needs an id of 1 to 100 plain characters.")))
    parsed = parse(command, order.arguments)
    if isinstance(parsed, Arguments):
        return parsed
    text = ngettext_lazy(
        "Nothing was sent. One thing to fix: %(first)s",
        "Nothing was sent. %(count)s things to fix, first: %(first)s",
        len(parsed),
    )
    first = next(iter(parsed.values()))
    sentence = Sentence(text, {"first": first, "count": len(parsed)})
    return Refusal(answer=Answer.INVALID, code="invalid", sentence=sentence, fields=parsed)


def step_in(parsed: Arguments | Refusal, facts: RunFacts) -> str:
    """The step that is named, if the case has it; else ""."""
    step = getattr(parsed, "step", "")
    return step if any(action.step == step for action in facts.actions) else ""


def unknown_step(facts: RunFacts, parsed: Arguments) -> Refusal | None:
    """Why nothing can be done to a step that the case does not have."""
    known = {action.step for action in facts.actions}
    named = {"step": getattr(parsed, "step", ""), "steps": getattr(parsed, "steps", ())}
    if named["step"] and named["step"] not in known:
        return _invalid("step", Sentence(_("This case has no such step.")))
    if not set(named["steps"]) <= known:
        return _invalid("steps", Sentence(_("This case has no such step.")))
    return None


def _invalid(field: str, sentence: Sentence) -> Refusal:
    return Refusal(answer=Answer.INVALID, code="invalid", sentence=sentence, fields={field: sentence})
