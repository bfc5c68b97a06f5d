"""Bindings: how a contract or a definition says where a value comes from.

A closed vocabulary: literals, `{"from": SOURCE, "pointer": "/a/b", "default": ...}` and `{"literal": ...}`.
No template engine, no evaluation (architecture.md, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.contract import Json
from tools.pointers import MISSING, find, is_pointer, pointer_to

_KEYS = frozenset({"from", "pointer", "default"})


class Unbindable(Exception):
    """A binding has no value. `where` is the place inside the template, `pointer` what was looked for."""

    def __init__(self, where: str, pointer: str) -> None:
        super().__init__(f"{where or 'the value'} cannot be bound: nothing is at {pointer}")
        self.where = where
        self.pointer = pointer


@dataclass(frozen=True, kw_only=True)
class Binding:
    """One place in a template that takes its value from a source."""

    where: str
    source: str
    pointer: str
    has_default: bool


def is_binding(value: Json) -> bool:
    """Whether this very value (not one inside it) is looked up."""
    return isinstance(value, dict) and "from" in value


def is_literal(value: Json) -> bool:
    """Whether this very value is an escaped literal, `{"literal": ...}`."""
    return isinstance(value, dict) and value.keys() == {"literal"}


def fault(value: Json) -> str:
    """What is wrong with the form of a binding, as a sentence; "" if nothing is."""
    if extra := sorted(set(value) - _KEYS):
        return f"a binding has only from, pointer and default, not {', '.join(extra)}"
    if not isinstance(value["from"], str) or not value["from"]:
        return "`from` names a source as text"
    if not is_pointer(value.get("pointer", "")):
        return "`pointer` is a JSON pointer: empty, or starting with a slash"
    return ""


def bind(value: Json, scope: Mapping[str, Json]) -> Json:
    """The value with every binding replaced by what `scope` holds. Raises `Unbindable`.

    A default stands in for a source that is not in scope and for a place that is not in the source.
    """
    return _bind(value, scope, ())


def _bind(value: Json, scope: Mapping[str, Json], path: tuple[str | int, ...]) -> Json:
    if isinstance(value, dict):
        if is_literal(value):
            return value["literal"]
        if is_binding(value):
            return _look_up(value, scope, pointer_to(path))
        return {name: _bind(part, scope, (*path, name)) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_bind(part, scope, (*path, index)) for index, part in enumerate(value)]
    return value


def _look_up(binding: Mapping[str, Json], scope: Mapping[str, Json], where: str) -> Json:
    if fault(binding):
        raise Unbindable(where, f"a malformed binding ({fault(binding)})")
    source, pointer = binding["from"], binding.get("pointer", "")
    found = find(scope[source], pointer) if source in scope else MISSING
    if found is not MISSING:
        return found
    if "default" in binding:
        return binding["default"]
    raise Unbindable(where, f"{source}{pointer}")


def bindings_in(value: Json) -> Iterator[Binding]:
    """Every well-formed binding inside a template, in document order."""
    for path, part in paths(value):
        if not fault(part):
            yield Binding(
                where=pointer_to(path),
                source=part["from"],
                pointer=part.get("pointer", ""),
                has_default="default" in part,
            )


def paths(
    value: Json, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], dict[str, Json]]]:
    """Every place that is meant as a binding, well-formed or not: (path in the template, the dict)."""
    if isinstance(value, dict):
        if is_literal(value):
            return
        if is_binding(value):
            yield path, value
            return
        for name, part in value.items():
            yield from paths(part, (*path, name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from paths(part, (*path, index))


def sources(value: Json) -> set[str]:
    """The sources that a template reads, for the lint."""
    return {binding.source for binding in bindings_in(value)}
