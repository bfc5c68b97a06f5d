"""JSON pointers (RFC 6901): how contracts name a place inside a document.

Owns parsing and looking up. Never changes a document, never raises for a place that is not there.
"""

from __future__ import annotations

import re

from tools.contract import Json

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class Missing:
    """The type of `MISSING`: nothing is at that place (JSON null is something)."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


def is_pointer(text: object) -> bool:
    """Whether `text` is a well-formed pointer: empty, or starting with a slash, with sound escapes."""
    return isinstance(text, str) and (text == "" or text.startswith("/")) and not _BAD_ESCAPE.search(text)


def parts(pointer: str) -> tuple[str, ...]:
    """The unescaped segments of a well-formed pointer; ValueError for any other text."""
    if not is_pointer(pointer):
        raise ValueError(f"{pointer!r} is not a JSON pointer")
    if pointer == "":
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def pointer_to(path: tuple[str | int, ...]) -> str:
    """The pointer that leads along `path`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def find(document: Json, pointer: str) -> Json:
    """What is at `pointer`, or `MISSING`. ValueError for a malformed pointer."""
    here = document
    for part in parts(pointer):
        if isinstance(here, dict):
            here = here.get(part, MISSING)
        elif isinstance(here, list) and _INDEX.fullmatch(part) and int(part) < len(here):
            here = here[int(part)]
        else:
            return MISSING
        if here is MISSING:
            return MISSING
    return here
