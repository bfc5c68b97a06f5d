"""The demo story: what went wrong this morning, made to happen on the real engine against the simulated world.

Each chapter is one incident: what the world does, the run that meets it, and how it comes to a person. `check` settles
every one of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from django.db import connection

from sagas import api
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.states import RunState
from tools.reader import read_contract, read_definition
from workbench.labs.chapters import CHAPTERS, Chapter
from workbench.labs.world import Outside

ROOT = Path(__file__).resolve().parents[2]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:front-office", name="Front office agent", role="agent")
PUBLISHER = Actor(kind=ActorKind.SYSTEM, id="demo", name="Demo", role="owner")
PATIENCE_S = 300.0

type Progress = Callable[[str], None]


def load(progress: Progress) -> None:
    """Publish the shipped contracts and the examples, start every chapter's run and wait until each has come to rest.

    Idempotent: what was published and started before stays as it is. Raises `TimeoutError`.
    """
    publish(progress)
    outside = Outside(os.environ["SIMULATOR_ADMIN_URL"])
    started = {chapter.business: begin(chapter, outside) for chapter in CHAPTERS}
    progress(f"{len(started)} runs started; the world misbehaves in {len(CHAPTERS) - 1} of them")
    await_rest(started, progress)


def publish(progress: Progress) -> None:
    """Publish contracts, then definitions."""
    contracts = sorted((ROOT / "tools" / "catalog").glob("*.toml"))
    for path in contracts:
        api.publish_contract(read_contract(path), actor=PUBLISHER)
    definitions = [p for p in sorted((ROOT / "examples").iterdir()) if p.suffix in (".toml", ".json")]
    for path in definitions:
        api.publish_definition(read_definition(path), actor=PUBLISHER)
    for path in sorted((ROOT / "examples" / "teams").glob("*.toml")):
        team, document = api.read_team(path)
        api.publish_team(team, document, actor=PUBLISHER)
    progress(f"{len(contracts)} tool contracts and {len(definitions)} workflows published")


def begin(chapter: Chapter, outside: Outside) -> str:
    """Plan the chapter's world and start its run; returns the run's reference.

    All of the run's calls carry its reference in their keys, so the world misbehaves for this run alone.
    """
    key = f"story:{chapter.business}"
    ref = api.run_ref(AGENT, key)
    if not api.runs(search=ref, limit=1).rows:
        outside.plan(*({**rule, "match": [ref, *rule.get("match", ())]} for rule in chapter.rules))
    started = api.start_run(
        actor=AGENT,
        definition=chapter.definition,
        input=dict(chapter.given),
        intent=chapter.intent,
        start_key=key,
    )
    api.ring(started.run_ref)
    return started.run_ref


def await_rest(started: Mapping[str, str], progress: Progress) -> None:
    """Wait until every chapter has come to where it is told to be, telling each arrival. Raises `TimeoutError`."""
    waiting = {chapter.business: chapter for chapter in CHAPTERS}
    deadline = time.monotonic() + PATIENCE_S
    while waiting:
        for chapter in list(waiting.values()):
            facts = api.run_facts(started[chapter.business])
            if at_rest(facts) or facts.state.value in chapter.ends:
                del waiting[chapter.business]
                left = f"{len(CHAPTERS) - len(waiting)} of {len(CHAPTERS)}"
                handed = facts.handoff is not None and facts.state.value == "handoff"
                where = facts.handoff.ref if handed and facts.handoff else facts.state
                progress(f"[{left}] {chapter.business}: {chapter.name} -> {where}")
        if waiting and time.monotonic() > deadline:
            raise TimeoutError(f"these runs did not come to rest: {', '.join(waiting)}")
        time.sleep(0.25)


def at_rest(facts: RunFacts) -> bool:
    """Whether a run is at its end or with a person."""
    return facts.finished_at is not None or (facts.handoff is not None and facts.state.value == "handoff")


def resting(refs: Sequence[str]) -> list[str]:
    """Which of these runs are at their end or with a person: one cheap question, however many they are."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ref FROM sagas_run WHERE ref = ANY(%s) AND (finished_at IS NOT NULL OR state = %s)",
            [list(refs), RunState.HANDOFF.value],
        )
        return [row[0] for row in cursor.fetchall()]
