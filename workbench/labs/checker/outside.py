"""Invariants that the ledger of the world judges: what took effect, how often, in which order, and what is true of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from workbench.labs.checker.found import Found
from workbench.labs.checker.histories import Histories, Record, Row

SAME_CLOCK = timedelta(milliseconds=20)
"""The world writes whole milliseconds, the database microseconds; both read the clock of this machine."""

_NOTHING_STANDS = ("rejected", "skipped", "not_started", "prepared", "compensated", "superseded")
_MAYBE = ("due", "awaiting_approval", "sent", "unknown", "failed")


def v2_no_phantom(h: Histories) -> Found:
    """Whatever arrives outside was on record before: attempt, compensation and the state before it."""
    found = Found()
    known = _known_keys(h)
    for key, arrived in h.arrivals.items():
        owner = known.get(key.partition(".i")[0] if key not in known else key)
        found.look(owner is not None, f"{arrived[0].tool} arrived under {key!r}, which nobody ordered")
        if owner is None:
            continue
        action, made_up = owner
        for number, arrival in enumerate(arrived):
            tries = h.attempts_of[action["id"], made_up["id"] if made_up else None]
            late = number >= len(tries) or (
                not h.clock_moved and tries[number]["sent_at"] > arrival.at + SAME_CLOCK
            )
            found.look(
                not late, f"{arrival.tool} ({key}) arrived before its attempt {number + 1} was on record"
            )
        if made_up is None:
            _registered_before(h, found, action, arrived[0])
    return found


def _known_keys(h: Histories) -> dict[str, tuple[Row, Row | None]]:
    known: dict[str, tuple[Row, Row | None]] = {row["key"]: (row, None) for row in h.snapshot["action"]}
    for row in h.snapshot["compensation"]:
        known[row["key"]] = (h.actions[row["action_id"]], row)
    return known


def _registered_before(h: Histories, found: Found, action: Row, first: Record) -> None:
    contract = h.snapshot.contracts[action["contract_id"]]["document"]
    units = [row for row in h.snapshot["action"] if row["parent_id"] == action["id"]] or [action]
    tries = h.attempts_of[action["id"], None]
    left = tries[0]["sent_at"] if tries else first.at
    if contract.get("compensation"):
        for unit in units:
            row = h.compensation_of.get(unit["id"])
            there = row is not None and row["registered_at"] <= left
            found.look(there, f"{first.tool} ({first.key}) left before its compensation was on record")
    if contract.get("prior_state"):
        read = action["prior_read_at"]
        there = read is not None and read <= left
        found.look(there, f"{first.tool} ({first.key}) left before the state before it was on record")


def v3_at_most_once(h: Histories) -> Found:
    """No key takes effect twice, and no step of a run does so under two keys, unless a person ordered it again."""
    found = Found()
    for key, effects in h.effects.items():
        found.look(len(effects) <= 1, f"{effects[0].tool} took effect {len(effects)} times under {key}")
    for unit, generations in _units(h).items():
        stands = sum(max(h.net(row), 0) for row in generations)
        found.look(stands <= 1, f"{generations[0]['tool']} of {unit} stands {stands} times")
    return found


def _units(h: Histories) -> dict[tuple[int, str, str], list[Row]]:
    """Every step, or item of one, with all its generations."""
    found: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
    for row in h.snapshot["action"]:
        if row["id"] not in h.wholes:
            found[row["run_id"], row["step"], row["item"]].append(row)
    return found


def v4_truth(h: Histories) -> Found:
    """What the record says of an action is so outside; what is unknown is with a person."""
    found = Found()
    for action in h.snapshot["action"]:
        if action["id"] not in h.wholes:
            why = _untrue(h, action)
            ref = h.runs[action["run_id"]]["ref"]
            found.look(not why, f"{ref} {action['step']} {action['item']}: {action['tool']} {why}")
    for run in h.snapshot["run"]:
        if run["state"] in ("compensated", "failed_clean"):
            left = [
                row["tool"] for row in h.actions_of[run["id"]] if h.net(row) > 0 and not _mitigated(h, row)
            ]
            found.look(not left, f"{run['ref']} is {run['state']} and {', '.join(left)} stands")
    return found


def _mitigated(h: Histories, action: Row) -> bool:
    """Whether the effect was only mitigated, as its compensation declares."""
    made_up = h.compensation_of.get(action["id"])
    return made_up is not None and made_up["kind"] == "mitigates"


def _untrue(h: Histories, action: Row) -> str:
    made_up = h.compensation_of.get(action["id"])
    state, net = action["state"], h.net(action)
    if state == "confirmed":
        least = 0 if made_up and made_up["state"] in _MAYBE else 1
        if made_up and made_up["state"] == "confirmed" and made_up["kind"] == "mitigates":
            least = -1
        return "" if least <= net <= 1 else f"is confirmed and stands {net} times"
    if state in _NOTHING_STANDS:
        return "" if net == 0 else f"is {state} and stands {net} times"
    if state in ("unknown", "accepted", "partial"):
        if net not in (0, 1):
            return f"is {state} and stands {net} times"
        open_case = state != "unknown" or action["run_id"] in h.open_handoffs
        return "" if open_case else "is unknown and no case is open"
    return f"is still {state}"


def v5_order(h: Histories) -> Found:
    """Effects are made up for in the reverse order of their confirmation."""
    found = Found()
    for run_id, rows in _made_up(h).items():
        for (_, later), (_, earlier) in _pairs(sorted(rows)):
            if later["settled_at"] and earlier["settled_at"]:
                in_order = later["confirm_seq"] > earlier["confirm_seq"] or _confirmed_late(h, earlier, later)
                ref = h.runs[run_id]["ref"]
                found.look(in_order, f"{ref}: {later['tool']} was made up for before {earlier['tool']}")
    return found


def _made_up(h: Histories) -> dict[int, list[tuple[int, Row]]]:
    """By run: when the effect of which action was made up for outside, by the ledger's numbers."""
    found: dict[int, list[tuple[int, Row]]] = defaultdict(list)
    for row in h.snapshot["compensation"]:
        effects = h.effects.get(row["key"], [])
        action = h.actions[row["action_id"]]
        if effects and action["confirm_seq"] is not None:
            found[action["run_id"]].append((effects[0].seq, action))
    return found


