"""Dry runs for a person who is about to decide: each call that a verb would make, tried without its effect.

Reads only, outside any transaction and within a time limit; what comes back is shown and kept with the preview, never
written as an attempt, an effect or evidence.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace

from django.conf import settings

from sagas.edits import edited
from sagas.facts import DryRunSeen, RunFacts
from sagas.intents import Intended, intended
from sagas.looking import try_out
from sagas.published import pinned
from sagas.queries import facts_of_run, now
from sagas.tx import outside_transaction
from tools.contract import Json
from tools.redact import mask_text
from tools.world import World

EACH_S = 2.0
"""Seconds that one dry run may take while a person waits."""
TOGETHER_S = 6.0
"""After which no further one is begun; what was not tried is shown as not known."""


def dry_runs(
    facts: RunFacts, verb: str, *, step: str = "", leave_out: Collection[str] = (), args: Json = None
) -> tuple[DryRunSeen, ...]:
    """What the test modes say about the calls that `verb` would make, in running order; empty if it makes none."""
    calls = intended(facts, verb, step=step, leave_out=leave_out)
    if all(call.contract.dry_run is None for call in calls):
        return tuple(_seen(call, facts) for call in calls)
    outside_transaction()
    unmasked = facts_of_run(facts.ref, unmasked=True)
    if args is not None:
        action = unmasked.action(step)
        changed = replace(action, args=edited(action, args))
        unmasked = replace(
            unmasked, actions=tuple(changed if one is action else one for one in unmasked.actions)
        )
    return tuple(_tried(unmasked, intended(unmasked, verb, step=step, leave_out=leave_out)))


def _tried(facts: RunFacts, calls: tuple[Intended, ...]) -> Iterator[DryRunSeen]:
    world, begun = World(settings.TOOL_SYSTEMS), time.monotonic()
    try:
        for call in calls:
            offered = call.contract.dry_run
            if offered is None or time.monotonic() - begun >= TOGETHER_S:
                yield _seen(call, facts)
                continue
            reads = {offered.tool: pinned(facts.definition_id, offered.tool)[1]}
            tried = try_out(call.contract, call.args, world, reads, time_limit_s=EACH_S)
            detail = mask_text(tried.detail) if tried is not None else ""
            accepted = tried.met if tried is not None else None
            yield replace(_seen(call, facts), accepted=accepted, detail=detail, read_at=now())
    finally:
        world.close()


def _seen(call: Intended, facts: RunFacts) -> DryRunSeen:
    return DryRunSeen(
        step=call.step,
        tool=call.contract.tool,
        key=call.key,
        offered=call.contract.dry_run is not None,
        accepted=None,
        detail="",
        read_at=facts.now,
    )
