"""Many drills, one after another: progress, a line for each, a line for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tools.drills.drill import Drill
from tools.drills.reader import read_drill
from tools.problems import FileProblems
from workbench.labs.drills.ground import Ground, needs_own_ground
from workbench.labs.drills.verdict import Verdict, play

type Say = Callable[[str], None]


def files(paths: Iterable[str | Path]) -> list[Path]:
    """The drill files behind paths: a folder stands for every .json in it. Raises `FileNotFoundError`."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(path.glob("*.json"))
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(path)
    return found


def read(paths: Sequence[Path]) -> tuple[list[Drill], list[str]]:
    """The drills that can be read, and what is wrong with the others."""
    drills: list[Drill] = []
    problems: list[str] = []
    for path in paths:
        try:
            drills.append(read_drill(path))
        except FileProblems as error:
            problems += map(str, error.problems)
    return drills, problems


def run(drills: Sequence[Drill], say: Say, *, trail: bool = False) -> list[Verdict]:
    """Play drills, as many as possible in one arena. `trail`: tell what happened in those that fail."""
    verdicts: list[Verdict] = []
    ground: Ground | None = None
    try:
        for number, drill in enumerate(drills, 1):
            if ground is not None and drill.begins_at:
                ground.__exit__(None, None, None)
                ground = None
            if ground is None:
                say("starting an arena")
                ground = Ground().__enter__()
            say(f"[{number}/{len(drills)}] {drill.id}: {drill.title}")
            verdict = play(drill, ground, lambda line: say(f"      {line}"))
            verdicts.append(verdict)
            say(verdict.line())
            for other in verdict.differences[1:]:
                say(f"      and {other}")
            for line in verdict.trail if trail else ():
                say(f"      {line}")
            if needs_own_ground(drill):
                ground.__exit__(None, None, None)
                ground = None
    finally:
        if ground is not None:
            ground.__exit__(None, None, None)
    return verdicts


def summary(verdicts: Sequence[Verdict]) -> str:
    """The last line."""
    passed = sum(verdict.passed for verdict in verdicts)
    return f"drills {passed} passed, {len(verdicts) - passed} failed"


def names_in(path: str | Path) -> frozenset[str]:
    """The file names in a list, one a line; what follows # is for the reader."""
    lines = (line.partition("#")[0].strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return frozenset(line for line in lines if line)
