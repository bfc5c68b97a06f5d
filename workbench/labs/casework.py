"""One person at one case of the demo's story: what they do on its page, and what they wait for.

Raises `NotSettled` where the page does not do what a person would expect of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sagas import api
from sagas.facts import RunFacts
from workbench.labs import story
from workbench.labs.browser import Page, Visitor
from workbench.labs.chapters import Chapter

REASON = "Checked with the system outside before deciding."
PATIENCE_S = 120.0
TRIES = 3
"""How often a person does again what was refused because the engine was asking at that very moment."""


class NotSettled(Exception):
    """The page did not do what a person would expect of it."""


@dataclass
class Desk:
    """One person, one case: what that person does on the page."""

    who: Visitor
    ref: str

    def claim(self) -> None:
        """Take the case, as whoever works on what is unknown does first: evidence that comes in by itself settles a
        case that nobody holds, and waits for the owner of one that somebody does. Raises `NotSettled`.
        """
        for _ in range(TRIES):
            page = self.who.get(f"handoffs/{self.ref}/")
            form = next((f for f in page.forms.values() if f.fields.get("verb") == "claim"), None)
            answer = page if form is None else self.who.post(form)
            if answer.status == 200 and form is not None:
                return
        raise NotSettled(f"{self.ref} cannot be claimed: {answer.status}: {answer.result}")

    def act(self, pick: str, *, expect: int = 200, **filled: str) -> Page:
        """Pick an action, look at its preview, run it. Raises `NotSettled` if the page says something else."""
        page = self.who.get(f"handoffs/{self.ref}/?act={pick}")
        form = page.forms.get("run")
        if form is None:
            off = page.texts.get(f"a-{pick}-why", "it is not on the page")
            raise NotSettled(f"{self.ref}: {pick} is not possible: {off}")
        for name in ("reason", "reference"):
            if name in form.fields:
                form.fields[name] = filled.pop(name, REASON if name == "reason" else "")
        answer = self.who.post(form, **filled)
        if answer.status not in (expect, 202):
            raise NotSettled(f"{self.ref}: {pick} was answered with {answer.status}: {answer.result}")
        self.last = form
        return answer


def facts_of(chapter: Chapter) -> RunFacts:
    """The run of an incident as it is now."""
    return api.run_facts(api.run_ref(story.AGENT, f"story:{chapter.business}"))


def case_of(chapter: Chapter, reason: str) -> str:
    """The reference of an incident's case. Raises `NotSettled` when it is not with a person for this reason."""
    handoff = facts_of(chapter).handoff
    if handoff is None or handoff.reason != reason:
        raise NotSettled(f"{chapter.business} is not with a person for {reason}")
    return handoff.ref


def until(chapter: Chapter, wanted: str, ready: Callable[[RunFacts], bool]) -> RunFacts:
    """Wait until the run is what is wanted. Raises `NotSettled` when it does not become that in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not ready(facts := facts_of(chapter)):
        if time.monotonic() > deadline:
            raise NotSettled(f"{chapter.business} did not become {wanted}; it is {facts.state}")
        time.sleep(0.1)
    return facts


def ends(chapter: Chapter, state: str) -> RunFacts:
    """Wait until the run has this state."""
    return until(chapter, state, lambda facts: facts.state.value == state)


def step_becomes(chapter: Chapter, step: str, state: str) -> RunFacts:
    """Wait until a step has this state."""
    return until(chapter, f"{state} at {step}", lambda facts: facts.action(step).state.value == state)


def ask(desk: Desk, chapter: Chapter, step: str) -> bool:
    """Query the status of a step; False when the engine asked by itself first and the page was rightly refused."""
    return unless(settled(step), desk, chapter, f"query_status.{step}")


def settled(step: str) -> Callable[[RunFacts], bool]:
    """Whether a step is no longer unknown."""
    return lambda facts: facts.action(step).state.value != "unknown"


def unless(
    moved: Callable[[RunFacts], bool],
    desk: Desk,
    chapter: Chapter,
    pick: str,
    *,
    expect: int = 200,
    **filled: str,
) -> bool:
    """Do it, unless the engine got there first; False when it did, and the page was rightly refused."""
    for tries_left in reversed(range(TRIES)):
        if moved(facts_of(chapter)):
            return False
        try:
            desk.act(pick, expect=expect, **filled)
        except NotSettled:
            if not tries_left and not moved(facts_of(chapter)):
                raise
            time.sleep(0.5)
        else:
            return True
    return False


def must(condition: bool, otherwise: str) -> None:
    """Raise `NotSettled` unless the condition holds."""
    if not condition:
        raise NotSettled(otherwise)
