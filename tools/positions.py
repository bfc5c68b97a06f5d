"""Reads JSON and TOML text and remembers on which line and column every field stands.

Values come from the standard parsers' rules; what this module adds is the position of each. It refuses
what the standard parsers let through in silence: duplicate names, NaN, endless depth.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field

from tools.contract import Json
from tools.payload import MAX_DEPTH
from tools.problems import Fault, Path

_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_WORDS = {"true": True, "false": False, "null": None}
_TOML_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_TOML_BLANK = re.compile(r"[ \t]*")
_TOML_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOML_SCALAR = re.compile(r"[^,\]}#\n]*")
_TOML_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"""(?!")', re.DOTALL),
    re.compile(r"'''.*?'''(?!')", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_TOML_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


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


def read_json(text: str) -> tuple[Json, Positions]:
    """A JSON text and its positions. Raises `Unparsable`; duplicate names are noted as faults."""
    reader = _JsonReader(text)
    return reader.document(), reader.positions


def read_toml(text: str) -> tuple[Json, Positions]:
    """A TOML text and its positions. Raises `Unparsable`."""
    text = text.replace("\r\n", "\n")
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        at = _TOML_AT.search(told)
        message = _TOML_AT.sub("", told)
        if at is None or at[1] is None:
            raise Unparsable(message, *line_and_column(text, len(text))) from None
        raise Unparsable(message, int(at[1]), int(at[2])) from None
    except RecursionError:
        raise Unparsable(f"nested deeper than {MAX_DEPTH}", 1, 1) from None
    scanner = _TomlScanner(text)
    scanner.document()
    return value, scanner.positions


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.positions = Positions(text)

    def document(self) -> Json:
        self._space()
        value = self._value((), 0)
        self._space()
        if self.at < len(self.text):
            raise self._error("something follows the end of the document")
        return value

    def _value(self, path: Path, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}")
        self.positions.offsets.setdefault(path, self.at)
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(path, depth)
            case "[":
                return self._array(path, depth)
            case '"':
                return self._string()
        return self._word_or_number()

    def _object(self, path: Path, depth: int) -> dict[str, Json]:
        found: dict[str, Json] = {}
        self.at += 1
        self._space()
        if self._take("}"):
            return found
        while True:
            start = self.at
            if self.text[self.at : self.at + 1] != '"':
                raise self._error("a name in double quotes is expected")
            name = self._string()
            here = (*path, name)
            if name in found:
                line, _ = line_and_column(self.text, self.positions.offsets[here])
                self.positions.faults.append(
                    Fault(
                        path=here,
                        message=f"is given twice, first on line {line}",
                        remedy="Keep one of the two.",
                    )
                )
            self.positions.offsets[here] = start
            self._space()
            self._expect(":")
            self._space()
            found[name] = self._value(here, depth + 1)
            self._space()
            if self._take("}"):
                return found
            self._expect(",")
            self._space()

    def _array(self, path: Path, depth: int) -> list[Json]:
        found: list[Json] = []
        self.at += 1
        self._space()
        if self._take("]"):
            return found
        while True:
            found.append(self._value((*path, len(found)), depth + 1))
            self._space()
            if self._take("]"):
                return found
            self._expect(",")
            self._space()

    def _string(self) -> str:
        end = self.at + 1
        while end < len(self.text) and self.text[end] not in '"\n':
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text) or self.text[end] == "\n":
            raise self._error("the text is not closed by a double quote")
        try:
            value = json.loads(self.text[self.at : end + 1])
        except json.JSONDecodeError as error:
            self.at += error.pos
            raise self._error(error.msg) from None
        self.at = end + 1
        return str(value)

    def _word_or_number(self) -> Json:
        for word, value in _JSON_WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        number = _JSON_NUMBER.match(self.text, self.at)
        if number is None:
            raise self._error(
                "a value is expected" if self.at < len(self.text) else "the document ends too early"
            )
        try:
            value = json.loads(number[0])
        except ValueError:
            raise self._error("the number has too many digits") from None
        if value in (float("inf"), float("-inf")):
            raise self._error("the number is out of range")
        self.at = number.end()
        return value

    def _space(self) -> None:
        space = _JSON_SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    def _take(self, char: str) -> bool:
        if not self.text.startswith(char, self.at):
            return False
        self.at += 1
        return True

    def _expect(self, char: str) -> None:
        if not self._take(char):
            raise self._error(f"`{char}` is expected")

    def _error(self, message: str) -> Unparsable:
        return Unparsable(message, *line_and_column(self.text, self.at))


class _TomlScanner:
    """Walks through a text that is known to be sound TOML and notes where each key stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.positions = Positions(text)
        self.lengths: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip(_TOML_GAP)
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
            self._skip(_TOML_GAP)

    def _header(self) -> list[str]:
        self._skip(_TOML_BLANK)
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
        self._skip(_TOML_BLANK)
        self._value((*table, *names))

    def _key(self) -> list[str]:
        names: list[str] = []
        while True:
            self._skip(_TOML_BLANK)
            bare = _TOML_BARE.match(self.text, self.at)
            if bare is not None:
                names.append(bare[0])
                self.at = bare.end()
            else:
                start = self.at
                self._string()
                names.append(_unquoted(self.text[start : self.at]))
            self._skip(_TOML_BLANK)
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
                self._skip(_TOML_SCALAR)

    def _members(self, path: Path, end: str) -> None:
        index = 0
        while True:
            self._skip(_TOML_GAP)
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
        for pattern in _TOML_STRINGS:
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
