"""What the outside world sends, read with bounds and made storable.

Owns the only parser for foreign JSON. It refuses rather than guesses (NaN, duplicate names, depth), and what
it lets through can be stored in PostgreSQL: no NUL, no lone surrogate, no infinite number (faults.md, FT-3).
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import NoReturn

from tools.contract import Json

MAX_DEPTH = 64
TEXT_KEPT = 65_536
_REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_STRING_BRACKET_OR_COMMA = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)


class Unreadable(ValueError):
    """The text is no JSON that may be used; the message says why."""


def parse(raw: bytes) -> Json:
    """Foreign bytes as storable JSON; raises `Unreadable` with a sentence. None for an empty body."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    if not text.strip():
        return None
    _refuse_depth(text)
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique
        )
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from None
    return storable(value) if "\\u" in text or "\x00" in text else value


def whole_members(raw: bytes) -> Json:
    """What is whole in the beginning of a document that was cut off: the members of its object that had ended.

    A member that was not over is left out, whatever of it was there: half a list must never pass for a list. {} for the
    beginning of a list. Raises `Unreadable` for what is no beginning of JSON, with the rules of `parse`.
    """
    try:
        # The last character may be cut in two; anything else that is no UTF-8 is a fault.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw).lstrip()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    if not text.startswith(("{", "[")):
        raise Unreadable("not JSON: it begins with neither an object nor a list")
    depth, end = 0, -1
    for match in _STRING_BRACKET_OR_COMMA.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        elif mark == "," and depth == 1:
            end = match.start()
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH}")
        if depth == 0:
            raise Unreadable("not JSON: something follows the end of the document")
    if end < 0 or text[0] == "[":
        return {}
    return parse((text[:end] + "}").encode())


def storable(value: Json) -> Json:
    """The same value with every character that PostgreSQL refuses replaced by U+FFFD."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        return {storable(name): storable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [storable(part) for part in value]
    return value


def as_text(raw: bytes) -> str:
    """The first 64 KiB as storable text, whatever they are."""
    return _UNSTORABLE.sub(_REPLACEMENT, raw[:TEXT_KEPT].decode("utf-8", "replace"))


def _refuse_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Unreadable(f"nested deeper than {MAX_DEPTH}")
        elif mark in "]}":
            depth -= 1


def _refuse_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Unreadable(f"the number {text[:40]} is out of range")
    return number


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Unreadable(f"the name {twice[:80]!r} occurs twice in one object")
    return found
