"""Arguments of commands: frozen dataclasses whose fields say how a form or a serializer asks for them.

`parse` is the only reader of raw arguments; the web form and the REST serializer are made from `fields_of`.
Which codes may stand beside a reason depends on the verb: both take the command, not its arguments alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from django.utils.translation import gettext_lazy as _

from tools.json_text import read_document
from workbench.commands._reason_codes import CODES
from workbench.errors import Sentence

REASON_LENGTH = 15


class Kind(StrEnum):
    """What a field holds, for the doors to pick a widget or a schema."""

    STEP = "step"
    STEPS = "steps"
    ITEMS = "items"
    LINE = "line"
    END_STATE = "end_state"
    TEXT = "text"
    REASON = "reason"
    REASON_CODE = "reason_code"
    CHOICE = "choice"
    DOCUMENT = "document"


LISTS = frozenset({Kind.STEPS, Kind.ITEMS})


@dataclass(frozen=True, kw_only=True)
class ArgumentField:
    """One argument as a door needs it. `choices` are words of the interface, never translated."""

    name: str
    kind: Kind
    label: Any
    help: Any = ""
    required: bool = True
    min_length: int = 0
    max_length: int = 200
    choices: tuple[str, ...] = ()
    in_plan: bool = False
    """Asked for where the whole plan is shown, nowhere else."""


def argument(kind: Kind, label: Any, *, default: Any = dataclasses.MISSING, **details: Any) -> Any:
    """A dataclass field that describes itself; with a default it is optional."""
    required = default is dataclasses.MISSING
    metadata = {"argument": {"kind": kind, "label": label, "required": required, **details}}
    return (
        dataclasses.field(metadata=metadata)
        if required
        else dataclasses.field(default=default, metadata=metadata)
    )


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The base of all arguments: none."""


@dataclass(frozen=True, kw_only=True)
class StepArguments(Arguments):
    """For verbs that apply to one step."""

    step: str = argument(Kind.STEP, _("Step"))


@dataclass(frozen=True, kw_only=True)
class ReasonArguments(Arguments):
    """For writes: why, for whoever reads the case next, and the code that says it in one word, if one fits."""

    reason_code: str = argument(Kind.REASON_CODE, _("Reason code"), default="")
    reason: str = argument(
        Kind.REASON,
        _("Reason"),
        help=_("At least 15 characters, so that the next reader understands why."),
        min_length=REASON_LENGTH,
        max_length=2000,
    )


@dataclass(frozen=True, kw_only=True)
class StepReasonArguments(StepArguments, ReasonArguments):
    """For writes on one step."""


def step_of(parsed: object) -> str:
    """The step that arguments are about; "" where they are about none."""
    return parsed.step if isinstance(parsed, StepArguments) else ""


class Asking(Protocol):
    """A command, as far as its arguments go."""

    verb: str
    arguments: type[Arguments]


_LAST = {Kind.REASON_CODE: 1, Kind.REASON: 2}


def fields_of(command: Asking | type[Asking]) -> tuple[ArgumentField, ...]:
    """The fields in the order of a form; the reason comes last, right behind its code."""
    found = [
        ArgumentField(name=field.name, **field.metadata["argument"])
        for field in dataclasses.fields(command.arguments)
    ]
    codes = tuple(str(code) for code in CODES.get(command.verb, ()))
    known = [
        dataclasses.replace(field, choices=codes) if field.kind is Kind.REASON_CODE else field
        for field in found
    ]
    return tuple(sorted(known, key=lambda field: _LAST.get(field.kind, 0)))


def parse(command: Asking | type[Asking], raw: Mapping[str, Any]) -> Arguments | Mapping[str, Sentence]:
    """The arguments, or a sentence for each field that is wrong. Unknown names are wrong too."""
    values: dict[str, Any] = {}
    problems: dict[str, Sentence] = {}
    known = fields_of(command)
    for field in known:
        value = _clean(field, raw.get(field.name))
        if isinstance(value, Sentence):
            problems[field.name] = value
        elif value or field.required:
            values[field.name] = value
    for name in sorted(set(raw) - {field.name for field in known}):
        problems[name] = Sentence(_("This command has no such argument."))
    return problems or command.arguments(**values)


def parse_some(
    command: Asking | type[Asking], raw: Mapping[str, Any], names: Collection[str]
) -> tuple[Mapping[str, Any], Mapping[str, Sentence]]:
    """Those of the named arguments that were given, and a sentence for each of them that is wrong."""
    values: dict[str, Any] = {}
    problems: dict[str, Sentence] = {}
    for field in fields_of(command):
        if field.name in names and raw.get(field.name) not in (None, ""):
            value = _clean(field, raw[field.name])
            (problems if isinstance(value, Sentence) else values)[field.name] = value
    return values, problems


def _clean(field: ArgumentField, value: object) -> Any:
    if field.kind in LISTS:
        return _clean_list(field, value)
    if field.kind is Kind.DOCUMENT:
        return _clean_document(field, value)
    if value is None:
        value = ""
    if not isinstance(value, str):
        return Sentence(_("This must be a text."))
    text = value.replace("\r\n", "\n").strip()
    if "\x00" in text or any(0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        return Sentence(_("This holds signs that cannot be stored."))
    return _problem_with(field, text) or text


def _problem_with(field: ArgumentField, text: str) -> Sentence | None:
    if not text:
        return _too_short(field) if field.required else None
    if len(text) < field.min_length:
        return _too_short(field)
    if len(text) > field.max_length:
        return Sentence(_("Write at most %(most)s characters."), {"most": field.max_length})
    if field.choices and text not in field.choices:
        return Sentence(_("Choose one of %(choices)s."), {"choices": ", ".join(field.choices)})
    return None


def _too_short(field: ArgumentField) -> Sentence:
    if field.kind is Kind.REASON_CODE:
        return Sentence(_("Choose a code: %(choices)s."), {"choices": ", ".join(field.choices)})
    if field.kind is Kind.REASON or field.min_length:
        return Sentence(_("Write at least %(least)s characters as the reason."), {"least": field.min_length})
    return Sentence(_("This is needed."))


def _clean_document(field: ArgumentField, value: object) -> Any:
    """A JSON object: as it is, or as the text of a form. Nothing said is no document."""
    if value is None or value == "":
        return Sentence(_("This is needed.")) if field.required else ""
    document = value
    if isinstance(value, str):
        if len(value) > field.max_length:
            return Sentence(_("Write at most %(most)s characters."), {"most": field.max_length})
        document, why = read_document(value)
        if why:
            return Sentence(_("This is not JSON: %(why)s"), {"why": why})
    if not isinstance(document, dict):
        return Sentence(_("This must be a JSON object."))
    return document


def _clean_list(field: ArgumentField, value: object) -> tuple[str, ...] | Sentence:
    parts = [value] if isinstance(value, str) else [] if value is None else value
    items = field.kind is Kind.ITEMS
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return Sentence(_("This must be a list of items.") if items else _("This must be a list of steps."))
    named = tuple(part for part in parts if part)
    if items and not named and (parts or field.required):
        # A form says that it asked: nothing picked is not the same as nothing said, which means all.
        return Sentence(_("Pick at least one item."))
    return named
