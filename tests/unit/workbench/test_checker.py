"""Each invariant finds what contradicts it, and nothing in histories that agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sagas.states import Machine
from workbench.labs.checker.found import Found
from workbench.labs.checker.gather import TABLES
from workbench.labs.checker.histories import Histories, Record, Said, Snapshot, Told
from workbench.labs.checker.invariants import INVARIANTS, judge

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN, KEY, COMP_KEY = "run_a", "run_a.step.do.g1", "run_a.step.do.g1~c"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Past:
    """One run with two steps, both made up for, as all four histories tell of it. Tests bend it."""

    def __init__(self) -> None:
        self.said = [
            Said(kind="start", id="s1", outcome="ok", ref=RUN),
            Said(kind="command", id="c1", outcome="ok", ref=RUN, verb="compensate", status=202),
        ]
        self.records = [
            Record(seq=1, at=at(1.1), kind="arrived", tool="a", direction="do", key=KEY, business="A-1"),
            Record(seq=2, at=at(1.2), kind="effect", tool="a", direction="do", key=KEY, business="A-1"),
            Record(seq=3, at=at(2.1), kind="arrived", tool="b", direction="do", key="k2", business="A-1"),
            Record(seq=4, at=at(2.2), kind="effect", tool="b", direction="do", key="k2", business="A-1"),
            Record(
                seq=5,
                at=at(4.1),
                kind="arrived",
                tool="ub",
                direction="compensate",
                key="k2~c",
                business="A-1",
            ),
            Record(
                seq=6,
                at=at(4.2),
                kind="effect",
                tool="ub",
                direction="compensate",
                key="k2~c",
                business="A-1",
            ),
            Record(
                seq=7,
                at=at(5.1),
                kind="arrived",
                tool="ua",
                direction="compensate",
                key=COMP_KEY,
                business="A-1",
            ),
            Record(
                seq=8,
                at=at(5.2),
                kind="effect",
                tool="ua",
                direction="compensate",
                key=COMP_KEY,
                business="A-1",
            ),
        ]
        action = {"run_id": 1, "parent_id": None, "item": "", "contract_id": 1, "prior_read_at": at(0.5)}
        made_up = {
            "state": "confirmed",
            "kind": "restores",
            "who": "automatic",
            "registered_at": at(0.9),
            "args": {},
        }
        attempt = {"run_id": 1, "fence": 1}
        self.tables: dict[str, list[dict[str, Any]]] = {
            "run": [
                {
                    "id": 1,
                    "ref": RUN,
                    "state": "compensated",
                    "seq": 3,
                    "owner": "",
                    "due_at": None,
                    "fence": 2,
                }
            ],
            "action": [
                {
                    **action,
                    "id": 1,
                    "step": "a",
                    "tool": "a",
                    "key": KEY,
                    "state": "compensated",
                    "confirm_seq": 1,
                    "settled_at": at(1.5),
                },
                {
                    **action,
                    "id": 2,
                    "step": "b",
                    "tool": "b",
                    "key": "k2",
                    "state": "compensated",
                    "confirm_seq": 2,
                    "settled_at": at(2.5),
                },
            ],
            "compensation": [
                {**made_up, "id": 1, "action_id": 1, "key": COMP_KEY, "tool": "ua", "sent_at": at(5)},
                {**made_up, "id": 2, "action_id": 2, "key": "k2~c", "tool": "ub", "sent_at": at(4)},
            ],
            "attempt": [
                {**attempt, "action_id": 1, "compensation_id": None, "sent_at": at(1)},
                {**attempt, "action_id": 2, "compensation_id": None, "sent_at": at(2)},
                {**attempt, "action_id": 2, "compensation_id": 2, "sent_at": at(4)},
                {**attempt, "action_id": 1, "compensation_id": 1, "sent_at": at(5)},
            ],
            "handoff": [],
            "permit": [],
            "outbox": [
                {"run_id": 1, "seq_from": 1, "seq_to": 2, "published_at": at(2)},
                {"run_id": 1, "seq_from": 3, "seq_to": 3, "published_at": at(6)},
            ],
            "worker": [],
            "freeze": [],
            "receipt": [{"command_id": "c1", "actor_id": "maya", "verb": "compensate"}],
            "legal": [
                {"machine": "run", "source": "", "target": "running"},
                {"machine": "run", "source": "running", "target": "compensated"},
            ],
            "change": [
                {
                    "run_id": 1,
                    "machine": "run",
                    "object_id": 1,
                    "object_version": 1,
                    "source": "",
                    "target": "running",
                },
                {
                    "run_id": 1,
                    "machine": "run",
                    "object_id": 1,
                    "object_version": 3,
                    "source": "running",
                    "target": "compensated",
                },
            ],
            "loose": [],
            "counted": [{"run_id": 1, "entries": 3}],
            "clock": [{"now": at(10)}],
        }
        told = {
            "machine": "",
            "source": "",
            "target": "",
            "step": "",
            "actor_kind": "system",
            "command_id": "",
        }
        self.told = [
            Told(seq=1, name="run.started", at=at(0), **told),
            Told(seq=2, name="run.turned_back", at=at(3), **{**told, "command_id": "c1"}),
            Told(seq=3, name="run.compensated", at=at(6), **told),
        ]
        self.contract: dict[str, Any] = {}
        self.books: tuple[str, ...] = ()
        self.counted = {"open": 0, "closed": 0}
        self.seen = [(RUN, 1), (RUN, 2), (RUN, 1), (RUN, 3)]

    def histories(self) -> Histories:
        contract = {
            "document": {"compensation": {"tool": "ua"}, "prior_state": {"tool": "ra"}, **self.contract}
        }
        return Histories(
            said=tuple(self.said),
            records=tuple(self.records),
            told={RUN: tuple(self.told)},
            snapshot=Snapshot(
                tables={name: tuple(rows) for name, rows in self.tables.items()}, contracts={1: contract}
            ),
            books=self.books,
            counted=self.counted,
            seen=tuple(self.seen),
        )

    def record(self, **what: Any) -> None:
        kept = {"seq": len(self.records) + 1, "at": at(7), "kind": "effect", "tool": "a", "direction": "do"}
        self.records.append(Record(**{**kept, "key": KEY, "business": "A-1", **what}))

    def case(self, **what: Any) -> None:
        kept = {
            "run_id": 1,
            "ref": "HF-1",
            "state": "open",
            "linked": False,
            "reason": "rejected",
            "unknowns": 0,
        }
        self.tables["handoff"].append({**kept, "compensation_failed": False, **what})


def test_histories_that_agree_contradict_nothing() -> None:
    found = judge(Past().histories())
    assert {name: one.wrong for name, one in found.items() if one.wrong} == {}
    nothing_to_look_at = {"V7 stop means stop", "V8 authorised"}
    assert {name for name, one in found.items() if not one.trials} == nothing_to_look_at


def test_calls_that_left_with_their_signatures_contradict_nothing() -> None:
    past = Past()
    signed(past)

    found = INVARIANTS["V8 authorised"](past.histories())

    assert (found.wrong, found.trials) == ([], 10)


def lost(past: Past) -> None:
    past.said.append(Said(kind="start", id="s2", outcome="ok", ref="run_b"))


def no_receipt(past: Past) -> None:
    past.tables["receipt"].clear()


def phantom(past: Past) -> None:
    past.record(kind="arrived", key="nobody's")


def one_call_too_many(past: Past) -> None:
    past.record(kind="arrived")


def before_its_attempt(past: Past) -> None:
    past.tables["attempt"][0]["sent_at"] = at(1.3)


def registered_late(past: Past) -> None:
    past.tables["compensation"][0]["registered_at"] = at(1.05)


def read_late(past: Past) -> None:
    past.tables["action"][0]["prior_read_at"] = at(1.05)


def twice(past: Past) -> None:
    past.record(seq=9)


def confirmed_and_gone(past: Past) -> None:
    past.tables["action"][0]["state"] = "confirmed"


def rejected_and_there(past: Past) -> None:
    past.tables["action"][1]["state"] = "rejected"
    past.records = [one for one in past.records if one.key != "k2~c"]


def unknown_and_nobody_asked(past: Past) -> None:
    past.tables["action"][1]["state"] = "unknown"


def first_in_first_out(past: Past) -> None:
    past.records = [r if r.direction == "do" else _later(r, 10 - r.seq) for r in past.records]


def _later(record: Record, seq: int) -> Record:
    return Record(**{**record.__dict__, "seq": 100 + seq})


def orphan(past: Past) -> None:
    past.records = [r if r.seq != 2 else _later(r, 50) for r in past.records]


def sent_after_the_stop(past: Past) -> None:
    told = {
        "machine": "action",
        "source": "prepared",
        "target": "sent",
        "actor_kind": "system",
        "command_id": "",
    }
    past.told[2] = Told(seq=3, name="tool.execution.started", at=at(6), step="c", **told)


def sent_while_frozen(past: Past) -> None:
    sent_after_the_stop(past)
    past.told[1] = past.told[0]
    frozen = {"id": 1, "at": at(5), "after": {"freeze": 1, "applies_to": "all"}, "command_id": ""}
    past.tables["loose"].append({**frozen, "name": "system.frozen"})


def unsigned(past: Past) -> None:
    past.tables["compensation"][0]["who"] = "approval"


def call_unsigned(past: Past) -> None:
    past.contract["require_confirmation"] = True


def signed(past: Past, **what: Any) -> None:
    """Both forward calls went out with a signature."""
    call_unsigned(past)
    for number, action in enumerate(past.tables["action"]):
        action["args"] = {"limit": "500.00"}
        permit = {
            "ref": f"SO-{number}",
            "state": "consumed",
            "action_id": action["id"],
            "compensation_id": None,
        }
        permit |= {"requesters": [{"id": "user:maya"}], "decided_by": "user:priya", "decided_at": at(0.5)}
        permit |= {"expires_at": at(900), "document": {"args": {"limit": "500.00"}}}
        past.tables["permit"].append({**permit, **what})


def other_call_signed(past: Past) -> None:
    signed(past, document={"args": {"limit": "5.00"}})


def signed_by_who_asked(past: Past) -> None:
    signed(past, decided_by="user:maya")


def signed_too_late(past: Past) -> None:
    signed(past, decided_at=at(901))


def sent_after_it_expired(past: Past) -> None:
    signed(past, expires_at=at(0.9))


def gap(past: Past) -> None:
    past.told.pop(1)


def illegal_move(past: Past) -> None:
    past.tables["change"][1]["source"] = "handoff"


def silent_refusal(past: Past) -> None:
    past.said.append(Said(kind="command", id="c2", outcome="refused", ref=RUN, verb="retry", status=409))


def skipped_event(past: Past) -> None:
    past.tables["outbox"].pop(0)


def unpublished(past: Past) -> None:
    past.tables["outbox"][1]["published_at"] = None


def out_of_order(past: Past) -> None:
    past.seen = [(RUN, 2), (RUN, 1)]


def stuck(past: Past) -> None:
    past.tables["run"][0].update(state="running", owner="worker-1")


def lower_fence(past: Past) -> None:
    past.tables["attempt"][0]["fence"] = 2


def made_up_twice(past: Past) -> None:
    past.record(direction="compensate", key=COMP_KEY, seq=9)


def unbalanced(past: Past) -> None:
    past.books = ("credit does not sum to zero",)


def miscounted(past: Past) -> None:
    past.case()


@pytest.mark.parametrize(
    ("bend", "invariant"),
    [
        (lost, "V1"),
        (no_receipt, "V1"),
        (phantom, "V2"),
        (one_call_too_many, "V2"),
        (before_its_attempt, "V2"),
        (registered_late, "V2"),
        (read_late, "V2"),
        (twice, "V3"),
        (confirmed_and_gone, "V4"),
        (rejected_and_there, "V4"),
        (unknown_and_nobody_asked, "V4"),
        (first_in_first_out, "V5"),
        (orphan, "V6"),
        (sent_after_the_stop, "V7"),
        (sent_while_frozen, "V7"),
        (unsigned, "V8"),
        (call_unsigned, "V8"),
        (other_call_signed, "V8"),
        (signed_by_who_asked, "V8"),
        (signed_too_late, "V8"),
        (sent_after_it_expired, "V8"),
        (gap, "V9"),
        (illegal_move, "V9"),
        (silent_refusal, "V9"),
        (skipped_event, "V10"),
        (unpublished, "V10"),
        (out_of_order, "V10"),
        (stuck, "V11"),
        (lower_fence, "V12"),
        (made_up_twice, "V13"),
        (unbalanced, "V13"),
        (miscounted, "V14"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_contradicts_an_invariant_is_found(bend: Callable[[Past], None], invariant: str) -> None:
    past = Past()
    bend(past)
    name = next(one for one in INVARIANTS if one.split()[0] == invariant)
    assert INVARIANTS[name](past.histories()).wrong


def test_a_zero_comes_with_its_bound() -> None:
    assert Found().bound == 1.0
    assert Found(trials=2).bound == 1.0
    assert Found(trials=3000).bound == pytest.approx(0.001)


def test_every_machine_has_its_rows_in_the_snapshot_that_its_entries_are_joined_to() -> None:
    assert {str(machine) for machine in Machine} <= set(TABLES)
