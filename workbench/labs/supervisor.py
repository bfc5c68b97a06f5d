"""Keeps a set of programs running: starts them in order, restarts what exits, stops them in reverse.

Must not know what the programs do.
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals

from workbench.labs import children

LONGEST_PAUSE = 30.0  # seconds between two starts of a program that keeps ending


@dataclass(frozen=True, kw_only=True)
class Program:
    """A command that should always run."""

    name: str
    command: Sequence[str | Path]
    pass_fds: Sequence[int] = ()
    patience: float = 15.0  # seconds that it may take to end by itself
    when_orphaned: Signals = Signals.SIGTERM  # what it gets when we end without a word


@dataclass
class _Kept:
    program: Program
    child: children.Child
    started: float = field(default_factory=time.monotonic)
    pause: float = 0.5
    wanted: bool = True


class Supervisor:
    """Programs of one environment, their output in one folder."""

    def __init__(self, *, logs: Path, environment: Mapping[str, str], cwd: Path) -> None:
        self._logs, self._environment, self._cwd = logs, environment, cwd
        self._kept: list[_Kept] = []

    def start(self, program: Program) -> None:
        self._kept.append(_Kept(program, self._spawn(program)))

    def tend(self) -> list[str]:
        """Start again what has ended, ever more slowly if it keeps ending; return what was noticed."""
        noticed = []
        for kept in self._kept:
            code, age = kept.child.poll(), time.monotonic() - kept.started
            if not kept.wanted:
                continue
            if code is None:
                kept.pause = 0.5 if age > LONGEST_PAUSE else kept.pause
            elif age > kept.pause:
                log = self._log(kept.program)
                noticed.append(f"{kept.program.name} ended with {code}; started again (see {log})")
                kept.child, kept.started = self._spawn(kept.program), time.monotonic()
                kept.pause = min(kept.pause * 2, LONGEST_PAUSE)
        return noticed

    def stop(self) -> None:
        while self._kept:
            kept = self._kept.pop()
            children.stop(kept.child, Signals.SIGTERM, patience=kept.program.patience)

    def signal(self, name: str, number: Signals, *, group: bool = False) -> None:
        """Send a signal to a program, or to all of its process group; nothing where it has ended."""
        child = self._named(name).child
        if child.poll() is None:
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(child.pid, number)

    def end(self, name: str) -> None:
        """Stop one program politely; it stays down until `begin`."""
        kept = self._named(name)
        kept.wanted = False
        children.stop(kept.child, Signals.SIGTERM, patience=kept.program.patience)

    def begin(self, name: str) -> None:
        """Start one program again at once, if it does not run."""
        kept = self._named(name)
        kept.wanted = True
        if kept.child.poll() is not None:
            kept.child, kept.started = self._spawn(kept.program), time.monotonic()

    def names(self) -> list[str]:
        """Every program, in the order of its start, whether it runs or not."""
        return [kept.program.name for kept in self._kept]

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return self._log(self._named(name).program)

    def _named(self, name: str) -> _Kept:
        for kept in self._kept:
            if kept.program.name == name:
                return kept
        raise KeyError(name)

    def pids(self) -> dict[str, int]:
        """The process of each program that runs."""
        return {kept.program.name: kept.child.pid for kept in self._kept if kept.child.poll() is None}

    def _log(self, program: Program) -> Path:
        return self._logs / f"{program.name}.log"

    def _spawn(self, program: Program) -> children.Child:
        self._logs.mkdir(exist_ok=True)
        with self._log(program).open("ab") as output:
            return children.start(
                program.command,
                env=self._environment,
                output=output,
                cwd=self._cwd,
                pass_fds=program.pass_fds,
                when_orphaned=program.when_orphaned,
            )
