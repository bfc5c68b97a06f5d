"""Conditions: checkable sentences about a document (acceptable states, preconditions, query answers).

A condition says nothing about a read that did not answer: the caller reads first, then asks here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.bindings import Unbindable, bind
from tools.contract import Condition, Json
from tools.pointers import MISSING, find

OPERATORS = ("equals", "not_equals", "exists", "absent", "one_of", "at_least", "at_most")


def holds(condition: Condition, document: Json, scope: Mapping[str, Json] | None = None) -> bool:
    """Whether the condition is true of the document. What cannot be told does not hold; never raises."""
    try:
        return evaluate(condition, document, scope)
    except Unbindable:
        return False


def evaluate(condition: Condition, document: Json, scope: Mapping[str, Json] | None = None) -> bool:
    """As `holds`, but raises `Unbindable` when the value to compare with has none.

    `exists` and `absent` take null as absent. Every other operator asks for a value that is there:
    a missing one is no evidence, so `not_equals` does not hold either.
    """
    found = find(document, condition.pointer)
    if condition.operator == "exists":
        return found is not MISSING and found is not None
    if condition.operator == "absent":
        return found is MISSING or found is None
    value = bind(condition.value, {**(scope or {}), "answer": document})
    if found is MISSING:
        return False
    return _compare(condition.operator, found, value)


def _compare(operator: str, found: Json, value: Json) -> bool:
    match operator:
        case "equals":
            return same(found, value)
        case "not_equals":
            return not same(found, value)
        case "one_of":
            return isinstance(value, list) and any(same(found, one) for one in value)
        case "at_least":
            return _is_number(found) and _is_number(value) and bool(found >= value)
        case "at_most":
            return _is_number(found) and _is_number(value) and bool(found <= value)
    return False


def same(left: Json, right: Json) -> bool:
    """JSON equality: 1 is 1.0, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
