"""One run of a drill while it is played, and what was done to it when."""

from __future__ import annotations

from dataclasses import dataclass, field

from sagas.facts import Actor, ActorKind
from tools.drills.drill import Drill, Runs
from tools.drills.translate import Names, case_of

AGENT = Actor(kind=ActorKind.AGENT, id="agent:drill", name="Drill agent", role="agent")


@dataclass
class Part:
    """One run: what it is called inside (`ref`) and outside (`case`)."""

    runs: Runs
    number: int
    case: str
    ref: str = ""
    start_key: str = ""

    @property
    def id(self) -> str:
        """The run's id in the file."""
        return self.runs.id

    @property
    def name(self) -> str:
        """The run in words."""
        return self.id if self.runs.count == 1 else f"{self.id}[{self.number}]"


@dataclass
class Answered:
    """How a command was answered. `at` is drill time in seconds; `body` what a client would see."""

    order: int
    run: str
    word: str
    code: str
    said: str
    command_id: str
    at: float
    body: object = None


@dataclass
class Score:
    """A drill while it is played: its runs, and marks of what was done."""

    drill: Drill
    names: Names
    parts: list[Part]
    answers: list[Answered] = field(default_factory=list)
    command_ids: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Command id -> (verb of the drill, actor)."""
    bulks: list[str] = field(default_factory=list)
    """The bulks that were frozen, in order."""
    faults_done: dict[str, float] = field(default_factory=dict)
    """Fault id -> drill time."""
    people: dict[str, Actor] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    """What already went otherwise than expected, in order."""

    @classmethod
    def of(cls, drill: Drill, prefix: str) -> Score:
        """A drill about to be played under a prefix of its own."""
        parts = [
            Part(runs=runs, number=number, case=case_of(prefix, runs.id, number))
            for runs in drill.runs
            for number in range(1, runs.count + 1)
        ]
        return cls(drill=drill, names=Names(prefix=prefix), parts=parts)

    def of_run(self, run: str) -> list[Part]:
        """The runs with this id in the file."""
        return [part for part in self.parts if part.id == run]
