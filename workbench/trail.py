"""Reading the trail: the entries of a run, at the depth that the reader asks for.

Proving it (hash chain, checkpoints) will have its place here. Must not write.
"""

from __future__ import annotations

from enum import StrEnum

from sagas import api
from sagas.facts import ActorKind, EntryFacts


class Depth(StrEnum):
    """How much of the trail is shown: what people did, that and effects, or every event."""

    PEOPLE = "people"
    DECISIONS = "decisions"
    EVERYTHING = "everything"


# Marks between two facts: they matter to whoever looks for a fault, not to whoever asks what happened.
STEPS_BETWEEN = frozenset({"prepare", "send", "reprepare", "register", "sent", "prepared", "registered"})


def of_run(run_ref: str, *, depth: Depth = Depth.DECISIONS, after_seq: int = 0) -> tuple[EntryFacts, ...]:
    """The entries of a run, oldest first. Raises NotFound."""
    entries = api.entries(run_ref, after_seq=after_seq)
    return tuple(entry for entry in entries if _shown(entry, depth))


def _shown(entry: EntryFacts, depth: Depth) -> bool:
    match depth:
        case Depth.EVERYTHING:
            return True
        case Depth.PEOPLE:
            return entry.actor_kind != ActorKind.SYSTEM
        case Depth.DECISIONS:
            return entry.actor_kind != ActorKind.SYSTEM or entry.target not in STEPS_BETWEEN
