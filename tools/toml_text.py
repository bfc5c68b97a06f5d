"""Reads TOML files and remembers on which line and column every field stands.

The standard parser gives the values; a scanner that trusts its verdict finds the places.
"""

from __future__ import annotations

import re
import tomllib

from tools.contract import Json
from tools.payload import MAX_DEPTH
from tools.positions import Positions, Unparsable, line_and_column
from tools.problems import Path

_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"""(?!")', re.DOTALL),
    re.compile(r"'''.*?'''(?!')", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(text: str) -> tuple[Json, Positions]:
    """A TOML text and its positions. Raises `Unparsable`."""
    text = text.replace("\r\n", "\n")
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        at = _AT.search(told)
        message = _AT.sub("", told)
        if at is None or at[1] is None:
            raise Unparsable(message, *line_and_column(text, len(text))) from None
        raise Unparsable(message, int(at[1]), int(at[2])) from None
    except RecursionError:
        raise Unparsable(f"nested deeper than {MAX_DEPTH}", 1, 1) from None
    scanner = _TomlScanner(text)
    scanner.document()
    return value, scanner.positions


class _TomlScanner:
    """Walks through a text that is known to be sound TOML and notes where each key stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.positions = Positions(text)
        self.lengths: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip(_GAP)
        while self.at < len(self.text):
            start = self.at
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self._next_element(self._resolve(*self._header()), start)
            elif self.text.startswith("[", self.at):
                self.at += 1
                table = self._table(self._header(), start)
            else:
                self._pair(table)
            self._skip(_GAP)

    def _header(self) -> list[str]:
        self._skip(_BLANK)
        names = self._key()
        while self.text.startswith("]", self.at):
            self.at += 1
        return names

    def _resolve(self, *names: str) -> Path:
        """The path of a header; a part that is an array of tables means its last element so far."""
        path: Path = ()
        for index, name in enumerate(names):
            path = (*path, name)
            if path in self.lengths and index < len(names) - 1:
                path = (*path, self.lengths[path] - 1)
        return path

    def _table(self, names: list[str], start: int) -> Path:
        path = self._resolve(*names)
        for length in range(1, len(path) + 1):
            self.positions.offsets.setdefault(path[:length], start)
        return path

    def _next_element(self, path: Path, start: int) -> Path:
        index = self.lengths.get(path, 0)
        self.lengths[path] = index + 1
        self.positions.offsets.setdefault(path, start)
        self.positions.offsets[(*path, index)] = start
        return (*path, index)

    def _pair(self, table: Path) -> None:
        start = self.at
        names = self._key()
        for length in range(1, len(names) + 1):
            self.positions.offsets.setdefault((*table, *names[:length]), start)
        self.at = self.text.index("=", self.at) + 1
        self._skip(_BLANK)
        self._value((*table, *names))

    def _key(self) -> list[str]:
        names: list[str] = []
        while True:
            self._skip(_BLANK)
            bare = _BARE.match(self.text, self.at)
            if bare is not None:
                names.append(bare[0])
                self.at = bare.end()
            else:
                start = self.at
                self._string()
                names.append(_unquoted(self.text[start : self.at]))
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def _value(self, path: Path) -> None:
        match self.text[self.at : self.at + 1]:
            case "{":
                self.at += 1
                self._members(path, "}")
            case "[":
                self.at += 1
                self._members(path, "]")
            case '"' | "'":
                self._string()
            case _:
                self._skip(_SCALAR)

    def _members(self, path: Path, end: str) -> None:
        index = 0
        while True:
            self._skip(_GAP)
            if self.text.startswith(end, self.at) or self.at >= len(self.text):
                self.at += 1
                return
            if self.text.startswith(",", self.at):
                self.at += 1
                continue
            if end == "}":
                self._pair(path)
            else:
                self.positions.offsets[(*path, index)] = self.at
                self._value((*path, index))
                index += 1

    def _string(self) -> None:
        for pattern in _STRINGS:
            found = pattern.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at


def _unquoted(quoted: str) -> str:
    try:
        return str(next(iter(tomllib.loads(f"{quoted} = 0"))))
    except (tomllib.TOMLDecodeError, StopIteration):
        return quoted.strip("\"'")
