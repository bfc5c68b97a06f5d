"""What the ledger orders done outside, and what the executor reports back. Frozen values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sagas.lanes import Lane
from tools.contract import Condition, Contract, Json
from tools.outcome import Outcome, QueryAnswer


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A worker's hold on a run: `owner` is its incarnation, `fence` the number of the claim."""

    run_id: int
    run_ref: str
    owner: str
    fence: int
    lane: Lane = Lane.AGAIN


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call whose `sent` mark is committed. `committing_since` is boot-time seconds when COMMIT was issued."""

    action_id: int
    compensation_id: int | None
    attempt_id: int
    contract: Contract
    args: Json
    key: str
    headers: Mapping[str, str]
    verify: Condition | None
    scope: Mapping[str, Json]
    reads: Mapping[str, Contract] = field(default_factory=dict)
    committing_since: float = 0.0


class Room(Protocol):
    """The slots of the process that works on a run."""

    def take(self, contract: Contract) -> bool:
        """Whether there is one for a call under this contract; it is kept until the run is given back."""
        ...


class Purpose(StrEnum):
    """Why a read is made. Reads are not attempts."""

    PRIOR = "prior"
    QUERY = "query"
    CHECK = "check"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Reads to make about one action or its compensation."""

    purpose: Purpose
    action_id: int
    compensation_id: int | None
    contract: Contract
    args: Json
    key: str
    scope: Mapping[str, Json]
    conditions: tuple[Condition, ...] = ()
    already_done: Condition | None = None
    reads: Mapping[str, Contract] = field(default_factory=dict)
    asked_of: Contract | None = None


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A turn to be asked for at the gate of a tool, before anything is marked as sent (engine.md, section 4).

    `flow` is what turns are shared between. `reserved`: it makes up for something or finds something out.
    `sent_away`: the last try was refused for speed. After `give_up_at` a person is asked.
    """

    run_id: int
    action_id: int
    contract: Contract
    flow: str
    reserved: bool
    compensation_id: int | None = None
    sent_away: bool = False
    give_up_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """Nothing more to do now; the run is released. `due_at` None = nothing is due."""

    due_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Together:
    """Several things to do at the same time; each is reported by itself, as soon as it is seen."""

    orders: tuple[Call | Ask | Queue, ...]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Nothing more to do until another report, or until `for_s` seconds have passed (None = however long it takes)."""

    for_s: float | None = None


type Order = Call | Ask | Queue | Together | Waiting | Done


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What the gates made of the answers. `slowed`: one refused for speed, or refused whoever calls; that uses up no
    try. `paused`: this very answer paused its tool, and why.
    """

    slowed: bool = False
    paused: str = ""


@dataclass(frozen=True, kw_only=True)
class ConditionSeen:
    """A condition after its read: `met` None when no answer came."""

    text: str
    met: bool | None
    detail: str
    body: Json = None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A call's outcome. `verified` is the read after a compensation: None when there was none or no answer."""

    call: Call
    outcome: Outcome
    verified: ConditionSeen | None = None
    heard: Heard = Heard()


@dataclass(frozen=True, kw_only=True)
class PriorRead:
    """A prior state, or why none could be read (`outcome`)."""

    ask: Ask
    outcome: Outcome
    version: str = ""
    heard: Heard = Heard()


@dataclass(frozen=True, kw_only=True)
class Queried:
    """A status query's answer."""

    ask: Ask
    answer: QueryAnswer
    heard: Heard = Heard()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was seen before a compensation: whether it is done already, and its preconditions."""

    ask: Ask
    already_done: ConditionSeen | None
    conditions: tuple[ConditionSeen, ...]
    heard: Heard = Heard()


@dataclass(frozen=True, kw_only=True)
class Queued:
    """What the gate said: the turn has come (`until` None), or when to look again."""

    order: Queue
    until: datetime | None


type Seen = Answered | PriorRead | Queried | Checked | Queued
