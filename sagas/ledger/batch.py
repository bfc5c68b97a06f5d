"""Calls over many: items with a state, a key and a compensation of their own; the state of the whole is derived.

Knows how a call is spread into items, what goes out of it, what each item's outcome is, and what follows for the whole.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from typing import Any

from sagas import entries
from sagas.ledger.desk import Desk
from sagas.models import Action
from sagas.states import ActionState, Direction
from tools.bindings import bind
from tools.contract import Contract, ErrorClass, Items, Json, Meaning
from tools.definition import Step
from tools.keys import forward_key
from tools.outcome import Outcome, OutcomeKind
from tools.pointers import MISSING, find, parts


class NotABatch(ValueError):
    """The arguments do not hold the list of items that the contract speaks of."""


# --- Out --------------------------------------------------------------------------------------------------------


def spread(desk: Desk, whole: Action, contract: Contract, args: Json) -> Json:
    """Put an item on record for every part of the list; returns the arguments with the items' own keys in place.

    Raises `NotABatch`.
    """
    items = _items(contract)
    listed = find(args, items.list)
    if not isinstance(listed, list) or not listed:
        raise NotABatch(f"there is no list of items at {items.list}")
    if len(listed) > items.most:
        raise NotABatch(f"{len(listed)} items are more than the {items.most} that one call may carry")
    names = [_name(find(part, items.id)) for part in listed]
    if len(set(names)) != len(names):
        raise NotABatch("two items have the same name")
    written = copy.deepcopy(args)
    rows = []
    for name, part in zip(names, find(written, items.list), strict=True):
        key = forward_key(desk.run.ref, whole.step, name, contract.operation, whole.generation)
        if items.key:
            _put(part, items.key, key)
        rows.append(
            Action(
                run=desk.run,
                parent=whole,
                contract_id=whole.contract_id,
                step=whole.step,
                position=whole.position,
                item=name,
                generation=whole.generation,
                tool=whole.tool,
                key=key,
                args=part,
            )
        )
    desk.actions += Action.objects.bulk_create(rows)
    for row in desk.items(whole):
        desk.move(row, "prepare", ActionState.PREPARED, actor=entries.PLANNER, after={"key": row.key})
    return written


def unroll(desk: Desk, whole: Action, contract: Contract, step: Step) -> None:
    """Put an item on record for every element of a loop's list; each is a call of its own, one after another.

    The loop itself makes no call: it counts as sent while its items go out. Raises `NotABatch`, `Unbindable`.
    """
    listed = bind(step.each, desk.scope(whole, step.each))
    if not isinstance(listed, list):
        raise NotABatch("what the step is to be made for each of is not a list")
    rows = [
        Action(
            run=desk.run,
            parent=whole,
            contract_id=whole.contract_id,
            step=whole.step,
            position=whole.position,
            item=str(number),
            generation=whole.generation,
            tool=whole.tool,
            key=forward_key(desk.run.ref, whole.step, str(number), contract.operation, whole.generation),
        )
        for number in range(1, len(listed) + 1)
    ]
    if not rows:
        desk.move(
            whole, "skip", ActionState.SKIPPED, actor=entries.PLANNER, reason="there is nothing to do it for"
        )
        return
    desk.actions += Action.objects.bulk_create(rows)
    desk.move(
        whole, "prepare", ActionState.PREPARED, actor=entries.PLANNER, after={"items": len(rows)}, args={}
    )
    desk.move(
        whole, "send", ActionState.SENT, actor=entries.PLANNER, after={"items": len(rows)}, sent_at=desk.now
    )


def outgoing(desk: Desk, whole: Action, contract: Contract) -> tuple[Json, str, list[Action]]:
    """Arguments, key and items of the next call: all items the first time, only the open ones after that.

    The same items go out under the same key, other items under another: one key never carries two payloads.
    """
    rows = desk.items(whole)
    if not rows:
        return whole.args, whole.key, []
    items = _items(contract)
    going = [row for row in rows if row.state == ActionState.PREPARED]
    if len(going) == len(rows):
        return whole.args, whole.key, going
    args = copy.deepcopy(whole.args)
    chosen = {row.item for row in going}
    _put(args, items.list, [part for part in find(args, items.list) if _name(find(part, items.id)) in chosen])
    mark = hashlib.sha256("\x00".join(sorted(chosen)).encode()).hexdigest()[:12]
    return args, f"{whole.key}.i{mark}", going


def mark_sent(desk: Desk, items: list[Action]) -> None:
    """Every item of the call is in flight with it."""
    for row in items:
        desk.move(
            row,
            "send",
            ActionState.SENT,
            actor=entries.EXECUTOR,
            attempts_used=row.attempts_used + 1,
            sent_at=desk.now,
            due_at=None,
            unknown_since=None,
        )


# --- Back -------------------------------------------------------------------------------------------------------

_OUTCOMES: dict[Meaning, tuple[OutcomeKind, ErrorClass | None]] = {
    Meaning.CONFIRMED: (OutcomeKind.CONFIRMED, None),
    Meaning.ACCEPTED: (OutcomeKind.ACCEPTED, None),
    Meaning.VALIDATION: (OutcomeKind.REJECTED, ErrorClass.VALIDATION),
    Meaning.PERMISSION: (OutcomeKind.REJECTED, ErrorClass.PERMISSION),
    Meaning.CONFLICT: (OutcomeKind.REJECTED, ErrorClass.CONFLICT),
    Meaning.NOT_FOUND: (OutcomeKind.REJECTED, ErrorClass.NOT_FOUND),
    Meaning.REFUSED: (OutcomeKind.REJECTED, ErrorClass.REFUSED),
    Meaning.TEMPORARY: (OutcomeKind.TEMPORARY, ErrorClass.TEMPORARY),
    Meaning.THROTTLED: (OutcomeKind.THROTTLED, ErrorClass.THROTTLED),
    Meaning.IN_FLIGHT: (OutcomeKind.UNKNOWN, ErrorClass.IN_FLIGHT),
    Meaning.PARTIAL: (OutcomeKind.UNKNOWN, ErrorClass.PARTIAL),
    Meaning.UNKNOWN: (OutcomeKind.UNKNOWN, ErrorClass.NO_ANSWER),
}


def outcomes(contract: Contract, rows: list[Action], outcome: Outcome) -> dict[str, Outcome]:
    """The outcome of each item. What the answer does not name is unknown; what was not carried out, is so for all."""
    if outcome.kind not in (OutcomeKind.PARTIAL, OutcomeKind.CONFIRMED):
        return {row.item: outcome for row in rows}
    items = _items(contract)
    listed = find(outcome.result, items.results)
    answers = {
        _name(find(part, items.result_id)): part for part in (listed if isinstance(listed, list) else [])
    }
    return {row.item: _of_part(items, outcome, answers.get(row.item, MISSING)) for row in rows}


def _of_part(items: Items, outcome: Outcome, part: Json) -> Outcome:
    if part is MISSING:
        detail = "the answer does not name this item"
        return replace(
            outcome, kind=OutcomeKind.UNKNOWN, error_class=ErrorClass.NO_ANSWER, detail=detail, result=None
        )
    word = find(part, items.result_state)
    kind, error = _OUTCOMES[items.states.get(str(word), Meaning.UNKNOWN)]
    reference = find(part, items.result_reference) if items.result_reference else MISSING
    return replace(
        outcome,
        kind=kind,
        error_class=error,
        detail="" if kind is OutcomeKind.CONFIRMED else f"the answer says {word!r} of this item",
        result=part,
        reference="" if reference is MISSING or reference is None else str(reference),
    )


# --- The whole --------------------------------------------------------------------------------------------------

_VERBS: dict[tuple[str, str], str] = {
    (ActionState.SENT, ActionState.CONFIRMED): "confirm",
    (ActionState.SENT, ActionState.REJECTED): "reject",
    (ActionState.SENT, ActionState.PARTIAL): "partial",
    (ActionState.SENT, ActionState.UNKNOWN): "lose",
    (ActionState.SENT, ActionState.PREPARED): "again",
    (ActionState.UNKNOWN, ActionState.CONFIRMED): "find",
    (ActionState.UNKNOWN, ActionState.REJECTED): "deny",
    (ActionState.UNKNOWN, ActionState.PARTIAL): "part_found",
    (ActionState.UNKNOWN, ActionState.PREPARED): "absent",
    (ActionState.PARTIAL, ActionState.CONFIRMED): "all_settled",
    (ActionState.PARTIAL, ActionState.REJECTED): "nothing_applied",
    (ActionState.PARTIAL, ActionState.COMPENSATED): "all_compensated",
    (ActionState.CONFIRMED, ActionState.COMPENSATED): "compensated",
    (ActionState.REJECTED, ActionState.CONFIRMED): "late_found",
    (ActionState.CONFIRMED, ActionState.ACCEPTED): "accept",
    (ActionState.PARTIAL, ActionState.ACCEPTED): "accept",
}


def derive_of(desk: Desk, action: Action) -> None:
    """Derive the whole that an item belongs to; nothing for a plain action."""
    if action.parent_id is not None:
        derive(desk, desk.action(action.parent_id))


def derive_all(desk: Desk) -> None:
    """Derive every whole of the run."""
    wholes = {row.parent_id for row in desk.actions if row.parent_id is not None}
    for row in [row for row in desk.actions if row.pk in wholes]:
        derive(desk, row)


def derive(desk: Desk, whole: Action) -> None:
    """Move a call over many to what follows from its items, if that is another state."""
    rows = desk.items(whole)
    forward = desk.run.direction == Direction.FORWARD
    target = _target(whole, rows, loop=desk.contract(whole).items is None, forward=forward)
    verb = _VERBS.get((whole.state, target))
    if verb is None:
        return
    changes: dict[str, Any] = {"due_at": None}
    if target == ActionState.CONFIRMED:
        changes |= {"settled_at": desk.now, "settled_by": "its items", "error_class": "", "error_detail": ""}
    elif target in (ActionState.PARTIAL, ActionState.REJECTED):
        failed = [row for row in rows if row.state == ActionState.REJECTED]
        changes |= {
            "error_class": failed[0].error_class if failed else "",
            "error_detail": f"{len(failed)} of {len(rows)} items were refused" if failed else "",
        }
    elif target == ActionState.UNKNOWN:
        changes |= {"unknown_since": desk.now}
    desk.move(
        whole,
        verb,
        target,
        actor=entries.TOOL,
        after={"items": _counted([row.state for row in rows])},
        **changes,
    )


def _let_be(row: Action) -> bool:
    """Whether a person accepted an item as it is that never took effect: it was refused before."""
    return row.state == ActionState.ACCEPTED and row.settled_at is not None and row.confirm_seq is None


def _target(whole: Action, rows: list[Action], *, loop: bool, forward: bool) -> str:
    found = {row.state for row in rows if not _let_be(row)}
    let_be = any(_let_be(row) for row in rows)
    if let_be and not found:
        return ActionState.ACCEPTED
    if let_be and not forward:
        found.add(ActionState.REJECTED)  # on the way back it is as good as any other that did nothing
    if ActionState.SENT in found:
        return whole.state
    if loop and found & {ActionState.NOT_STARTED, ActionState.PREPARED}:
        # A loop goes on from item to item; a refused one stops it there.
        stopped = ActionState.REJECTED in found and whole.state == ActionState.SENT
        return ActionState.PARTIAL if stopped else whole.state
    if ActionState.UNKNOWN in found:
        if whole.state == ActionState.SENT:
            return ActionState.UNKNOWN if found == {ActionState.UNKNOWN} else ActionState.PARTIAL
        return whole.state
    for only in (ActionState.CONFIRMED, ActionState.PREPARED):
        if found == {only}:
            return only
    gone = {ActionState.REJECTED, ActionState.SKIPPED}
    if found <= gone:
        return ActionState.REJECTED
    if ActionState.COMPENSATED in found and found <= gone | {ActionState.COMPENSATED}:
        return ActionState.COMPENSATED
    if ActionState.ACCEPTED in found and found <= gone | {ActionState.COMPENSATED, ActionState.ACCEPTED}:
        return ActionState.ACCEPTED
    return ActionState.PARTIAL


def _counted(states: list[str]) -> dict[str, int]:
    return {state: states.count(state) for state in sorted(set(states))}


# --- Shared -----------------------------------------------------------------------------------------------------


def _items(contract: Contract) -> Items:
    if contract.items is None:
        raise NotABatch(f"{contract.tool} is not a call over many")
    return contract.items


def _name(value: Json) -> str:
    return str(value)


def _put(document: Json, pointer: str, value: Json) -> None:
    """Set the value at a pointer whose holder exists."""
    *path, last = parts(pointer)
    holder = document
    for name in path:
        holder = holder[int(name)] if isinstance(holder, list) else holder[name]
    if isinstance(holder, list):
        holder[int(last)] = value
    else:
        holder[last] = value
