"""Untrusted text made inert: what a tool, an agent or a file name says is shown, never obeyed.

Control, direction, zero-width and escape characters become visible marks; long text is cut with what is missing.
"""

from __future__ import annotations

import json
import unicodedata

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from tools.contract import Json

LONGEST = 1000
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NAMES = {"\x1b": "ESC", "\x00": "NUL", "\x07": "BEL", "\x08": "BS", "\r": "CR", "\x7f": "DEL"}


def inert(value: object, longest: int = LONGEST) -> SafeString:
    """`value` as escaped text with every invisible character made visible, cut after `longest` characters."""
    if isinstance(value, SafeString):
        return value
    text = "" if value is None else str(value)
    if len(text) <= longest and text.isprintable() and _BLANKS.isdisjoint(text):
        return escape(text)
    shown = mark_safe("".join(_visible(char) for char in text[:longest]))  # noqa: S308 - each part is escaped
    rest = text[longest:]
    if not rest:
        return shown
    more = len(rest.encode("utf-8", "surrogatepass"))
    words = ngettext("{n} more byte", "{n} more bytes", more).format(n=f"{more:,}")
    return format_html('{}… <span class="cutoff">{}</span>', shown, words)


def plain(value: object, longest: int) -> str:
    """`value` for where no markup may stand: the same characters made visible, as text, and cut; not yet escaped."""
    chars = str(value)
    shown = "".join(f"‹{name}›" if (name := _unseen(char)) else char for char in chars[:longest])
    return shown if len(chars) <= longest else f"{shown}…"


def say(template: object, **parts: object) -> SafeString:
    """A sentence of ours filled with parts that may be anybody's: the parts are made inert first."""
    if not parts:
        return escape(str(template))
    return format_html(str(template), **{name: inert(part, 200) for name, part in parts.items()})


def strong(value: object) -> SafeString:
    """An inert part that stands out."""
    return format_html("<b>{}</b>", inert(value, 200))


def as_json(value: Json, longest: int = LONGEST) -> SafeString:
    """A JSON value as one inert line, or several when it is long."""
    flat = json.dumps(value, ensure_ascii=False)
    return inert(flat if len(flat) < 90 else json.dumps(value, ensure_ascii=False, indent=2), longest)


def as_line(value: Json, longest: int) -> SafeString:
    """A JSON value as one inert line, however long it is."""
    return inert(json.dumps(value, ensure_ascii=False), longest)


def _visible(char: str) -> str:
    match char:
        case "&":
            return "&amp;"
        case "<":
            return "&lt;"
        case ">":
            return "&gt;"
        case '"':
            return "&quot;"
        case "'":
            return "&#x27;"
        case "\n":
            return "\n"
        case "\t":
            return "  "
    name = _unseen(char)
    return f'<span class="vis">{name}</span>' if name else char


def _unseen(char: str) -> str:
    """The name of a character that cannot be seen, "" for any other."""
    if char in "\n\t" or (char.isprintable() and char not in _BLANKS):
        return ""
    hidden = char in _BLANKS or unicodedata.category(char) in _HIDDEN
    return (_NAMES.get(char) or f"U+{ord(char):04X}") if hidden else ""
