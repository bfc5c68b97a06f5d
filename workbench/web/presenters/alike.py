"""Steps that make the same call for several things, devices for one: a row for each, what is not known as a question.

Reads facts only; the steps with all their evidence are told elsewhere (`steps`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sagas import api
from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState
from tools.contract import ErrorClass
from workbench.web.presenters import known, steps, text
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import StateWord

FEWEST = 3
"""Fewer steps of one tool are read faster one by one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing. `changed`: it moved while the page was being read; `conflict`: somebody else wrote in between."""

    name: SafeString
    step: str
    state: StateWord
    evidence: SafeString
    question: bool
    source: SafeString
    key: SafeString
    conflict: bool
    changed: bool


@dataclass(frozen=True, kw_only=True)
class Alike:
    """The things that one tool is called for, in the order of the steps; `what` is the argument that names them."""

    tool: str
    what: SafeString
    title: SafeString
    rows: tuple[Row, ...]


def alike(facts: RunFacts, clock: Clock, *, changed: Collection[str] = ()) -> tuple[Alike, ...]:
    """A table for every tool that is called for several things; `changed` are steps that moved meanwhile."""
    by_tool: dict[str, list[ActionFacts]] = {}
    for action in steps.told(facts):
        by_tool.setdefault(action.tool, []).append(action)
    return tuple(
        _table(tool, what, names, actions, clock, changed)
        for tool, actions in by_tool.items()
        for what, names in _told_apart(facts, actions)
    )


def _told_apart(facts: RunFacts, actions: list[ActionFacts]) -> list[tuple[str, list[str]]]:
    """The argument that says which thing each step is about, with the things: a text of its own in every one of them."""
    if len(actions) < FEWEST or any(action.items for action in actions):
        return []
    given = [_given(facts, action) for action in actions]
    for what in given[0]:
        names = [one.get(what, "") for one in given]
        if all(names) and len(set(names)) == len(names):
            return [(what, names)]
    return []


def _given(facts: RunFacts, action: ActionFacts) -> dict[str, str]:
    """The arguments of a step that are texts, without secrets."""
    shown = steps.masked(action, api.arguments(facts, action))
    return (
        {name: part for name, part in shown.items() if isinstance(part, str)}
        if isinstance(shown, dict)
        else {}
    )


def _table(
    tool: str, what: str, names: list[str], actions: list[ActionFacts], clock: Clock, changed: Collection[str]
) -> Alike:
    return Alike(
        tool=tool,
        what=text.inert(what, 60),
        title=text.inert(actions[0].contract.texts.title, 120),
        rows=tuple(
            _row(name, action, clock, changed=action.step in changed)
            for name, action in zip(names, actions, strict=True)
        ),
    )


def _row(name: str, action: ActionFacts, clock: Clock, *, changed: bool) -> Row:
    *__, fact = known.of_step(action, clock)
    never = action.state in known.IDLE
    return Row(
        name=text.inert(name, 80),
        step=action.step,
        state=steps.look_of(action),
        evidence=text.say(_("never called")) if never else _evidence(fact),
        question=fact.question,
        source=text.say("") if never else fact.source,
        key=text.inert(action.key, 120),
        conflict=_in_conflict(action),
        changed=changed,
    )


def _evidence(fact: known.Fact) -> SafeString:
    return fact.says if fact.question else fact.more or fact.says


def _in_conflict(action: ActionFacts) -> bool:
    """Whether somebody else wrote in between: the call was refused for it, or its compensation cannot rest on it."""
    made_up = action.compensation
    refused = action.state is ActionState.REJECTED and action.error_class == ErrorClass.CONFLICT
    stands = made_up is not None and made_up.state is CompensationState.FAILED
    return refused or (stands and made_up is not None and made_up.error_class == ErrorClass.CONFLICT)