def _pairs(rows: list[tuple[int, Row]]) -> Iterator[tuple[tuple[int, Row], tuple[int, Row]]]:
    """Neighbours. Rows compare by the ledger's number, which is unique."""
    return pairwise(rows)


def _confirmed_late(h: Histories, second: Row, first: Row) -> bool:
    """Whether `second` was only known to have happened when `first` was being made up for already."""
    sent = h.compensation_of[first["id"]]["sent_at"]
    return sent is not None and second["settled_at"] > sent


def v6_no_late_orphan(h: Histories) -> Found:
    """No effect lands after it was made up for, unless a case tells of it."""
    found = Found()
    telling = {row["run_id"] for row in h.snapshot["handoff"] if row["reason"] == "late_fact"}
    for row in h.snapshot["compensation"]:
        undone = h.effects.get(row["key"])
        if undone:
            action = h.actions[row["action_id"]]
            done = [one for one in h.effects.get(action["key"], ()) if one.direction == "do"]
            late = any(one.seq > undone[0].seq for one in done) and action["run_id"] not in telling
            found.look(not late, f"{action['tool']} ({action['key']}) landed after it was made up for")
    return found


def v13_conservation(h: Histories) -> Found:
    """The world's books balance, and nothing was made up for that was not done. There are no tenants yet."""
    found = Found()
    found.look(not h.books, "; ".join(h.books))
    for action in h.snapshot["action"]:
        if action["id"] not in h.wholes and h.done(action):
            found.look(h.net(action) >= 0, f"{action['tool']} ({action['key']}) was made up for too often")
    return found
