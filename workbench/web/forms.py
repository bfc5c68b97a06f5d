"""Forms made from what a command says it asks for; nothing here knows a verb or checks a right.

A command's own parser is the only judge of arguments: these values carry labels, drafts and its complaints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from django.http import QueryDict
from django.utils.translation import gettext as _

from workbench.commands import LISTS, ArgumentField, Kind, code_words

if TYPE_CHECKING:
    from workbench.web.presenters.words import Words


class Titled(Protocol):
    """Something that can be chosen: an end state, a step."""

    @property
    def value(self) -> str: ...
    @property
    def label(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One choice of a field."""

    value: str
    label: Words
    picked: bool = False


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field as a template draws it: kind is text, area, select or checks."""

    name: str
    label: Words
    kind: str
    value: str = ""
    help: Words = ""
    note: Words = ""
    placeholder: Words = ""
    error: Words = ""
    required: bool = True
    most: int = 200
    choices: tuple[Choice, ...] = ()
    autocomplete: str = "off"
    asks: bool = False
    """The form says that it asked, so that nothing picked is told from nothing said."""
    code: Field | None = None
    """Of a reason: the select of its codes, asked for under the same label."""


_WIDGETS = {
    Kind.TEXT: "area",
    Kind.REASON: "area",
    Kind.REASON_CODE: "select",
    Kind.LINE: "text",
    Kind.CHOICE: "select",
    Kind.END_STATE: "select",
    Kind.STEPS: "checks",
    Kind.ITEMS: "checks",
    Kind.DOCUMENT: "area",
}


def fields(
    asked: Iterable[ArgumentField],
    *,
    draft: Mapping[str, object] | None = None,
    errors: Mapping[str, Words] | None = None,
    choices: Mapping[str, Sequence[tuple[str, Words]]] | None = None,
) -> tuple[Field, ...]:
    """The visible fields of a command, with what was written before and what was wrong with it.

    A step is fixed by the offer, so it is no field; a list of steps without choices is left out. The codes of a reason
    are no field of their own: they stand with the reason.
    """
    shown = [field for field in asked if field.kind is not Kind.STEP and not field.in_plan]
    made = {
        field: _field(field, draft or {}, errors or {}, (choices or {}).get(field.name, ()))
        for field in shown
    }
    code = next((made[field] for field in shown if field.kind is Kind.REASON_CODE), None)
    with_code = (
        replace(one, code=code) if field.kind is Kind.REASON else one
        for field, one in made.items()
        if field.kind is not Kind.REASON_CODE
    )
    return tuple(field for field in with_code if field.kind != "checks" or field.choices)


def _field(
    field: ArgumentField,
    draft: Mapping[str, object],
    errors: Mapping[str, Words],
    choices: Sequence[tuple[str, Words]],
) -> Field:
    value = draft.get(field.name, "")
    picked = {value} if isinstance(value, str) else set(value if isinstance(value, list | tuple) else ())
    items = field.kind is Kind.ITEMS
    if items and field.name not in draft:
        picked = {code for code, __ in choices}
    known = choices or _known(field)
    reason, code = field.kind is Kind.REASON, field.kind is Kind.REASON_CODE
    return Field(
        name=field.name,
        label=field.label,
        kind=_WIDGETS.get(field.kind, "text"),
        value=value if isinstance(value, str) else "",
        help=field.help,
        note=_note(field),
        placeholder=_("What did you see, and why is this right?") if reason else "",
        error=_("Choose one of the codes.") if code and field.name in errors else _errors_of(field, errors),
        required=field.required,
        most=field.max_length,
        choices=tuple(Choice(value=one, label=label, picked=one in picked) for one, label in known),
        asks=items,
    )


def _known(field: ArgumentField) -> Sequence[tuple[str, Words]]:
    """What a field itself offers: words of the interface as they are, codes in the reader's language."""
    if field.kind is Kind.REASON_CODE:
        return [("", _("Choose a code")), *((code, code_words(code)) for code in field.choices)]
    return [(choice, choice) for choice in field.choices]


def _errors_of(field: ArgumentField, errors: Mapping[str, Words]) -> Words:
    """What is wrong with a field; of a document also what is wrong inside, each with its place."""
    own = errors.get(field.name, "")
    inside = [
        f"{name.removeprefix(field.name)} {says}"
        for name, says in errors.items()
        if name.startswith(f"{field.name}/")
    ]
    return own or "; ".join(inside)


def _note(field: ArgumentField) -> str:
    if field.kind is Kind.REASON:
        return _("kept in the audit trail")
    return "" if field.required or field.kind in (Kind.CHOICE, Kind.ITEMS) else _("optional")


def arguments(asked: Iterable[ArgumentField], data: QueryDict) -> dict[str, object]:
    """What a form sent for these fields, unread: a list for a list, a text for the rest."""
    found: dict[str, object] = {}
    for field in asked:
        if field.name in data:
            found[field.name] = data.getlist(field.name) if field.kind in LISTS else data[field.name]
    return found
