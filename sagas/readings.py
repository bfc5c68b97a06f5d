"""Frozen values about the installation itself: what is published, how it went lately, how the engine is.

Like `sagas.facts`, which is about runs and cases, they cross the engine's door; nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sagas.facts import WaiverFacts
from tools import lint
from tools.contract import Contract
from tools.definition import Definition

# --- What is published --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WorkflowVersion:
    """One published version of a workflow. `live` is how many of its runs have not ended."""

    name: str
    version: int
    digest: str
    published_at: datetime
    published_by: str
    live: int
    waived: int


@dataclass(frozen=True, kw_only=True)
class PublishedWorkflow:
    """A version of a workflow with what the check finds in it under the contracts that it pins.

    `contracts` are the pinned ones, by tool; `live` counts the runs of all versions that have not ended.
    """

    definition: Definition
    contracts: Mapping[str, Contract]
    findings: tuple[lint.Finding, ...]
    waivers: tuple[WaiverFacts, ...]
    published_at: datetime
    published_by: str
    newest: int
    live: int


@dataclass(frozen=True, kw_only=True)
class CataloguePage[Row]:
    """A page of a list. `after` is the key of the next one, "" at the end."""

    rows: tuple[Row, ...]
    after: str


@dataclass(frozen=True, kw_only=True)
class ToolUser:
    """A workflow, in its newest version, that calls a tool in `steps`, or only leans on it ("")."""

    name: str
    version: int
    steps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PublishedTool:
    """A version of a tool's contract; `workflows` counts those whose newest version needs the tool."""

    contract: Contract
    published_at: datetime
    published_by: str
    newest: int
    workflows: int


@dataclass(frozen=True, kw_only=True)
class ToolVersion:
    """One published version of a contract."""

    version: int
    digest: str
    published_at: datetime
    published_by: str


# --- How it went lately -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunsLately:
    """Runs begun in the last seven days by how they ended; `handed_over` counts those that came to a person at all.

    `capped`: as many as are counted at most; there may have been more.
    """

    runs: int = 0
    live: int = 0
    completed: int = 0
    compensated: int = 0
    failed_clean: int = 0
    accepted: int = 0
    handed_over: int = 0
    capped: bool = False


@dataclass(frozen=True, kw_only=True)
class CallsLately:
    """Calls of a tool in the last seven days, as a step or as a compensation, by their first answer.

    `unknown` are those without an answer that settles anything, `found` those of the calls that a status query found
    to have taken effect afterwards, `throttled` those that were told to slow down, `again` those that went out once
    more under the key of an earlier one. `handed_over`: how many of the steps and compensations that were called came
    to people. `mean_ms` None: nothing answered.
    `capped`: as many as are counted at most; there may have been more.
    """

    calls: int = 0
    confirmed: int = 0
    rejected: int = 0
    unknown: int = 0
    throttled: int = 0
    found: int = 0
    again: int = 0
    handed_over: int = 0
    mean_ms: int | None = None
    capped: bool = False


@dataclass(frozen=True, kw_only=True)
class SystemLately:
    """What the newest calls to one system came to. `mean_ms` None: none of them was answered."""

    system: str
    calls: int
    failures: int
    mean_ms: int | None
    last_success: datetime | None
    last_failure: datetime | None


# --- How the engine is --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WorkerSeen:
    """One live incarnation: what it is, where it runs, how long its lease still runs, how many runs it holds."""

    id: str
    kind: str
    place: str
    started_at: datetime
    lease_left_s: float
    beat_s: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Runs that are due and that nobody has taken; `held` are those that a freeze keeps back."""

    due: int
    oldest_s: float
    held: int


@dataclass(frozen=True, kw_only=True)
class StandsStill:
    """Nothing is done by itself just now: how long nobody was heard (None: nobody ever), how long work has waited."""

    silent_s: float | None
    waiting_s: float


@dataclass(frozen=True, kw_only=True)
class BrokerSeen:
    """The broker: bells that wait in it, for how long nobody has heard any that was rung (0 while somebody does), and
    what it does when its memory is full."""

    bells: int
    unheard_s: float
    policy: str


@dataclass(frozen=True, kw_only=True)
class OutboxSeen:
    """Events on their way out, and those that could not leave."""

    waiting: int
    oldest_s: float
    parked: int


@dataclass(frozen=True, kw_only=True)
class Counted:
    """So many, and since when the oldest."""

    count: int
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """Compensations that are not done: all, those for longer than five minutes, those that are with a person."""

    all: int
    dangling: int
    since: datetime | None
    with_people: int


@dataclass(frozen=True, kw_only=True)
class ReconciliationSeen:
    """The last comparison that was finished; None where there has been none. `running_since`: one is at it."""

    finished_at: datetime | None
    looked: int
    confirmed: int
    drift: int
    unread: int
    running_since: datetime | None


@dataclass(frozen=True, kw_only=True)
class DatabaseSeen:
    """The database: its version, connections in use of those allowed, and how far the clock of the process that asked is
    ahead of the database's (negative: behind), as exactly as the answer's own time allows."""

    version: str
    connections: int
    allowed: int
    ahead_s: float


@dataclass(frozen=True, kw_only=True)
class TrailState:
    """A run's trail: how many entries it has, and how many parcels of them wait for the relay or were set aside."""

    entries: int
    waiting: int
    parked: int
