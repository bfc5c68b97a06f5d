"""Where every field of a text stands: what makes an error point at its line."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.problems import Fault, Path


class Unparsable(Exception):
    """The text is no JSON or TOML. `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass
class Positions:
    """Where each field of one text stands, as an offset of the field's name (or of the element)."""

    text: str
    offsets: dict[Path, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def place(self, path: Path) -> tuple[int, int]:
        """Line and column, from 1, of the field or of the nearest one around it."""
        while path and path not in self.offsets:
            path = path[:-1]
        return line_and_column(self.text, self.offsets.get(path, 0))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Where an offset is, both counted from 1."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1
