"""A drill as frozen values. How a file is read is `tools.drills.reader`'s work, how it is played the proving ground's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.contract import Json


@dataclass(frozen=True, kw_only=True)
class Undo:
    """What makes up for a step, as a drill declares it."""

    tool: str
    needs_approval: bool = False
    kind: str = "restores"
    max_attempts: int = 3
    downstream_key: str = "honoured"
    natural: bool = False
    checked: bool = True
    only_after: tuple[str, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    leaves: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One tool call of the workflow and the rules of its tool. Times in the unit that the name ends with."""

    id: str
    tool: str
    kind: str
    compensation: Undo | None = None
    downstream_key: str = "honoured"
    status_query: str = "by_key"
    read_by_ref: bool = False
    settle_after_s: float = 0.0
    key_retention_h: float = 24.0
    max_attempts: int = 3
    first_delay_s: float = 1.0
    query_every_s: float = 2.0
    limit_s: float | None = None
    group: str = ""
    items: tuple[str, ...] = ()
    loop: tuple[str, ...] = ()
    asynchronous: bool = False
    answer_within_s: float = 3600.0
    callback: bool = True
    approval_required: bool = False
    approval_valid_h: float | None = None
    if_not_approved: str = "fail"
    uses_output_of: tuple[str, ...] = ()
    args: Mapping[str, Json] = field(default_factory=dict)
    secret_args: tuple[str, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    on_failure: str = ""
    answer_limit_bytes: int = 1_048_576
    level: str = "low"

    @property
    def parts(self) -> tuple[str, ...]:
        """The ids of what takes effect by itself: the items of a call over many or of a loop, else one without a name."""
        return self.items or self.loop or ("",)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """`count` runs that go the same way. Nothing of `downstream` concerns ordinary ones."""

    id: str
    count: int = 1
    ordinary: bool = False


@dataclass(frozen=True, kw_only=True)
class Drill:
    """One drill. What happens and what must hold stay as written: their words are checked, the player knows them."""

    id: str
    title: str
    steps: tuple[Step, ...]
    runs: tuple[Runs, ...]
    workflow: Mapping[str, Json]
    downstream: tuple[Mapping[str, Json], ...]
    faults: tuple[Mapping[str, Json], ...]
    actors: Mapping[str, tuple[str, ...]]
    commands: tuple[Mapping[str, Json], ...]
    expected: Mapping[str, Json]
    area: str = ""
    time_limit_s: float = 90.0
    path: str = ""
    begins_at: str = ""

    def step(self, name: str) -> Step:
        """The step with this id. Raises `KeyError`."""
        for step in self.steps:
            if step.id == name:
                return step
        raise KeyError(name)


def concerns(given: Mapping[str, Json], run: str) -> bool:
    """Whether something that may name its runs is about this one."""
    named = [given["run"]] if "run" in given else given.get("runs")
    return named is None or run in named
