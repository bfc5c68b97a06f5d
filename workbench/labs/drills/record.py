"""Everything known of a drill at its end, read once: the ledger outside, the trails, the facts of every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sagas import api
from sagas.facts import RunFacts
from tools.contract import Json
from tools.drill_words import VERBS, Named, named
from workbench.labs.drills import inside, outside
from workbench.labs.drills.cue import Answered, Part, Score
from workbench.labs.drills.ground import Ground
from workbench.labs.drills.inside import Entry
from workbench.labs.drills.outside import Seen

SAID_BY_SYSTEM = "system"


@dataclass
class Record:
    """What is left of a drill. `first_entry` is the newest entry before it began."""

    score: Score
    ground: Ground
    first_entry: int
    warnings: frozenset[str] = frozenset()
    restarts: int = 0
    looks: dict[tuple[int, str], str] = field(default_factory=dict)
    """What a claim about a moment found there: (identity of the claim, case) -> complaint or ""."""

    @cached_property
    def ledger(self) -> list[Seen]:
        """What the outside saw, oldest first."""
        return outside.ledger(self.ground.arena.outside, self.score)

    @cached_property
    def facts(self) -> Mapping[str, RunFacts]:
        """By case."""
        return {part.case: api.run_facts(part.ref) for part in self.score.parts}

    @cached_property
    def trails(self) -> Mapping[str, list[Entry]]:
        """By case."""
        return {part.case: inside.entries(part.ref) for part in self.score.parts}

    @cached_property
    def beside(self) -> list[Entry]:
        """Entries of the time of the drill that belong to no run, by its own people or about its own workflow."""
        ids = {actor.id for actor in self.score.people.values()}
        about = (self.score.names.prefix, *self.score.bulks)
        return [
            one
            for one in inside.entries_without_run(self.first_entry)
            if one.actor_id in ids or any(word in f"{one.after}{one.before}" for word in about)
        ]

    # --- Calls --------------------------------------------------------------------------------------------------------

    def seen(self, kind: str, of: str, part: Part, item: str = "", since: float | None = None) -> list[Seen]:
        """Records of one kind for one call of a run. `since` is drill time."""
        return [
            one
            for one in self.ledger
            if (one.kind, one.of, one.case) == (kind, of, part.case)
            and item in ("", one.item)
            and (since is None or self.ground.hours.of_wall(one.at) >= since)
        ]

    # --- Entries ------------------------------------------------------------------------------------------------------

    def entries(self, wanted: Mapping[str, Json], part: Part) -> list[Entry]:
        """The entries that an expectation speaks of, in order."""
        meant = named(wanted["action"])
        found = [one for one in (*self.trails[part.case], *self.beside) if self._fits(one, wanted, meant)]
        if not meant.command or meant.refused:
            return found
        # A command leaves an entry for everything that it moves: they count as one.
        return list({one.command_id: one for one in reversed(found)}.values())[::-1]

    def _fits(self, entry: Entry, wanted: Mapping[str, Json], meant: Named) -> bool:
        return (
            self._is(entry, meant)
            and self._by(entry, str(wanted.get("actor", "anybody")))
            and self._about(entry, str(wanted.get("target", "")))
            and all(text in _text(entry) for text in wanted.get("says", ()))
            and ("reason" not in wanted or wanted["reason"] in entry.reason)
        )

    def _is(self, entry: Entry, meant: Named) -> bool:
        if meant.command:
            verb = VERBS.get(meant.command, meant.command)
            if meant.refused:
                return entry.name == "command.refused" and (entry.after or {}).get("verb") == verb
            known = self.score.command_ids.get(entry.command_id)
            return entry.name != "command.refused" and known is not None and known[0] == meant.command
        return (
            entry.name in meant.names
            and meant.machine in ("", entry.machine)
            and meant.target in ("", entry.target)
        )

    def _by(self, entry: Entry, who: str) -> bool:
        if who == "anybody":
            return True
        if who == SAID_BY_SYSTEM:
            return entry.actor_kind == "system"
        return entry.actor_id == self.score.people[who].id

    @staticmethod
    def _about(entry: Entry, target: str) -> bool:
        step, _, item = target.partition("/")
        if not step:
            return True
        # A command's own entries may be those of the run: then the step stands in none of them.
        return entry.step == step and item in ("", entry.item)

    # --- Marks --------------------------------------------------------------------------------------------------------

    def mark(self, mark: Mapping[str, Json], part: Part, *, wall: bool = False) -> float | None:
        """Drill time (or seconds of the wall clock) of a mark; None where it never came."""
        hours = self.ground.hours
        for word, kind in (("call", "arrived"), ("answer", "replied"), ("effect", "effect")):
            if word in mark:
                found = outside.nth(self.ledger, kind, mark[word], part.case, int(mark.get("attempt", 1)))
                return None if found is None else found.at if wall else hours.of_wall(found.at)
        if "entry" in mark:
            wanted = {"action": mark["entry"], **({"target": mark["target"]} if "target" in mark else {})}
            found_entries = self.entries(wanted, part)
            number = int(mark.get("nth", 1))
            if len(found_entries) < number:
                return None
            return self._moment(hours.of_database(found_entries[number - 1].at), wall)
        if "fault" in mark:
            done = self.score.faults_done.get(mark["fault"])
            return None if done is None else self._moment(done, wall)
        if "command" in mark:
            answered = self.answer(int(mark["command"]), part)
            return None if answered is None else self._moment(answered.at, wall)
        facts = self.facts[part.case]
        moment = facts.started_at if "start" in mark else facts.finished_at
        return None if moment is None else self._moment(hours.of_database(moment.timestamp()), wall)

    def _moment(self, drill_time: float, wall: bool) -> float:
        return self.ground.hours.wall_of(drill_time) if wall else drill_time

    def answer(self, order: int, part: Part | None) -> Answered | None:
        """How a command was answered, for a run."""
        return next(iter(self.answers(order, part)), None)

    def answers(self, order: int, part: Part | None) -> list[Answered]:
        """How a command was answered, every time that it was given."""
        return [
            one
            for one in self.score.answers
            if one.order == order and (part is None or one.run in ("", part.id))
        ]


def _text(entry: Entry) -> str:
    return f"{entry.reason} {entry.after} {entry.before} {entry.name}"


def parts_of(given: Mapping[str, Json], parts: Iterable[Part]) -> list[Part]:
    """The runs that an expectation is about."""
    named_runs = [given["run"]] if "run" in given else given.get("runs")
    return [part for part in parts if named_runs is None or part.id in named_runs]
