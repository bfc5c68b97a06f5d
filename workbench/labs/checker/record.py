"""Invariants of the record: what was acknowledged, told, published and counted agrees with what is stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from workbench.labs.checker.found import Found
from workbench.labs.checker.histories import Histories, Row

LEAST_CAP = 99
"""Counts of the queue end at a cap; one that is smaller is exact."""


def v1_no_loss(h: Histories) -> Found:
    """Every acknowledged start is at its end or visibly with a person; every acknowledged command has its receipt."""
    found = Found()
    receipts = {row["command_id"] for row in h.snapshot["receipt"]}
    for said in h.said:
        if said.outcome != "ok":
            continue
        if said.kind == "start":
            run = h.refs.get(said.ref)
            settled = run is not None and h.settled(run)
            found.look(settled, f"{said.ref or said.id} was acknowledged and is {run and run['state']}")
        elif said.kind == "command":
            found.look(said.id in receipts, f"{said.verb} {said.id} was acknowledged and left no receipt")
    return found


def v7_stop_means_stop(h: Histories) -> Found:
    """No forward call is ordered after its run has turned back, nor while a freeze of forward calls is in force."""
    found = Found()
    frozen = _freezes(h)
    for ref, trail in h.told.items():
        turned = next((entry.seq for entry in trail if entry.name == "run.turned_back"), None)
        for entry in trail:
            if entry.machine != "action" or entry.target != "sent" or entry.source == "sent":
                continue
            after = turned is not None and entry.seq > turned
            found.look(not after, f"{ref}: {entry.step} was sent after the run had turned back")
            held = any(begun < entry.at < lifted for begun, lifted in frozen)
            found.look(not held, f"{ref}: {entry.step} was sent while everything was frozen")
    return found


def _freezes(h: Histories) -> list[tuple[datetime, datetime]]:
    """From when to when freezes of everything were in force, by the entries that say so."""
    begun = {row["after"]["freeze"]: row for row in h.snapshot["loose"] if row["name"] == "system.frozen"}
    ended: dict[int, datetime] = {
        row["after"]["freeze"]: row["at"] for row in h.snapshot["loose"] if row["name"] == "system.unfrozen"
    }
    now: datetime = h.snapshot["clock"][0]["now"]
    return [
        (row["at"], ended.get(number, now))
        for number, row in begun.items()
        if row["after"]["applies_to"] == "all"
    ]


def v8_authorised(h: Histories) -> Found:
    """What needs a signature leaves with one: of another person, in time, over this very call, used once.

    That is every call of a tool that asks for a confirmation, and every compensation that waits for an approval.
    """
    found = Found()
    used: dict[tuple[int, int | None], list[Row]] = defaultdict(list)
    for permit in h.snapshot["permit"]:
        if permit["state"] == "consumed":
            used[permit["action_id"], permit["compensation_id"]].append(permit)
            asked = {one["id"] for one in permit["requesters"]}
            found.look(permit["decided_by"] not in asked, f"{permit['ref']} was signed by who asked for it")
            found.look(permit["decided_at"] <= permit["expires_at"], f"{permit['ref']} was signed too late")
    for row in h.snapshot["action"]:
        if h.snapshot.contracts[row["contract_id"]]["document"].get("require_confirmation"):
            _look_at_signatures(found, h, row, (row["id"], None), used)
    for row in h.snapshot["compensation"]:
        if row["who"] == "approval":
            _look_at_signatures(found, h, row, (row["action_id"], row["id"]), used)
    return found


def _look_at_signatures(
    found: Found,
    h: Histories,
    row: Row,
    call: tuple[int, int | None],
    used: Mapping[tuple[int, int | None], Sequence[Row]],
) -> None:
    """Whether a call that went out went with its signature."""
    if not h.arrivals.get(row["key"]):
        return
    permits = used.get(call, ())
    found.look(bool(permits), f"{row['tool']} ({row['key']}) left without a signature")
    same = all(permit["document"]["args"] == row["args"] for permit in permits)
    found.look(same, f"{row['tool']} ({row['key']}) is not what was signed")
    first = h.attempts_of[call][0]["sent_at"]
    fresh = any(permit["expires_at"] > first for permit in permits)
    found.look(fresh, f"{row['tool']} ({row['key']}) left after its signature had expired")


def v9_audited(h: Histories) -> Found:
    """One entry for every change and every refusal: numbers dense, moves legal and joined, up to what is in the tables.

    The chain of hashes, its checkpoints and their seals are not part of the product yet.
    """
    found = Found()
    counted = {row["run_id"]: row["entries"] for row in h.snapshot["counted"]}
    for run in h.snapshot["run"]:
        trail = h.told[run["ref"]]
        dense = [entry.seq for entry in trail] == list(range(1, run["seq"] + 1))
        found.look(dense and counted.get(run["id"]) == run["seq"], f"the trail of {run['ref']} has gaps")
    legal = {(row["machine"], row["source"], row["target"]) for row in h.snapshot["legal"]}
    for (machine, number), entries in _changes(h).items():
        found.look(*_joined(h, legal, machine, number, entries))
    commands = {entry.command_id for trail in h.told.values() for entry in trail if entry.command_id}
    commands |= {row["command_id"] for row in h.snapshot["loose"]}
    for said in h.said:
        if said.kind == "command" and said.outcome in ("ok", "refused") and said.status != 404:
            found.look(said.id in commands, f"{said.verb} {said.id} ({said.outcome}) left no entry")
    return found


def _changes(h: Histories) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in h.snapshot["change"]:
        found[row["machine"], row["object_id"]].append(row)
    return found


def _joined(
    h: Histories, legal: set[tuple[str, str, str]], machine: str, number: int, entries: list[Row]
) -> tuple[bool, str]:
    rows = h.actions if machine == "action" else {row["id"]: row for row in h.snapshot[machine]}
    row, state = rows.get(number), "not_started" if machine == "action" else ""
    if row is None:
        return False, f"{machine} {number} has entries and is not there"
    versions = [entry["object_version"] for entry in entries]
    whole = machine == "run" or versions == list(range(versions[0], versions[0] + len(versions)))
    for entry in entries:
        if entry["source"] != state or (machine, entry["source"], entry["target"]) not in legal:
            return False, f"{machine} {number} went from {state} to {entry['target']} by {dict(entry)}"
        state = entry["target"]
    return whole and state == row["state"], f"{machine} {number} is {row['state']}, its entries say {state}"


def v10_outbox(h: Histories) -> Found:
    """Every entry left, in the order of its run, none skipped; a reader who drops repeats sees each in order."""
    found = Found()
    covered: dict[int, int] = defaultdict(int)
    for row in h.snapshot["outbox"]:
        ref = h.runs[row["run_id"]]["ref"]
        found.look(
            row["seq_from"] == covered[row["run_id"]] + 1, f"{ref}: entries before {row['seq_from']} skipped"
        )
        found.look(
            row["published_at"] is not None, f"{ref}: {row['seq_from']} to {row['seq_to']} did not leave"
        )
        covered[row["run_id"]] = row["seq_to"]
    for run in h.snapshot["run"]:
        found.look(
            covered[run["id"]] == run["seq"], f"{run['ref']}: entries after {covered[run['id']]} never leave"
        )
    last: dict[str, int] = defaultdict(int)
    known: set[tuple[str, int]] = set()
    for ref, seq in h.seen:
        if (ref, seq) not in known:
            known.add((ref, seq))
            found.look(seq > last[ref], f"{ref}: event {seq} was seen after {last[ref]}")
            last[ref] = max(last[ref], seq)
    return found


def v11_liveness(h: Histories) -> Found:
    """Everything is at its end or with a person, nobody holds it, nothing is in flight."""
    found = Found()
    for run in h.snapshot["run"]:
        settled = h.settled(run) and not run["owner"]
        found.look(
            settled,
            f"{run['ref']} is {run['state']}, held by {run['owner'] or 'nobody'}, due {run['due_at']}",
        )
    return found


def v12_fence(h: Histories) -> Found:
    """No write was accepted under a lower fence than one before it."""
    found = Found()
    highest: dict[int, int] = defaultdict(int)
    for row in h.snapshot["attempt"]:
        ref = h.runs[row["run_id"]]["ref"]
        found.look(row["fence"] >= highest[row["run_id"]], f"{ref}: an attempt under fence {row['fence']}")
        highest[row["run_id"]] = max(highest[row["run_id"]], row["fence"])
    for run_id, fence in highest.items():
        run = h.runs[run_id]
        found.look(fence <= run["fence"], f"{run['ref']}: an attempt under a fence that nobody has given out")
    return found


def v14_counters(h: Histories) -> Found:
    """What the queue counts is what its rows say when counted anew. Other metrics are not exported yet."""
    found = Found()
    open_cases = [row for row in h.snapshot["handoff"] if row["state"] != "resolved"]
    counted = {
        "open": len(open_cases),
        "unknown": sum(row["unknowns"] > 0 for row in open_cases),
        "compensation_failed": sum(row["compensation_failed"] for row in open_cases),
        "closed": sum(row["state"] == "resolved" for row in h.snapshot["handoff"]),
    }
    for name, number in counted.items():
        shown = h.counted.get(name, number)
        capped = shown < number and shown >= LEAST_CAP
        found.look(shown == number or capped, f"{name}: {shown} shown, {number} counted")
    unknown = Counter(row["run_id"] for row in _unknown_parts(h))
    for row in open_cases:
        if not row["linked"]:
            there = unknown[row["run_id"]]
            found.look(
                bool(row["unknowns"]) == bool(there),
                f"{row['ref']}: {row['unknowns']} unknown, {there} in fact",
            )
    return found


def _unknown_parts(h: Histories) -> Iterable[Row]:
    """Actions and compensations whose outcome nobody knows."""
    yield from (row for row in h.snapshot["action"] if row["state"] == "unknown")
    yield from (row for row in h.snapshot["compensation"] if row["state"] == "unknown")
