"""How a chain writes its values (`{name}`, `{result:id}`, `{idempotency_key}`), and the bindings they become.

A chain may name a value anywhere; here a compensation and a query see only what the call itself carries. What
they need besides goes along with the call as an argument of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tools.contract import Json

_WHOLE = re.compile(r"\{(?:(result|before|after):)?([A-Za-z_][A-Za-z0-9_]*)\}")
_ANYWHERE = re.compile(r"\{[^{}]*\}")
KEY = "idempotency_key"


@dataclass(kw_only=True)
class CallValues:
    """The values of one step's call: its arguments as the chain writes them, and what has to go along besides."""

    args: dict[str, Json]
    carried: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)

    @staticmethod
    def of(args: dict[str, Json]) -> CallValues:
        """The values of a call with these arguments."""
        values = CallValues(args={})
        for name, value in args.items():
            values.args[_argument(name)] = value
            if _argument(name) != name:
                values.renamed.append(name)
        return values

    def later(self, template: dict[str, Json], *, key: str) -> dict[str, Json]:
        """The arguments of a compensation or a query. `key` is the source of the call's own key there."""
        return {_argument(name): _mapped(value, self._bound(name, key)) for name, value in template.items()}

    def _bound(self, name: str, key: str) -> Callable[[str], Json]:
        def bound(text: str) -> Json:
            whole = _WHOLE.fullmatch(text)
            if whole and whole[1]:
                return {"from": "prior" if whole[1] == "before" else "result", "pointer": f"/{whole[2]}"}
            if whole and whole[2] == KEY:
                return {"from": key}
            return {"from": "args", "pointer": f"/{self._argument_with(text, whole[2] if whole else name)}"}

        return bound

    def _argument_with(self, text: str, name: str) -> str:
        for argument, value in self.args.items():
            if value == text:
                return argument
        self.args[_argument(name)] = text
        self.carried.append(_argument(name))
        return _argument(name)


def forward(args: dict[str, Json], made: dict[str, str], given: Callable[[str], None]) -> dict[str, Json]:
    """The arguments of a step: from an earlier step's result where `made` names one (value -> step), else input.

    `given` is told each name that is taken from the input.
    """

    def bound_to(argument: str) -> Callable[[str], Json]:
        def bound(text: str) -> Json:
            whole = _WHOLE.fullmatch(text)
            name = whole[2] if whole else argument
            if name == KEY:
                return {"from": "key"}
            if whole and name in made:
                return {"from": f"steps.{made[name]}.result", "pointer": f"/{name}"}
            given(name)
            return {"from": "input", "pointer": f"/{name}"}

        return bound

    return {name: _mapped(value, bound_to(name)) for name, value in args.items()}


def composed(args: dict[str, Json]) -> Iterator[str]:
    """The arguments whose value is put together from parts, which has no counterpart here."""
    for name, value in args.items():
        if isinstance(value, str) and _ANYWHERE.search(value) and not _WHOLE.fullmatch(value):
            yield name


def taken_from(template: Json, *words: str) -> list[str]:
    """The names that a template takes from `result`, `before` or `after`, in order and once."""
    found: list[str] = []

    def note(text: str) -> Json:
        whole = _WHOLE.fullmatch(text)
        if whole and whole[1] in words and whole[2] not in found:
            found.append(whole[2])
        return text

    _mapped(template, note)
    return found


def _argument(name: str) -> str:
    """`from` marks a lookup, so that no argument can be called so."""
    return "from_" if name == "from" else name


def _mapped(value: Json, bound: Callable[[str], Json]) -> Json:
    if isinstance(value, str):
        return bound(value) if _ANYWHERE.search(value) else value
    if isinstance(value, list):
        return [_mapped(part, bound) for part in value]
    if isinstance(value, dict):
        return {_argument(name): _mapped(part, bound) for name, part in value.items()}
    return value
