"""What a drill came to: the first difference, in words, and every other one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tools.contract import Json
from tools.drills.drill import Drill
from workbench.labs.drills import claims, inside, standing
from workbench.labs.drills.cue import Part, Score
from workbench.labs.drills.ground import Ground
from workbench.labs.drills.looking import Looker
from workbench.labs.drills.player import Player
from workbench.labs.drills.record import Record, parts_of

type Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One drill. `seconds` of the wall clock; `differences` in the order in which they were found."""

    id: str
    path: str
    title: str
    seconds: float
    differences: tuple[str, ...] = ()
    checked: int = 0
    trail: tuple[str, ...] = ()
    """What happened, inside and outside, where it did not pass."""

    @property
    def passed(self) -> bool:
        """Whether everything was as the file says."""
        return not self.differences

    def line(self) -> str:
        """The verdict line."""
        if self.passed:
            return f"ok   {self.id}: {self.checked} expectations ({self.seconds:.1f} s)"
        more = f" (and {len(self.differences) - 1} more)" if len(self.differences) > 1 else ""
        return f"FAIL {self.id}: {self.differences[0]}{more} ({self.seconds:.1f} s)"

    def as_json(self) -> Json:
        """For machines."""
        return {
            "id": self.id,
            "path": self.path,
            "title": self.title,
            "passed": self.passed,
            "seconds": round(self.seconds, 2),
            "expectations": self.checked,
            "differences": list(self.differences),
        }


@dataclass
class Judge:
    """Compares a played drill with what its file expects."""

    record: Record
    checked: int = 0
    found: list[str] = field(default_factory=list)

    def judge(self) -> list[str]:
        """Every difference, the states first."""
        score = self.record.score
        expected = score.drill.expected
        self.found += score.complaints
        for part in score.parts:
            self._part({name: value for name, value in expected.items() if name != "runs"}, part)
            self._part(expected.get("runs", {}).get(part.id, {}), part)
            self._note(claims.laws(self.record, {}, part), part)
        return self.found

    def _part(self, expected: Mapping[str, Json], part: Part) -> None:
        record = self.record
        facts = record.facts[part.case]
        self._note(standing.differences(expected, record.score, part, facts), part)
        if "external_effects" in expected:
            self._note(standing.effects(expected["external_effects"], part, record.ledger), part)
        for name in ("audit_must_contain", "events_must_contain"):
            for one in expected.get(name, ()):
                if part in parts_of(one, record.score.parts):
                    self._note(claims.entry(record, one, part), part)
        for name in ("must_not", "also"):
            for one in expected.get(name, ()):
                if part in parts_of(one, record.score.parts):
                    self._note(claims.check(record, one, part), part)

    def _note(self, differences: Iterator[str], part: Part) -> None:
        self.checked += 1
        alone = len(self.record.score.parts) == 1
        for one in differences:
            self.found.append(one if alone else f"run {part.name}: {one}")


def play(drill: Drill, ground: Ground, progress: Progress) -> Verdict:
    """Play one drill on its ground and judge it. What breaks while playing is a difference like any other."""
    began = time.monotonic()
    score = Score.of(drill, ground.prefix())
    record = Record(score=score, ground=ground, first_entry=inside.last_entry())
    looker = Looker(score, record.looks)
    player = Player(score=score, ground=ground, look=looker.look, progress=progress)
    checked = 0
    try:
        player.play()
        record.warnings = frozenset(player.publisher.warnings)
        judge = Judge(record)
        differences = judge.judge()
        checked = judge.checked
    except Exception as error:  # noqa: BLE001  a drill that cannot be played has failed, and the others go on
        differences = [*score.complaints, f"could not be played: {type(error).__name__}: {error}"]
    finally:
        if player.disturbed:
            ground.set_right()
    return Verdict(
        id=drill.id,
        path=drill.path,
        title=drill.title,
        seconds=time.monotonic() - began,
        differences=tuple(differences),
        checked=checked,
        trail=() if not differences else tuple(_told(record)),
    )


def _told(record: Record) -> Iterator[str]:
    """What happened to each run, in the order of drill time: entries, and what arrived and took effect outside."""
    hours = record.ground.hours
    for part in record.score.parts[:5]:
        if not part.ref or not inside.pulses([part.ref]):
            continue  # it was never started
        lines = [
            (
                hours.of_database(one.at),
                f"{one.name} {one.step}{'/' + one.item if one.item else ''} {one.source} -> {one.target} "
                f"by {one.actor_id} {one.reason}",
            )
            for one in inside.entries(part.ref)
        ]
        lines += [
            (
                hours.of_wall(one.at),
                f"outside: {one.kind} {one.of}{'/' + one.item if one.item else ''} {one.status or ''}",
            )
            for one in record.ledger
            if one.case == part.case
        ]
        yield from (f"{part.name} {at:9.2f} s  {line}" for at, line in sorted(lines))
