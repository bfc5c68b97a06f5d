"""Reads JSON files and remembers on which line and column every field stands.

Refuses what the standard parser lets through in silence: duplicate names, NaN, endless depth. Answers of
tools are `tools.payload`'s.
"""

from __future__ import annotations

import json
import re

from tools.contract import Json
from tools.payload import MAX_DEPTH
from tools.positions import Positions, Unparsable, line_and_column
from tools.problems import Fault, Path

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}


def read_json(text: str) -> tuple[Json, Positions]:
    """A JSON text and its positions. Raises `Unparsable`; duplicate names are noted as faults."""
    reader = _JsonReader(text)
    return reader.document(), reader.positions


def read_document(text: str) -> tuple[Json, str]:
    """A JSON text that somebody typed, and why it is none: "" if it is one."""
    try:
        document, positions = read_json(text)
    except Unparsable as error:
        return None, f"line {error.line}, column {error.column}: {error.message}"
    return document, positions.faults[0].message if positions.faults else ""


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
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        number = _NUMBER.match(self.text, self.at)
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
        space = _SPACE.match(self.text, self.at)
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
