"""A workflow definition: steps, what a failure leads to, and which end states are acceptable.

Frozen values only; files are read by `tools.reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import groupby

from tools.contract import Condition, Json


class OnFailure(StrEnum):
    """What a definite failure of a step leads to (shared rule R4)."""

    COMPENSATE = "compensate"
    HANDOFF = "handoff"
    CONTINUE = "continue"


class IfNotApproved(StrEnum):
    """What it means for a step that nobody signs its call: a definite failure, or that the run goes on without it."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One tool call to be made once. `args` are bindings over input and steps.<id>.result, .prior, .args.

    `held`: a send that goes out only once every other step is confirmed, wherever it stands (S2-9). `each`: a
    binding to a list; the call is made once for every element, one after another, bound as `item` (S0-56).
    `group`: the steps of one group follow each other and are called at the same time; "" = a step by itself.
    `if_not_approved`: what a refused signature leads to, where the contract wants one before the call.
    """

    id: str
    tool: str
    contract_version: int
    args: Mapping[str, Json]
    on_rejected: OnFailure | None = None
    why: str = ""
    held: bool = False
    each: Json = None
    group: str = ""
    if_not_approved: IfNotApproved = IfNotApproved.FAIL


@dataclass(frozen=True, kw_only=True)
class StepIs:
    """A condition on our own record: the step is in one of these action states."""

    step: str
    states: tuple[str, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A call that accepting an end state sets going: a label, a repair task, a block (S0-23, S0-24).

    `args` are bindings as a step's, and over `run`. It is no step: it is never made up for.
    """

    id: str
    tool: str
    contract_version: int
    args: Mapping[str, Json]
    text: str


@dataclass(frozen=True, kw_only=True)
class EndState:
    """An end state that the business can live with, as checkable conditions (S0-23, S0-25)."""

    id: str
    title: str
    conditions: tuple[Condition | StepIs, ...]
    follow_ups: tuple[FollowUp, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Business:
    """How people recognise the case. Bindings over {"input"}; `reference` is searched for."""

    title: str = ""
    reference: Json = None
    customer: Json = None
    amount: Json = None
    currency: str = ""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A versioned workflow. `deadlines` maps a handoff reason to minutes; "default" is 60.

    `titles` holds the title in other languages.
    """

    name: str
    version: int
    title: str
    steps: tuple[Step, ...]
    input_schema: Json
    on_failure: OnFailure = OnFailure.COMPENSATE
    end_states: tuple[EndState, ...] = ()
    business: Business = field(default_factory=Business)
    deadlines: Mapping[str, float] = field(default_factory=dict)
    recovery_deadline_s: float = 300.0
    team: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    document: Json = None
    digest: str = ""

    @cached_property
    def fronts(self) -> tuple[tuple[Step, ...], ...]:
        """The steps in the order in which they are called, those that go out together as one; held ones come last."""
        in_order = sorted(self.steps, key=lambda step: step.held)
        apart = enumerate(in_order)
        together = groupby(apart, key=lambda one: one[1].group or one[0])
        return tuple(tuple(step for _, step in front) for _, front in together)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """The ids of the steps that are held back until all others are settled."""
        return tuple(step.id for step in self.steps if step.held)

    @cached_property
    def _by_id(self) -> Mapping[str, tuple[int, Step]]:
        return {step.id: (number, step) for number, front in enumerate(self.fronts) for step in front}

    def step(self, step_id: str) -> Step:
        """A step by its id. Raises KeyError."""
        return self._by_id[step_id][1]

    def front_of(self, step_id: str) -> int:
        """The number of the front that a step belongs to, from 0 in the order of the calls. Raises KeyError."""
        return self._by_id[step_id][0]
