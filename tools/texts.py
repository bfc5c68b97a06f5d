"""Sentences for people, filled from a call's arguments and result.

Only `{args.x}` and `{result.x}` are placeholders (dots go deeper); anything else is literal. What a tool
answered is shown inert: no control or direction characters, no second round of filling.
"""

from __future__ import annotations

import re
import unicodedata

from tools.contract import Json
from tools.pointers import MISSING, find, pointer_to

_PLACEHOLDER = re.compile(r"\{(args|result)\.([^{}\s]{1,200})\}")
_LONGEST = 200
MISSING_TEXT = "…"


def fill(text: str, *, args: Json = None, result: Json = None) -> str:
    """The sentence with its placeholders filled; a value that is missing or not a scalar becomes "…"."""
    roots = {"args": args, "result": result}

    def value_of(match: re.Match[str]) -> str:
        return _shown(find(roots[match[1]], pointer_to(tuple(match[2].split(".")))))

    return _PLACEHOLDER.sub(value_of, text)


def placeholders(text: str) -> set[tuple[str, str]]:
    """The (root, dotted name) pairs that a sentence refers to, for checks."""
    return {(match[1], match[2]) for match in _PLACEHOLDER.finditer(text)}


def inert(text: str) -> str:
    """Text that cannot steer a terminal or a line's direction: control and format characters are dropped."""
    return "".join(char for char in text if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"})


def _shown(value: Json) -> str:
    if value is MISSING or value is None or isinstance(value, dict | list):
        return MISSING_TEXT
    if isinstance(value, bool):
        return "yes" if value else "no"
    shown = inert(str(value))
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
