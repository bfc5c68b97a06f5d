"""The keys of every page. Keys pick and move; no single key ever runs a write."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _


@dataclass(frozen=True, kw_only=True)
class Key:
    """One or two keys and what they do."""

    keys: tuple[str, ...]
    does: str


@dataclass(frozen=True, kw_only=True)
class KeyGroup:
    """The keys of one page."""

    name: str
    keys: tuple[Key, ...]


def groups() -> tuple[KeyGroup, ...]:
    """All of them, by page."""
    return (
        KeyGroup(
            name=_("Anywhere"),
            keys=(
                Key(keys=("?",), does=_("this list")),
                Key(keys=("/",), does=_("search")),
                Key(keys=("G", "H"), does=_("handoffs")),
                Key(keys=("G", "S"), does=_("sign-offs")),
                Key(keys=("G", "R"), does=_("runs")),
                Key(keys=("G", "W"), does=_("workflows")),
                Key(keys=("G", "O"), does=_("tools")),
                Key(keys=("G", "Y"), does=_("system")),
                Key(keys=("Esc",), does=_("close, go back")),
            ),
        ),
        KeyGroup(
            name=_("Queue"),
            keys=(
                Key(keys=("J", "K"), does=_("next, previous row")),
                Key(keys=("Enter",), does=_("open")),
                Key(keys=("X",), does=_("select the row")),
                Key(keys=("Shift", "X"), does=_("select up to this row")),
                Key(keys=("C",), does=_("go to the claim button of the row")),
                Key(keys=("Q",), does=_("query status: of the row, or of what is selected")),
                Key(keys=("E",), does=_("escalate: the row, or what is selected")),
                Key(keys=("U",), does=_("show new and changed")),
                Key(keys=("F",), does=_("filter")),
                Key(keys=("Esc",), does=_("select nothing")),
            ),
        ),
        KeyGroup(
            name=_("Case"),
            keys=(
                Key(keys=("Q",), does=_("query status")),
                Key(keys=("R",), does=_("retry")),
                Key(keys=("A",), does=_("mark acceptable")),
                Key(keys=("M",), does=_("compensate")),
                Key(keys=("E",), does=_("escalate")),
                Key(keys=("H",), does=_("hand over")),
                Key(keys=("Ctrl", "Enter"), does=_("run what is shown")),
                Key(keys=("C",), does=_("go to the claim button")),
                Key(keys=("J", "K"), does=_("next, previous step")),
                Key(keys=("O",), does=_("open or close the step")),
                Key(keys=("V",), does=_("go to “use the new version”")),
                Key(keys=("N",), does=_("comment")),
                Key(keys=("G", "T"), does=_("decision trail")),
            ),
        ),
        KeyGroup(
            name=_("Sign-off"),
            keys=(
                Key(keys=("S",), does=_("go to the signature")),
                Key(keys=("X",), does=_("go to “reject”")),
                Key(keys=("D",), does=_("select the digest")),
                Key(keys=("Ctrl", "Enter"), does=_("sign what is shown")),
            ),
        ),
    )
