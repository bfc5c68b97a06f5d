"""What is wrong with a file, exactly where, and how to put it right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

type Path = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One fault. `line` and `column` count from 1; 0 means a document without a file.

    `where` names the field as people write it (`steps[2].tool`), "" for the whole.
    """

    path: str
    line: int
    column: int
    where: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}: " if self.line else ""
        field = f"{self.where}: " if self.where else ""
        return f"{place}{field}{self.message}. {self.remedy}".rstrip()


class FileProblems(Exception):
    """A file or document that cannot be used, with all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: (one.line, one.column, one.where)))
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault before anybody knows which line it is on."""

    path: Path
    message: str
    remedy: str = ""


def spell(path: Path) -> str:
    """A path as people write it: `steps[2].tool`; counting starts at 0 as in the file format."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled
