"""What changed since the author looked, for the answer to a stale page. Compares, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sagas import api
from sagas.facts import EntryFacts, RunFacts
from workbench.commands._result import Change
from workbench.models import Preview
from workbench.queries.bulks import behind

MOST, LAST = 20, 3


def snapshot(facts: RunFacts) -> dict[str, Any]:
    """What a page showed, small enough to be stored with every preview."""
    return {
        "version": facts.version,
        "seq": max((entry.seq or 0 for entry in _entries(facts.ref, 0)), default=0),
        "state": str(facts.state),
        "steps": _steps(facts),
        "claim": _claim(facts),
    }


def changes(facts: RunFacts, preview: Preview | None) -> tuple[Change, ...]:
    """What differs from the preview, then the entries since, oldest first; without one, the last entries."""
    if preview is None:
        return tuple(_entry(entry) for entry in list(_entries(facts.ref, 0))[-LAST:])
    since = list(_entries(facts.ref, preview.seen["seq"]))
    return (*_differences(preview.seen, facts), *(_entry(entry) for entry in since[-MOST:]))


def bulk_since(facts: RunFacts, preview: Preview | None) -> EntryFacts | None:
    """The newest entry that a bulk has left since the author looked; of the last ones where that is not known."""
    entries = list(_entries(facts.ref, 0 if preview is None else preview.seen["seq"]))[-MOST:]
    did = (one for one in reversed(entries) if one.actor_kind == "human" and one.name != "command.refused")
    return next((one for one in did if behind(one.command_id)), None)


def _entries(run_ref: str, after_seq: int) -> Iterator[EntryFacts]:
    """Page by page, however long the trail has become."""
    while page := api.entries(run_ref, after_seq=after_seq):
        yield from page
        after_seq = page[-1].seq or 0


def _differences(seen: Mapping[str, Any], facts: RunFacts) -> Iterator[Change]:
    if seen["version"] != facts.version:
        yield Change(kind="case", what="version", saw=str(seen["version"]), now=str(facts.version))
    if seen["state"] != facts.state:
        yield Change(kind="case", what="state", saw=seen["state"], now=str(facts.state))
    for step, state in _steps(facts).items():
        saw = seen["steps"].get(step, "")
        if saw != state:
            yield Change(kind="step", what=step, saw=saw, now=state)
    if seen["claim"] != _claim(facts):
        at: datetime | None = facts.handoff.claimed_at if facts.handoff else None
        yield Change(
            kind="claim", what="claim", saw=seen["claim"], now=_claim(facts), by=_claim(facts), at=at
        )


def _steps(facts: RunFacts) -> dict[str, str]:
    """Each step's state, with its compensation's where that has begun."""
    states: dict[str, str] = {}
    for action in facts.actions:
        state = str(action.state)
        compensation = action.compensation
        if compensation is not None and compensation.state not in ("registered", "voided"):
            state = f"{state}, compensation {compensation.state}"
        states[action.step] = state
    return states


def _claim(facts: RunFacts) -> str:
    return facts.handoff.claimed_by_name if facts.handoff else ""


def _entry(entry: EntryFacts) -> Change:
    return Change(
        kind="entry", what=entry.name, saw=entry.source, now=entry.target, by=_by(entry), at=entry.at
    )


def _by(entry: EntryFacts) -> str:
    ref = behind(entry.command_id)
    return f"{entry.actor_name} ({ref})" if ref else entry.actor_name
