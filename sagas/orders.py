"""What the ledger orders done outside, and what the executor reports back. Frozen values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tools.contract import Condition, Contract, Json
from tools.outcome import Outcome, QueryAnswer


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A worker's hold on a run: `owner` is its incarnation, `fence` the number of the claim."""

    run_id: int
    run_ref: str
    owner: str
    fence: int


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
class Done:
    """Nothing more to do now; the run is released. `due_at` None = nothing is due."""

    due_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Together:
    """Several things to do at the same time; each is reported by itself, as soon as it is seen."""

    orders: tuple[Call | Ask, ...]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Nothing more to do until another report, or until `for_s` seconds have passed (None = however long it takes)."""

    for_s: float | None = None


type Order = Call | Ask | Together | Waiting | Done


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


@dataclass(frozen=True, kw_only=True)
class PriorRead:
    """A prior state, or why none could be read (`outcome`)."""

    ask: Ask
    outcome: Outcome
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class Queried:
    """A status query's answer."""

    ask: Ask
    answer: QueryAnswer


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was seen before a compensation: whether it is done already, and its preconditions."""

    ask: Ask
    already_done: ConditionSeen | None
    conditions: tuple[ConditionSeen, ...]


type Seen = Answered | PriorRead | Queried | Checked
