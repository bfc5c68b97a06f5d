"""What a tool itself said when it refused: its code and its sentence, where the answer carries them.

Words for people; nothing is decided by them.
"""

from __future__ import annotations

from tools.contract import Json
from tools.pointers import find
from tools.texts import inert

LONGEST = 300
_CODE = "/error"
_SENTENCES = ("/message", "/detail", "/title")


def said(body: Json, *, code: str = "") -> str:
    """The code (at the pointer `code`, or `/error`) and the sentence of an error answer; "" without either."""
    parts = [find(body, pointer) for pointer in (code or _CODE, *_SENTENCES)]
    texts = [inert(part) for part in parts if isinstance(part, str) and part.strip()]
    return ": ".join(dict.fromkeys(texts[:2]))[:LONGEST]
